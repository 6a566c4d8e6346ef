"""The cost of a large sweep's tables, compared with a bare pandas loop over the same files.

    python benchmarks/aggregation.py [--runs 1000] [--iterations 1000]

The runs are synthetic: metrics.csv, summary.json and config.yaml as of real runs, in groups of 5
seeds. `qdsweep aggregate` makes all tables, and tests every pair of groups. It runs again with 10
changed runs, and once more on all runs with the checksums of finished runs. The bare loop reads
each metrics.csv, joins them and averages each group. Times are of whole processes in sequence.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from figures import figure, measure

from qdsweep.files import write_json, write_text
from qdsweep.records.paths import Results, RunDir
from qdsweep.records.plan import write_plan
from qdsweep.records.results import write_config
from qdsweep.records.sums import sums_of
from qdsweep.sweep.runs import table_of_runs

SEEDS = 5
CHANGED = 10
# What the project wants of 1,000 runs of 1,000 iterations.
SECONDS, MIB = 60, 1536
BARE = """
import sys
import pandas as pd
runs = [line.split() for line in open(sys.argv[1])]
tables = [pd.read_csv(path).assign(group=group) for path, group in runs]
table = pd.concat(tables, ignore_index=True)
means = table.groupby(["group", "iteration"])[["qd_score", "coverage", "obj_max"]]
means.agg(["mean", "sem"]).to_csv(sys.argv[2])
"""


def make_runs(results: Path, runs: int, iterations: int) -> list[tuple[Path, int]]:
    """Writes a sweep and its runs; returns the metrics of each run and its group."""
    groups = runs // SEEDS
    sweep = (
        f"::: num_emitters {' '.join(map(str, range(1, groups + 1)))} "
        f"::: seed {' '.join(map(str, range(1, SEEDS + 1)))} ::: iterations {iterations}"
    )
    table = table_of_runs("lp_sphere", sweep)
    write_plan(
        table.plan(name="bench", experiment="lp_sphere", sweep=sweep), table.runs, Results(results)
    )
    rng = np.random.default_rng(1)
    made = []
    for position, (run, experiment) in enumerate(table.runs.items()):
        folder = results / "runs" / run
        write_config(folder / "config.yaml", experiment)
        write_metrics(folder, rng, position // SEEDS, iterations)
        write_json(folder / "summary.json", summary(run, iterations))
        made.append((folder / "metrics.csv", position // SEEDS))
    return made


def write_metrics(folder: Path, rng: np.random.Generator, group: int, iterations: int) -> None:
    steps = np.arange(1, iterations + 1)
    score = np.cumsum(rng.random(iterations) * (1 + group / 1000)) / iterations * 2
    columns = {
        "iteration": steps,
        "evaluations": 500 * steps,
        "num_elites": np.linspace(1, 5000, iterations).astype(int),
        "coverage": score / 2,
        "qd_score": score * 1e4,
        "norm_qd_score": score,
        "obj_max": 90 + score,
        "obj_mean": 50 + score,
        "restarts": steps // 100,
    }
    phases = rng.random((4, iterations)) / 100
    for name, seconds in zip(("ask", "evaluate", "tell", "reload"), phases, strict=True):
        columns[f"seconds_{name}"] = seconds
    pd.DataFrame(columns).to_csv(folder / "metrics.csv", index=False)


def summary(run: str, iterations: int) -> dict[str, object]:
    archive = {
        "type": "grid",
        "cells": 10000,
        "dims": [100, 100],
        "ranges": [[-1.0, 1.0], [-1.0, 1.0]],
        "measures": ["a", "b"],
        "objective_range": [0.0, 100.0],
        "qd_score_offset": 0.0,
        "solution_dim": 100,
    }
    about = {"id": run, "status": "finished", "engine": "serial", "workers": 1}
    return {**about, "iterations": iterations, "evaluations": 500 * iterations, "archive": archive}


def seal(results: Path) -> None:
    """Gives each run the checksums of a finished one, and forgets what was read of it."""
    for run in (results / "runs").iterdir():
        state = RunDir(run).state
        state.path.mkdir(exist_ok=True)
        names = ("config.yaml", "metrics.csv", "summary.json")
        write_text(state.sums, sums_of(run, [run / name for name in names]))
    for path in results.rglob(".aggregated.npz"):
        path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--iterations", type=int, default=1000)
    arguments = parser.parse_args()
    runs, iterations = arguments.runs, arguments.iterations
    with tempfile.TemporaryDirectory() as name:
        results = Path(name)
        made = make_runs(results, runs, iterations)
        listed = results / "listed"
        listed.write_text("".join(f"{path} {group}\n" for path, group in made))
        ours = [sys.executable, "-m", "qdsweep", "aggregate", "bench", "--results", results]
        bare = measure(results, sys.executable, "-c", BARE, listed, results / "bare.csv")
        first = measure(results, *ours)
        rng = np.random.default_rng(2)
        for path, group in made[:: max(len(made) // CHANGED, 1)][:CHANGED]:
            write_metrics(path.parent, rng, group, iterations)
        again = measure(results, *ours)
        seal(results)
        sealed = measure(results, *ours)
    work = f"tables of {runs:,} runs of {iterations:,} iterations"
    memory = 1024 * first.memory
    detail = (
        f"{first.wall:.1f} s and {memory:.0f} MiB; the loop {bare.wall:.1f} s and "
        f"{1024 * bare.memory:.0f} MiB"
    )
    figure(work, "a bare pandas loop over the files", first.wall / bare.wall, detail=detail)
    figure(work, f"{SECONDS} s", first.wall / SECONDS, "<= 1", detail=f"{first.wall:.1f} s")
    figure(f"peak memory, {work}", f"{MIB} MiB", memory / MIB, "<= 1", detail=f"{memory:.0f} MiB")
    figure(
        f"the same again, {CHANGED} runs changed",
        "the first time",
        again.wall / first.wall,
        detail=f"{again.wall:.1f} s",
    )
    detail = f"{sealed.cpu:.1f} s and {first.cpu:.1f} s of CPU time"
    figure(
        "checksums compared", "runs without any", sealed.cpu / first.cpu, "<= 1.05", detail=detail
    )


if __name__ == "__main__":
    main()
