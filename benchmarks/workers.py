"""The cost of distributing evaluations, compared with the pyribs example (Dask tasks).

Prints, for batches of 540 solutions whose evaluation sleeps:

- the efficiency of each engine (rounds x time of an evaluation / wall), from 4 workers that sleep
  1 ms to 120 that sleep 250 ms, and that of `Client.map` with one task per solution;
- seconds of ask and tell for d = 100, 1,000 and 5,000, and the number of workers at which they
  and the engine take a tenth of an iteration of 50-ms evaluations;
- seconds from the start of a run to its first evaluation, and of the imports only.

    python benchmarks/workers.py [--quick] [--engines processes dask]
"""

import argparse
import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from qdsweep.host.machine import apply_baseline

apply_baseline("avx2")

import numpy as np  # noqa: E402

from qdsweep.config.cluster import Cluster  # noqa: E402
from qdsweep.config.compose import compose  # noqa: E402
from qdsweep.engines import EXECUTORS, make_engine  # noqa: E402
from qdsweep.engines.allocation import Helpers, start_helpers  # noqa: E402
from qdsweep.engines.batch import Batch, Engine  # noqa: E402
from qdsweep.experiment.ranks import launcher  # noqa: E402
from qdsweep.host.process import RANKS  # noqa: E402
from qdsweep.records.results import write_config  # noqa: E402

BATCH = 540
DOMAIN = """
import time
import numpy as np
from qdsweep.domains.base import Evaluation


class Sleep:
    measures = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}
    objective_range = (0.0, 1.0)
    fields = {}

    def __init__(self, seconds, solution_dim=10):
        self.seconds, self.solution_dim = seconds, solution_dim

    def evaluate(self, solutions, seeds):
        for _ in solutions:
            time.sleep(self.seconds)
        return Evaluation(np.zeros(len(solutions)), solutions[:, :2].copy())
"""
EXPERIMENT = {
    "domain": {"type": "sleep:Sleep", "name": "sleep", "arguments": {"seconds": 0.01}},
    "algorithm": "map_elites_line",
    "archive": {"dims": [20, 20]},
    "num_emitters": 15,
    "batch_size": 36,
    "iterations": 2,
}


def sleeping(seconds: float) -> dict:
    return {**EXPERIMENT, "domain": {**EXPERIMENT["domain"], "arguments": {"seconds": seconds}}}


def batch(dimension: int = 10) -> Batch:
    rng = np.random.default_rng(1)
    return Batch(rng.normal(size=(BATCH, dimension)), np.arange(BATCH, dtype=np.uint32))


def timed(work: Callable[[], object], repeats: int) -> float:
    """The median, after one call that warms up."""
    work()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


@contextlib.contextmanager
def engine(name: str, seconds: float, workers: int) -> Iterator[Engine]:
    """An engine of qdsweep, with all its workers."""
    experiment = compose(sleeping(seconds))
    run = Path(tempfile.mkdtemp(dir=".")).absolute()
    (run / "state").mkdir()
    write_config(run / "state/config.yaml", experiment)
    cluster = Cluster(engine=name, workers_per_node=workers)
    helpers = Helpers(start_helpers(cluster, run), run) if cluster.has_helpers else None
    made = make_engine(cluster, experiment, None, run, helpers, {})
    try:
        while made._executor.workers < workers:
            time.sleep(0.1)
        yield made
    finally:
        made.close()
        if helpers is not None:
            helpers.close()


def ours(name: str, seconds: float, workers: int, repeats: int) -> tuple[float, float]:
    """Seconds of a batch, and of the evaluations in it, divided by the number of workers."""
    if name == "mpi" and RANKS not in os.environ:  # this function again, in each rank
        command = [*launcher(Cluster(engine="mpi")), "-n", str(workers + 1), "env", f"{RANKS}=yes"]
        command += [sys.executable, __file__, str(seconds), str(workers), str(repeats)]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, "PATH": path}
        took, busy = subprocess.check_output(command, env=env, text=True).split()
        return float(took), float(busy)
    busy: list[float] = []
    with engine(name, seconds, workers) as made:

        def evaluate() -> None:
            result = made.evaluate(batch(), [slice(0, BATCH)])
            busy.append(sum(outcome.seconds for _, outcome in result))

        took = timed(evaluate, repeats)
        return took, statistics.median(busy[1:]) / workers


def rank(seconds: str, workers: str, repeats: str) -> None:
    """What a rank does for `ours`."""
    from qdsweep.engines.executors import mpi

    if mpi.WORLD.rank > 0:
        mpi.serve_rank()
        return
    print(*ours("mpi", float(seconds), int(workers), int(repeats)))
    mpi.end(0)


