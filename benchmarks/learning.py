"""The cost of PGA-ME's learning compared with torch, and whether evaluations hide it.

    python benchmarks/learning.py [--repeats 5] [--environment DIR]

An iteration at DQD-RL's sizes is 300 critic steps and 49 variations of 10 steps, with batches of
256. Ours and torch's take turns in one process, one thread each; the figures are CPU seconds, so
that a busy machine matters little. torch is installed into DIR, or into a temporary folder.

Then iterations on QD Half-Cheetah are run with one worker, with two, and with two that wait while
the main process trains. Wall time needs a machine that does nothing else.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from figures import figure
from peers import install

from qdsweep.host.machine import apply_baseline

apply_baseline("avx2")

from qdsweep.algorithms import make_algorithm  # noqa: E402
from qdsweep.config.cluster import Cluster  # noqa: E402
from qdsweep.config.compose import compose  # noqa: E402
from qdsweep.domains import make_domain  # noqa: E402
from qdsweep.engines import make_engine  # noqa: E402
from qdsweep.engines.batch import Batch, Engine, Outcome, nothing  # noqa: E402
from qdsweep.experiment.loop import run_loop  # noqa: E402
from qdsweep.experiment.state import State  # noqa: E402
from qdsweep.experiment.stop import Stop  # noqa: E402
from qdsweep.records.archive import archive_digest  # noqa: E402
from qdsweep.versions import installed_versions  # noqa: E402

HERE = Path(__file__).resolve().parent
PACKAGES = ("torch==2.13.0",)
# Episodes of one length, which take two cores about as long as training takes one: there it matters
# most whether training is hidden.
EXPERIMENT = {
    "domain": {"preset": "qd_half_cheetah", "max_episode_steps": 250},
    "algorithm": "pga_me",
    "archive": {"dims": [32, 32]},
    "num_emitters": 1,
    "batch_size": 100,
    "iterations": 12,
}
# Without training, without elites that climb, and until the pool knows how long training takes.
SKIPPED = 3


class Watched:
    """An engine that takes the time of training, and may have it done before it evaluates.

    Args:
        engine: The engine.
        hides: Whether training runs while the workers evaluate, as it does in a run.

    Attributes:
        training: CPU seconds of the main process, batch by batch.
        evaluation: Likewise, of what the engine does in the main process.
    """

    def __init__(self, engine: Engine, *, hides: bool = True) -> None:
        self._engine, self._hides = engine, hides
        self.training: list[float] = []
        self.evaluation: list[float] = []

    def evaluate(
        self, batch: Batch, rows: list[slice], meanwhile: Callable[[], None]
    ) -> Iterator[tuple[slice, Outcome]]:
        """Evaluates as the engine does."""

        def train() -> None:
            start = time.process_time()
            meanwhile()
            self.training.append(time.process_time() - start)

        start = time.process_time()
        if not self._hides:
            train()
        yield from self._engine.evaluate(batch, rows, train if self._hides else nothing)
        self.evaluation.append(time.process_time() - start - self.training[-1])


def cost(python: Path, repeats: int) -> None:
    """CPU seconds of an iteration, ours and torch's."""
    words = [python, HERE / "td3_torch.py", "--time", str(repeats)]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    times = json.loads(done.stdout.splitlines()[-1])
    medians = {
        name: {part: statistics.median(seconds) for part, seconds in parts.items()}
        for name, parts in times.items()
    }
    ours, torch = medians["ours"], medians["torch"]
    figure(
        "PGA-ME, learning of an iteration",
        "torch with fused Adam",
        sum(ours.values()) / sum(torch.values()),
        "<= 0.7",
        detail=", ".join(
            f"{part} {ours[part]:.2f} s against {torch[part]:.2f} s of CPU time" for part in ours
        ),
    )


def run(workers: int, *, hides: bool = True) -> tuple[Watched, list[float], list[float], str]:
    """Runs the experiment.

    Returns:
        The engine, the CPU seconds of the main process in each iteration and their wall seconds,
        and the digest of the archive.
    """
    experiment = compose(EXPERIMENT)
    domain = make_domain(experiment.domain)
    state = State(make_algorithm(experiment, domain, None), steps=0)
    cluster = Cluster(workers_per_node=workers)
    versions = installed_versions(experiment.domain.libraries)
    engine = make_engine(cluster, experiment, domain, None, None, versions)
    watched = Watched(engine, hides=hides)
    times = [(time.process_time(), time.perf_counter())]

    def after_iteration(state: State, seconds: dict[str, float]) -> None:
        times.append((time.process_time(), time.perf_counter()))

    try:
        run_loop(experiment, state, watched, Stop(), after_iteration)
    finally:
        engine.close()
    cpu, wall = ([late - early for early, late in pairwise(of)] for of in zip(*times, strict=True))
    return watched, cpu, wall, archive_digest(state.algorithm.archive.rows())


def hidden() -> None:
    """Wall seconds of an iteration with two workers, and the minimum that two cores allow.

    An iteration evaluates, trains and makes variations, of which only training can be done while
    others evaluate: variations take the critics that it leaves.
    """
    single, cpu, _, digest = run(1)
    _, _, hiding, same = run(2)
    _, _, in_turn, also = run(2, hides=False)
    assert digest == same == also
    parts = list(zip(single.evaluation, single.training, cpu, strict=True))[SKIPPED:]
    bound = sum(
        whole - evaluation - training + max(training, (evaluation + training) / 2)
        for evaluation, training, whole in parts
    )
    evaluation, training, whole = (statistics.mean(of) for of in zip(*parts, strict=True))
    count = len(parts)
    figure(
        "PGA-ME, wall time of an iteration with 2 workers",
        "training hidden as far as two cores can",
        sum(hiding[SKIPPED:]) / bound,
        "<= 1.15",
        limit="1",
        detail=f"{sum(hiding[SKIPPED:]) / count:.2f} s against {bound / count:.2f} s, of CPU "
        f"seconds of one worker: evaluation {evaluation:.2f}, training {training:.2f}, variation "
        f"and insertion {whole - evaluation - training:.2f}; training first, then evaluation: "
        f"{sum(in_turn[SKIPPED:]) / bound:.2f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--environment", type=Path, help="kept for the next time")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        python = install((arguments.environment or Path(folder)).absolute(), PACKAGES)
        cost(python, arguments.repeats)
    hidden()


if __name__ == "__main__":
    main()
