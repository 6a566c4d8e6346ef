"""How a run ended: `state/last_stop.json`, and `state/failure.json` where it would fail again."""

import contextlib
import logging
import os
from pathlib import Path
from typing import Any

import numpy as np

from qdsweep.engines.failures import EvaluationFailed, NoWorkers, WorkerDied
from qdsweep.errors import QdsweepError
from qdsweep.experiment.run_log import start_log
from qdsweep.experiment.stop import Interrupted
from qdsweep.files import atomic, read_json, write_json
from qdsweep.host.lock import Lock, Locked
from qdsweep.host.slurm import end_state
from qdsweep.records.archive import publish

# Causes that Snakemake's retry can cure, by going on from the reload file.
CURABLE = ("stopped", "memory", "storage", "workers")


class StorageError(QdsweepError):
    """The run's files cannot be written."""


def cause_of(error: BaseException) -> str:
    """One word for what ended a run: stopped, memory, workers, storage or failure."""
    if isinstance(error, Interrupted):
        return "stopped"
    if isinstance(error, MemoryError | WorkerDied):
        return "memory"
    if isinstance(error, NoWorkers):
        return "workers"
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


def explain_kill(folder: Path, attempt: dict[str, Any]) -> str:
    """Finds out why an attempt ended without a word, as far as Slurm knows.

    Args:
        folder: The run's `state/`.
        attempt: The attempt, of `status.json`.

    Returns:
        How it ended, for its record.
    """
    job = attempt.get("slurm_job")
    if job is None:
        return "killed"
    if job == os.environ.get("SLURM_JOB_ID"):
        return f"killed (Slurm started job {job} again)"
    state = end_state(job)
    if state == "OUT_OF_MEMORY":
        stop = read_json(folder / "last_stop.json")
        stops = stop.get("memory_stops", 0) + 1
        about = {"cause": "memory", "memory_stops": stops, "message": f"Slurm job {job}: {state}"}
        write_json(folder / "last_stop.json", {**stop, **about})
    return f"killed (Slurm job {job}: {state or 'state unknown'})"


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


def record_refusal(out: Path, error: QdsweepError, attempt: int) -> None:
    """Takes down bad input that ends a job before its run begins, so that a retry ends at once.

    Where another process computes the run at this moment, nothing is written.

    Args:
        out: The run's folder, named by its id.
        error: What is wrong.
        attempt: Snakemake's count, from 1.

    Raises:
        QdsweepError: What is wrong; on a retry, that it was so before.
    """
    folder = out / "state"
    identity = out.name.rsplit("-", 1)[-1]  # as much of the fingerprint as is known
    with contextlib.suppress(OSError, Locked), Lock(folder / "lock", wait=0.0):
        start_log(folder / "run.log", terminal=False)
        try:
            refuse_repetition(folder, identity, attempt)
            write_ending(folder, error, identity)
            raise error
        except QdsweepError as refusal:
            logging.getLogger("qdsweep").error("%s", refusal)
            raise
        finally:
            publish(out)
