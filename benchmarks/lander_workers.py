"""Lunar lander on the cores of one machine, beside the way of pyribs' example.

    python benchmarks/lander_workers.py [--workers 2] [--repeats 5]

Batches of 150 policies, as an iteration of CMA-ME with 5 emitters x 30. The peer is Dask with a
task a solution and `gymnasium.make` in each, as examples/lunar_lander.py has it; ours are the
engines `processes` and `dask`, with and without the lander's fast path. Repeats are interleaved;
figures are medians. The efficiency is (seconds of the evaluations alone / workers) / wall.
"""

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from qdsweep.cpu import apply_baseline

apply_baseline("avx2")

import numpy as np  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402
from lander_example import by_make  # noqa: E402

from qdsweep.config.cluster import Cluster  # noqa: E402
from qdsweep.config.compose import compose  # noqa: E402
from qdsweep.engines import make_engine  # noqa: E402
from qdsweep.engines.base import Batch  # noqa: E402
from qdsweep.engines.start_crew import Crew, start_crew  # noqa: E402
from qdsweep.sweep.plan import write_experiment  # noqa: E402
from qdsweep.versions import installed_versions  # noqa: E402

SEED, BATCH = 52, 150
PLAIN = """
from qdsweep.domains.lunar_lander import LunarLander


class PlainLander(LunarLander):
    def __init__(self):
        super().__init__(episodes=1)
        self._lean = None
"""
HERE = Path(__file__).parent


def batches() -> dict[str, np.ndarray]:
    elites = np.load(HERE / "lander_policies.npy")
    return {
        "long": np.concatenate([elites] * 3)[:BATCH],
        "short": np.random.default_rng(1).normal(size=(BATCH, 32)),
    }


def engine(
    name: str, workers: int, folder: Path, domain: str = "lunar_lander"
) -> Callable[[np.ndarray], tuple]:
    """An engine of ours: a batch -> results and seconds of the evaluations alone."""
    experiment = compose("lunar_lander", {"domain": domain})
    run = folder / f"{name}-{domain.split(':')[0]}"
    (run / "state").mkdir(parents=True)
    write_experiment(run / "state/config.yaml", experiment)
    cluster = Cluster(engine=name, workers_per_node=workers)
    crew = Crew(start_crew(cluster, run), run) if name == "dask" else None
    made = make_engine(cluster, experiment, None, run, crew, installed_versions(("numpy",)))
    made.wait()

    def evaluate(policies: np.ndarray) -> tuple[np.ndarray, float]:
        results, busy = np.empty((len(policies), 3)), 0.0
        batch = Batch(policies, np.full(len(policies), SEED, dtype=np.uint32))
        for rows, outcome in made.evaluate(batch, [slice(0, len(policies))]):
            results[rows, 0] = outcome.evaluation.objective
            results[rows, 1:] = outcome.evaluation.measures
            busy += outcome.seconds
        return results, busy

    evaluate.close = lambda: (made.close(), crew and crew.close())  # type: ignore[attr-defined]
    return evaluate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        plugin = Path("config/plugins/plain_lander.py")
        plugin.parent.mkdir(parents=True)
        plugin.write_text(PLAIN)
        client = Client(
            LocalCluster(n_workers=arguments.workers, threads_per_worker=1, dashboard_address=None)
        )

        def peer(policies: np.ndarray) -> tuple[np.ndarray, float]:
            futures = client.map(lambda policy: by_make(policy, SEED), list(policies), pure=False)
            return np.array(client.gather(futures)), 0.0

        ways = {"example": peer}
        for name in ("processes", "dask"):
            ways[name] = engine(name, arguments.workers, Path(folder))
        ways["processes, plain path"] = engine(
            "processes", arguments.workers, Path(folder), "plain_lander:PlainLander"
        )
        for kind, policies in batches().items():
            results = {name: way(policies)[0] for name, way in ways.items()}  # and warms up
            for name, found in results.items():
                np.testing.assert_array_equal(found, results["example"], err_msg=name)
            wall: dict[str, list[float]] = {name: [] for name in ways}
            busy: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(arguments.repeats):
                for name, way in ways.items():
                    start = time.perf_counter()
                    _, seconds = way(policies)
                    wall[name].append(time.perf_counter() - start)
                    busy[name].append(seconds)
            for name in ways:
                seconds = statistics.median(wall[name])
                ratio = statistics.median(wall["example"]) / seconds
                share = statistics.median(
                    b / arguments.workers / w for b, w in zip(busy[name], wall[name], strict=True)
                )
                print(
                    f"{kind} episodes, {name}: {BATCH / seconds:.0f} evaluations/s, "
                    f"{ratio:.2f} x the example's" + (f", efficiency {share:.3f}" if share else "")
                )
        for name in ("processes", "dask", "processes, plain path"):
            ways[name].close()  # type: ignore[attr-defined]
        client.shutdown()


if __name__ == "__main__":
    main()
