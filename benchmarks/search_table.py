"""Computes the learning curves on which the tests replay searches: benchmarks/search_table.npz.

    python benchmarks/search_table.py [--runs FILE]

Three tasks of 81 configurations and ten seeds. Each run is added to FILE when it ends, so that the
same command resumes after a kill. The table is written after the last run. One core, a quarter of
an hour.
"""

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any

from qdsweep.host.machine import apply_baseline

TABLE = Path(__file__).with_name("search_table.npz")
SEEDS = range(1, 11)
POINTS = 54
"""Of a curve, equally far apart: 1/27, 1/9, 1/3 and 2/3 of the budget are among them."""
STEP = 540
"""Evaluations between two points: a multiple of every setting's batch, so nothing is overshot."""
BASE = {"archive": {"dims": [50, 50]}, "evaluations": POINTS * STEP}
# Name -> the experiment, and the values of each of its four swept keys; the first is the slowest.
TASKS: dict[str, tuple[dict[str, Any], dict[str, list[Any]]]] = {
    "CMA-ME on Rastrigin": (
        {
            "domain": {"preset": "lp_rastrigin", "solution_dim": 20},
            "algorithm": "cma_me",
            "num_emitters": 5,
        },
        {
            "sigma0": [0.05, 0.5, 5.0],
            "batch_size": [12, 36, 108],
            "ranker": ["imp", "2imp", "2rd"],
            "restart_rule": ["basic", "no_improvement", 50],
        },
    ),
    "CMA-MAE on the arm": (
        {
            "domain": {"preset": "arm", "solution_dim": 20},
            "algorithm": "cma_mae",
            "num_emitters": 5,
        },
        {
            "sigma0": [0.02, 0.1, 0.5],
            "batch_size": [12, 36, 108],
            "ranker": ["imp", "2imp", "2rd"],
            "learning_rate": [0.001, 0.01, 0.1],
        },
    ),
    "MAP-Elites on a plateau": (
        {
            "domain": {"preset": "lp_plateau", "solution_dim": 20},
            "algorithm": "map_elites_line",
            "num_emitters": 1,
        },
        {
            "iso_sigma": [0.02, 0.1, 0.5],
            "line_sigma": [0.05, 0.2, 0.8],
            "batch_size": [60, 180, 540],
            "initial_solutions": [0, 540, 2700],
        },
    ),
}


def settings(task: str) -> list[dict[str, Any]]:
    """The settings of a task, in the order of the table."""
    axes = TASKS[task][1]
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def curve(task: str, setting: dict[str, Any], seed: int) -> list[float]:
    """The normalized QD score of a run, at each of the points."""
    from qdsweep.algorithms import make_algorithm
    from qdsweep.config.compose import compose
    from qdsweep.domains import make_domain
    from qdsweep.engines.pool import Serial
    from qdsweep.experiment.loop import run_loop
    from qdsweep.experiment.state import State
    from qdsweep.experiment.stop import Stop

    experiment = compose(BASE | TASKS[task][0], {**setting, "seed": seed})
    domain = make_domain(experiment.domain)
    scores: list[float] = []

    def record(state: State, seconds: dict[str, float]) -> None:
        reached = state.evaluations // STEP
        if reached > len(scores):
            score = float(state.algorithm.metrics()["norm_qd_score"])
            scores.extend([score] * (reached - len(scores)))

    run_loop(
        experiment, State(make_algorithm(experiment, domain, None)), Serial(domain), Stop(), record
    )
    return scores[:POINTS]


def finished(file: Path) -> dict[tuple[str, int, int], dict[str, Any]]:
    """The runs of a file by task, configuration and seed, without a line that a kill truncated."""
    runs = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            run = json.loads(line)
        except ValueError:
            continue
        runs[run["task"], run["setting"], run["seed"]] = run
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("results/search_table.jsonl"))
    file = parser.parse_args().runs
    apply_baseline("avx2")
    import numpy as np

    file.parent.mkdir(parents=True, exist_ok=True)
    runs = finished(file)
    wanted = list(itertools.product(SEEDS, TASKS, range(81)))
    for seed, task, number in wanted:
        if (task, number, seed) in runs:
            continue
        start = time.process_time()
        scores = curve(task, settings(task)[number], seed)
        run = {"task": task, "setting": number, "seed": seed, "scores": scores}
        runs[task, number, seed] = run | {"seconds": time.process_time() - start}
        with file.open("a") as lines:  # the line's end first, as a kill may have truncated a line
            lines.write("\n" + json.dumps(runs[task, number, seed]))
        if number == 80:
            print(f"seed {seed}, {task}", flush=True)
    tables = {
        task: np.array(
            [[runs[task, number, seed]["scores"] for seed in SEEDS] for number in range(81)],
            dtype=np.float32,
        )
        for task in TASKS
    }
    np.savez_compressed(TABLE, **tables)
    hours = sum(run["seconds"] for run in runs.values()) / 3600
    print(f"{TABLE}: {len(wanted)} runs, {hours:.2f} core-hours")


if __name__ == "__main__":
    main()
