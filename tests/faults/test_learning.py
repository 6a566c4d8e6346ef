"""Runs that learn, killed while they evaluate, train and tell: one digest, on every engine."""

import logging
import os
import signal
from collections.abc import Callable
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from composing import with_algorithm
from in_process import compute_run
from results import digest, steps
from support import write_yaml

from qdsweep.algorithms.learning.base import ArchiveAlgorithm
from qdsweep.cli import main
from qdsweep.experiment.state import Pending
from qdsweep.experiment.stop import Stop

LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
PRESETS = ("pga_me", "td3", "cma_mega_es", "cma_mega_td3_es", "me_es", "apex_dqn", "impala", "dqn")
# Of these, greedy rows alone are inserted, and the learner trains on few steps.
WITH_TORCH: dict[str, dict[str, Any]] = {
    "apex_dqn": {"evaluate_every": 1, "train_freq": 100, "learning_starts": 50},
    "impala": {"evaluate_every": 1, "lag": 2},
    "dqn": {"evaluate_every": 1, "train_freq": 100, "learning_starts": 50},
}
PHASES = ("evaluation", "training", "tell")
CLUSTERS: tuple[dict[str, Any], ...] = (
    {"engine": "serial"},
    {"engine": "processes", "workers_per_node": 2},
    {"engine": "processes", "workers_per_node": 3},
    {"engine": "dask", "workers_per_node": 2},
)
# A reload file whenever one can be written.
TASK = {
    "domain": {"preset": "pendulum", "max_episode_steps": 15},
    "archive": {"dims": [5, 5]},
    "batch_size": 12,
    "iterations": 8,
    "seed": 5,
    "reload": {"min_seconds": 0.0, "max_cost": 1.0},
}


def counted(number: int, at: int) -> Callable[[], None]:
    """A function whose call number `at` sends this process a signal."""
    calls = 0

    def count() -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            os.kill(os.getpid(), number)

    return count


def arm(phase: str, number: int, at: int) -> None:
    """Makes this process get a signal in the phase of one of its next batches."""
    count = counted(number, at)
    if phase == "training":
        deferred = Stop.deferred

        @contextmanager
        def signalled(stop: Stop):
            with deferred(stop):
                count()
                yield

        Stop.deferred = signalled
        return
    owner, name = (Pending, "put") if phase == "evaluation" else (ArchiveAlgorithm, "insert")
    original = getattr(owner, name)

    def then_signal(*arguments: Any) -> Any:
        found = original(*arguments)
        count()
        return found

    setattr(owner, name, then_signal)


def attempt(folder: Path, cluster: dict[str, Any], *kill: Any) -> int:
    """Goes on with a run in a process of its own; returns its exit code, or minus its signal."""
    write_yaml(folder / "cluster.yaml", cluster)
    child = os.fork()  # it has imported and compiled everything
    if not child:
        code = 1
        try:
            os.chdir(folder)
            logging.getLogger().handlers.clear()
            with (folder / "said").open("a") as said, redirect_stderr(said), redirect_stdout(said):
                if kill:
                    arm(*kill)
                code = main(["run", "experiment.yaml", "--cluster", "cluster.yaml", "--out", "out"])
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def end(folder: Path, cluster: dict[str, Any], straight: Path) -> None:
    """Computes the rest of a run, and compares it with the undisturbed one."""
    assert attempt(folder, cluster) == 0, (folder / "said").read_text()
    assert digest(folder / "out") == digest(straight)
    assert steps(folder / "out") == steps(straight)


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("preset", PRESETS)
def test_killed_in_every_phase_on_every_engine_it_ends_in_one_digest(preset, tmp_path):
    if preset in WITH_TORCH:
        pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
    own = WITH_TORCH.get(preset, {})
    experiment = with_algorithm(preset, TASK, **own).model_dump(mode="json")
    straight = compute_run(experiment, tmp_path / "straight")
    kills = list(product(PHASES, (signal.SIGKILL, signal.SIGTERM)))
    if LONG:  # each kill on each engine, in a run of its own
        plans = [[(kill, cluster)] for kill in kills for cluster in CLUSTERS]
    else:  # a kill in each phase, one after the other; the next preset has other ones
        place = PRESETS.index(preset)
        plans = [[(kills[2 * n + (n + place) % 2], CLUSTERS[(n + place) % 3]) for n in range(3)]]
    for number, plan in enumerate(plans):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_yaml(folder / "experiment.yaml", experiment)
        for (phase, how), cluster in plan:
            code = attempt(folder, cluster, phase, how, 3)
            assert code == (75 if how == signal.SIGTERM else -how), (phase, how, cluster)
        last = CLUSTERS[-1] if preset == PRESETS[0] else CLUSTERS[number % 3]
        end(folder, last, straight)
