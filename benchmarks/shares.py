"""A gradient step of PPO on Atari's screens in shares, on more cores than this machine has.

    python benchmarks/shares.py [--shares 16] [--decisions 1024] [--repeats 3]

It needs `make rl` and Atari (`make extras`), and about a minute. The seconds of a minibatch are
measured with one and with two threads (`learner_workers`). The speed on more cores is simulated
from the CPU seconds of each share: a free core takes the next share. Everything else stays on one
core. Memory bandwidth and caches, which cores share, are not simulated.
"""

import argparse
import heapq
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from figures import figure

from qdsweep.host.machine import apply_baseline, apply_torch_baseline

apply_baseline("avx2")
apply_torch_baseline()

import numpy as np  # noqa: E402

from qdsweep.algorithms.pytorch import shares  # noqa: E402
from qdsweep.config.compose import compose  # noqa: E402
from qdsweep.domains import make_domain  # noqa: E402
from qdsweep.domains.base import CUT, GOES_ON, Record  # noqa: E402
from qdsweep.features.rl.learners.on_policy import OnPolicyLearner  # noqa: E402
from qdsweep.host.threads import in_order, use_threads  # noqa: E402

GAME = {
    "preset": "atari_breakout",
    "observation": "screen",
    "pixels": "bytes",
    "policy": {"type": "convolutional", "network": "mnih2015"},
}
SIZES = {"archive": {"dims": [2, 2]}, "num_emitters": 1, "batch_size": 1, "iterations": 1}
CORES = (2, 4, 8, 16)


class Clock:
    """Makes the calls of `in_order` one after another, and keeps the CPU seconds of each."""

    def __init__(self) -> None:
        self.phases: list[list[float]] = []

    def __call__(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        """Returns the results of the calls."""
        results, seconds = [], []
        for call in calls:
            start = time.thread_time()
            results.append(call())
            seconds.append(time.thread_time() - start)
        self.phases.append(seconds)
        return results


def makespan(seconds: list[float], cores: int) -> float:
    """When the last call has ended, if a free core takes the next one [s]."""
    free = [0.0] * cores
    for duration in seconds:
        heapq.heappush(free, heapq.heappop(free) + duration)
    return max(free)


def made(number: int, decisions: int) -> tuple[OnPolicyLearner, Any]:
    """A learner of this many shares, and a full buffer of random screens."""
    algorithm = {"preset": "ppo_atari", "learner_shares": number, "n_epochs": 1}
    experiment = compose({"domain": GAME, "algorithm": algorithm, **SIZES})
    actor = make_domain(experiment.domain).actor
    assert actor is not None
    learner = OnPolicyLearner(actor, experiment.algorithm, np.random.SeedSequence(1))
    rng, outputs = np.random.default_rng(1), actor.shapes[-1][0]
    ends = np.full(decisions, GOES_ON, np.uint8)
    ends[-1] = CUT
    record = Record(
        rng.integers(0, 256, (decisions + 1, actor.inputs), np.uint8),
        np.eye(outputs, dtype=np.float32)[rng.integers(0, outputs, decisions)],
        rng.normal(size=decisions).astype(np.float32),
        ends,
    )
    return learner, learner._buffer([record])


def step(learner: OnPolicyLearner, buffer: Any, clock: Callable[[], float]) -> float:
    """Seconds of a minibatch."""
    learner.model.rollout_buffer = buffer
    start = clock()
    with learner._training():
        learner._train()
    return (clock() - start) / (buffer.buffer_size / learner.model.batch_size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shares", type=int, default=16)
    parser.add_argument("--decisions", type=int, default=1024, help="a multiple of 256")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    learner, buffer = made(arguments.shares, arguments.decisions)
    minibatch = learner.model.batch_size
    work = f"PPO on screens, minibatch of {minibatch} in {arguments.shares} shares"
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(arguments.repeats + 1):  # the first one is to warm up
        for threads, seen in seconds.items():
            use_threads(threads)
            seen.append(step(learner, buffer, time.perf_counter))
    use_threads(1)
    one, two = (statistics.median(seen[1:]) for seen in seconds.values())
    detail = f"{two:.3f} and {one:.3f} s, medians of {arguments.repeats}"
    figure(f"{work}, speed with 2 learner_workers", "1", one / two, limit="2", detail=detail)

    clock = Clock()
    shares.in_order = clock
    total = statistics.median(
        step(learner, buffer, time.process_time) for _ in range(arguments.repeats)
    )
    shares.in_order = in_order
    count = arguments.repeats * arguments.decisions / minibatch
    alone = sum(map(sum, clock.phases)) / count
    for cores in CORES:
        busy = sum(makespan(phase, cores) for phase in clock.phases) / count
        simulated = total - alone + busy
        detail = f"{simulated:.3f} and {total:.3f} s; {total - alone:.3f} s are on one core"
        limit = f"{min(cores, arguments.shares)}"
        figure(f"{work}, simulated speed of {cores} cores", "1 core", total / simulated,
               limit=limit, detail=detail)  # fmt: skip


if __name__ == "__main__":
    main()
