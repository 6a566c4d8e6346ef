"""Lunar lander on the cores of one machine, compared with pyribs' example.

    python benchmarks/lander_workers.py [--workers 2] [--repeats 5] [--ray]

Batches of 150 policies, as an iteration of CMA-ME with 5 emitters x 30. The peer is Dask with a
task per solution and `gymnasium.make` in each, as in examples/lunar_lander.py. qdsweep's engines
are `processes` and `dask`, with and without the lander's fast path. Other peers evaluate as
the example does, with one task per solution: `multiprocessing.Pool` and, with --ray, Ray, which
is installed into a temporary folder. Repeats are interleaved, but for Ray's, which come after;
figures are medians. The efficiency is (seconds of the evaluations / workers) / wall.
"""

import argparse
import contextlib
import functools
import json
import multiprocessing
import statistics
import subprocess
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

from qdsweep.host.machine import apply_baseline

apply_baseline("avx2")

import numpy as np  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402
from figures import figure  # noqa: E402
from lander_example import by_make  # noqa: E402

from qdsweep.config.cluster import Cluster  # noqa: E402
from qdsweep.config.compose import compose  # noqa: E402
from qdsweep.engines import make_engine  # noqa: E402
from qdsweep.engines.allocation import Helpers, start_helpers  # noqa: E402
from qdsweep.engines.batch import Batch  # noqa: E402
from qdsweep.records.results import write_config  # noqa: E402
from qdsweep.versions import installed_versions  # noqa: E402

SEED, BATCH = 52, 150
EXAMPLE = "pyribs' example: Dask, one task per solution"
POOL = "`multiprocessing.Pool`, one task per solution"
RAY = "Ray, one task per solution"
PLAIN_PATH = "processes, plain path"
WANTED = {
    "long": {"processes": ">= 2", "dask": "", PLAIN_PATH: ">= 1.4"},
    "short": {"processes": ">= 2.5", "dask": "", PLAIN_PATH: ">= 1.4"},
}
EFFICIENCY = {"processes": ">= 0.95", "dask": ">= 0.9"}
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


@contextlib.contextmanager
def engine(
    name: str, workers: int, folder: Path, domain: str = "lunar_lander"
) -> Iterator[Callable[[np.ndarray], tuple[np.ndarray, float]]]:
    """An engine of qdsweep: a batch -> results and seconds of the evaluations only."""
    experiment = compose("lunar_lander", {"domain": domain})
    run = folder / f"{name}-{domain.split(':')[0]}"
    (run / "state").mkdir(parents=True)
    write_config(run / "state/config.yaml", experiment)
    cluster = Cluster(engine=name, workers_per_node=workers)
    helpers = Helpers(start_helpers(cluster, run), run) if cluster.has_helpers else None
    made = make_engine(cluster, experiment, None, run, helpers, installed_versions(("numpy",)))
    made.wait()

    def evaluate(policies: np.ndarray) -> tuple[np.ndarray, float]:
        results, busy = np.empty((len(policies), 3)), 0.0
        batch = Batch(policies, np.full(len(policies), SEED, dtype=np.uint32))
        for rows, outcome in made.evaluate(batch, [slice(0, len(policies))]):
            results[rows, 0] = outcome.evaluation.objective
            results[rows, 1:] = outcome.evaluation.measures
            busy += outcome.seconds
        return results, busy

    try:
        yield evaluate
    finally:
        made.close()
        if helpers is not None:
            helpers.close()


def install_ray(folder: Path) -> Path:
    """An environment with Ray and our versions of what evaluates; returns its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin/python"
    ours = installed_versions(("numpy", "gymnasium", "box2d", "pygame-ce"))
    packages = ["ray==2.60.0", *(f"{name}=={version}" for name, version in ours.items())]
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *packages], check=True)
    return python


def with_ray(
    python: Path, policies: np.ndarray, workers: int, repeats: int
) -> tuple[np.ndarray, list[float]]:
    """Results, and the seconds of each repeat."""
    np.save("policies.npy", policies)
    words = [python, HERE / "ray_peer.py", "policies.npy", SEED, workers, repeats]
    process = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, text=True, check=True)
    measured = json.loads(process.stdout.splitlines()[-1])
    return np.array(measured["results"]), measured["seconds"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--ray", action="store_true", help="install Ray for a while, as a peer")
    arguments = parser.parse_args()
    workers = arguments.workers
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        multiprocessing.Pool(workers) as pool,  # forked before Dask starts its threads
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
        contextlib.ExitStack() as stack,
    ):
        plugin = Path("config/plugins/plain_lander.py")
        plugin.parent.mkdir(parents=True)
        plugin.write_text(PLAIN)
        python = install_ray(Path(folder, "ray")) if arguments.ray else None

        def example(policies: np.ndarray) -> tuple[np.ndarray, float]:
            futures = client.map(lambda policy: by_make(policy, SEED), list(policies), pure=False)
            return np.array(client.gather(futures)), 0.0

        def mapped(policies: np.ndarray) -> tuple[np.ndarray, float]:
            task = functools.partial(by_make, seed=SEED)
            return np.array(pool.map(task, policies, chunksize=1)), 0.0

        plain = engine("processes", workers, Path(folder), "plain_lander:PlainLander")
        ways = {
            EXAMPLE: example,
            POOL: mapped,
            "processes": stack.enter_context(engine("processes", workers, Path(folder))),
            "dask": stack.enter_context(engine("dask", workers, Path(folder))),
            PLAIN_PATH: stack.enter_context(plain),
        }
        for kind, policies in batches().items():
            results = {name: way(policies)[0] for name, way in ways.items()}  # and warms up
            wall: dict[str, list[float]] = {name: [] for name in ways}
            busy: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(arguments.repeats):
                for name, way in ways.items():
                    start = time.perf_counter()
                    _, seconds = way(policies)
                    wall[name].append(time.perf_counter() - start)
                    busy[name].append(seconds)
            if python is not None:
                results[RAY], wall[RAY] = with_ray(python, policies, workers, arguments.repeats)
            for name, measured in results.items():
                np.testing.assert_array_equal(measured, results[EXAMPLE], err_msg=name)
            report(f"LunarLander, {kind} episodes", WANTED[kind], wall, f"{workers} workers")
            for name, wanted in EFFICIENCY.items():
                pairs = zip(busy[name], wall[name], strict=True)
                figure(
                    f"LunarLander, {kind} episodes ({name}): time of the evaluations only",
                    f"wall time of {workers} workers",
                    statistics.median(b / workers / w for b, w in pairs),
                    wanted,
                    "1",
                    f"median of {arguments.repeats} batches of {BATCH} evaluations",
                )


def report(work: str, wanted: dict[str, str], wall: dict[str, list[float]], where: str) -> None:
    """Evaluations/s of qdsweep compared with the example, and then with the other peers."""
    rate = {name: BATCH / statistics.median(seconds) for name, seconds in wall.items()}
    pairs = [(name, EXAMPLE) for name in wanted]
    pairs += [("processes", peer) for peer in (POOL, RAY) if peer in rate]
    for ours, peer in pairs:
        figure(
            f"{work} ({ours}), evaluations/s",
            peer,
            rate[ours] / rate[peer],
            wanted[ours] if peer == EXAMPLE else "",
            detail=f"{rate[ours]:.0f} evaluations/s against {rate[peer]:.0f}, {where}",
        )


if __name__ == "__main__":
    main()