def tasks(seconds: float, workers: int, repeats: int) -> float:
    """Seconds of a batch as in the pyribs example: a Dask task per solution."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        solutions = batch().solutions

        def evaluate() -> None:
            work = client.map(lambda _: time.sleep(seconds), solutions, pure=False)
            client.gather(work)

        return timed(evaluate, repeats)


def efficiency(engines: list[str], repeats: int) -> None:
    """Rounds x evaluation / wall: 540 on 120 workers are 5 rounds, the last one half full."""
    for workers, seconds in ((4, 0.001), (4, 0.01), (24, 0.05), (120, 0.25)):
        rounds = -(-BATCH // workers)
        peer = tasks(seconds, workers, repeats) if workers == 4 else None
        for name in engines:
            if name == "processes" and workers > 24:
                continue
            took, busy = ours(name, seconds, workers, repeats)
            row = busy * workers / BATCH  # what an evaluation took, in its worker
            line = f"{name:9} {workers:4} x {1000 * seconds:3.0f} ms: {row * rounds / took:.3f}"
            if peer is not None:
                line += f"; a Dask task per solution {seconds * rounds / peer:.3f}, "
                line += f"ratio {peer / took:.2f}"
            print(line, flush=True)


def growth(repeats: int) -> None:
    hub = ours("dask", 0.0, 4, repeats)[0] / BATCH
    for dimension, algorithm in (
        (100, "cma_me"),
        (1000, "cma_me"),
        (1000, "sep_cma_es"),
        (5000, "sep_cma_es"),
        (5000, "map_elites_line"),
    ):
        main = ask_and_tell(dimension, algorithm, repeats) + hub * BATCH
        most = BATCH * 0.05 / 9 / main
        print(
            f"d = {dimension}, {algorithm}: ask + tell + engine {1000 * main:.1f} ms per "
            f"iteration, a tenth of it with {most:.0f} workers of 50 ms"
        )


def ask_and_tell(dimension: int, algorithm: str, repeats: int) -> float:
    from qdsweep.algorithms import make_algorithm
    from qdsweep.domains import make_domain
    from qdsweep.domains.base import Evaluation

    data = sleeping(0.0)
    data["algorithm"] = algorithm
    data["domain"]["arguments"]["solution_dim"] = dimension
    experiment = compose(data)
    made = make_algorithm(experiment, make_domain(experiment.domain), Path())
    rng = np.random.default_rng(2)

    def step() -> None:
        while (candidates := made.ask()) is not None:
            n = len(candidates.solutions)
            measures = rng.uniform(-1, 1, (n, 2))
            seeds = np.arange(n, dtype=np.uint32)
            evaluation = Evaluation(rng.uniform(0, 1, n), measures)
            made.tell(candidates._replace(seeds=seeds), evaluation)

    return timed(step, 3 * repeats)


def start_up(repeats: int) -> None:
    """From the process's start to the first evaluation, 4 workers."""
    Path("experiment.yaml").write_text(__import__("json").dumps(sleeping(0.0)))
    Path("cluster.yaml").write_text("engine: dask\nworkers_per_node: 4\n")
    mine, bare = [], []
    for repeat in range(repeats):
        start = time.perf_counter()
        code = "import numpy, ribs, gymnasium, distributed"
        subprocess.run([sys.executable, "-c", code], check=True)
        bare.append(time.perf_counter() - start)
        words = ["run", "experiment.yaml", "--cluster", "cluster.yaml", "--out", f"start{repeat}"]
        subprocess.run([sys.executable, "-m", "qdsweep", *words], check=True, capture_output=True)
        log = Path(f"start{repeat}/run.log").read_text()
        result = re.search(r"first evaluation after (\S+) s", log)
        assert result is not None
        mine.append(float(result[1]))
    first, imports = statistics.median(mine), statistics.median(bare)
    print(
        f"start to first evaluation, 4 workers: {first:.1f} s; bare imports of numpy, ribs, "
        f"gymnasium, distributed: {imports:.1f} s; ratio {first / imports:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    known = list(EXECUTORS)
    parser.add_argument(
        "--engines", nargs="+", choices=known, default=known, help="those installed"
    )
    arguments = parser.parse_args()
    repeats = 2 if arguments.quick else 7
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("config/plugins").mkdir(parents=True)
        Path("config/plugins/sleep.py").write_text(DOMAIN)
        start_up(min(repeats, 3))
        efficiency(arguments.engines, repeats)
        growth(repeats)
        os.chdir("/")


if __name__ == "__main__":
    if RANKS in os.environ:
        rank(*sys.argv[1:])
    else:
        main()
