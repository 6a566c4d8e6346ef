"""How a run ended: `state/last_stop.json`, and `state/failure.json` where it would fail again."""

from pathlib import Path
from typing import Any

import numpy as np

from qdsweep.engines.failures import EvaluationFailed
from qdsweep.engines.processes import WorkerDied
from qdsweep.errors import QdsweepError
from qdsweep.experiment.outputs import read_json, write_json
from qdsweep.experiment.stop import Interrupted
from qdsweep.files import atomic

# Causes that Snakemake's retry can cure, by going on from the reload file.
CURABLE = ("stopped", "memory", "storage")


class StorageError(QdsweepError):
    """The run's files cannot be written."""


def cause_of(error: BaseException) -> str:
    """One word for what ended a run: stopped, memory, storage or failure."""
    if isinstance(error, Interrupted):
        return "stopped"
    if isinstance(error, MemoryError | WorkerDied):
        return "memory"
    if isinstance(error, OSError | StorageError):
        return "storage"
    return "failure"


def write_ending(folder: Path, error: BaseException, fingerprint: str) -> None:
    """Says why a run ended before its end.

    Args:
        folder: The run's `state/`.
        error: What ended it.
        fingerprint: The experiment's fingerprint.
    """
    cause = cause_of(error)
    iteration = read_json(folder / "status.json").get("iteration", 0)
    stops = read_json(folder / "last_stop.json").get("memory_stops", 0)
    about: dict[str, Any] = {
        "cause": cause,
        "memory_stops": stops + (cause == "memory"),
        "iteration": iteration,
        "message": str(error),
        "fingerprint": fingerprint,
    }
    write_json(folder / "last_stop.json", about)
    if cause in CURABLE:
        return
    about["exception"] = type(error).__name__
    if isinstance(error, EvaluationFailed):
        failure = error.failure
        with atomic(folder / "failed_solution.npz") as file:
            np.savez(file, solution=failure.solution, seed=failure.seed)
        about |= {
            "row": failure.row,
            "seed": failure.seed,
            "worker": failure.worker,
            "traceback": failure.trace,
            "solution": str(folder / "failed_solution.npz"),
        }
    write_json(folder / "failure.json", about)


def refuse_repetition(folder: Path, fingerprint: str, attempt: int) -> None:
    """Ends a retry of a run that has failed by itself: it would fail the same way.

    A start by the user, attempt 1, tries again and forgets the failure.

    Args:
        folder: The run's `state/`.
        fingerprint: The experiment's fingerprint.
        attempt: Snakemake's count, from 1.

    Raises:
        QdsweepError: The run failed before in this start; the message is that failure's.
    """
    failure = read_json(folder / "failure.json")
    if attempt > 1 and failure.get("fingerprint") == fingerprint:
        raise QdsweepError(f"not tried again, it failed before: {failure['message']}")
    for name in ("failure.json", "failed_solution.npz"):
        (folder / name).unlink(missing_ok=True)
