"""Records how a run ended: `last_stop.json`, and `failure.json` if it would fail again."""

import contextlib
import logging
import os
from dataclasses import replace
from typing import Any

import numpy as np

from qdsweep.engines.failures import EvaluationFailed, NoWorkers, WorkerDied
from qdsweep.errors import QdsweepError, StorageError, raised
from qdsweep.experiment.run_log import start_log
from qdsweep.experiment.stop import Interrupted
from qdsweep.files import atomic
from qdsweep.host.lock import Lock, Locked
from qdsweep.host.slurm import end_state
from qdsweep.records.last_stop import (
    LastStop,
    forget_failure,
    read_failure,
    read_last_stop,
    write_failure,
    write_last_stop,
)
from qdsweep.records.paths import RunDir, StateDir
from qdsweep.records.status import read_status

# Causes for which a retry of Snakemake helps, because it resumes from the reload file.
CURABLE = ("stopped", "memory", "storage", "workers")


def cause_of(error: BaseException) -> str:
    """Returns the cause of a run's end: stopped, memory, workers, storage or failure."""
    if isinstance(error, Interrupted):
        return "stopped"
    if isinstance(error, WorkerDied):
        return "failure" if error.is_crash else "memory"
    if isinstance(error, EvaluationFailed) and error.failure.lacks:
        return "memory" if error.failure.lacks == "memory" else "storage"
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, NoWorkers):
        return "workers"
    if isinstance(error, OSError | StorageError):
        return "storage"
    return "failure"


def write_ending(files: StateDir, error: BaseException, fingerprint: str) -> None:
    """Writes the reason why a run ended before its budget was reached.

    Args:
        files: The run's `state/`.
        error: The exception that ended it.
        fingerprint: The experiment's fingerprint.
    """
    cause = cause_of(error)
    stops = read_last_stop(files).memory_stops + (cause == "memory")
    iteration = read_status(files).iterations
    unexpected = cause == "failure" and not isinstance(error, QdsweepError)
    message = raised(error) if unexpected else str(error)
    stop = LastStop(cause, stops, iteration, message, fingerprint)
    write_last_stop(files, stop)
    if cause in CURABLE:
        return
    about: dict[str, Any] = {"exception": type(error).__name__}
    if isinstance(error, EvaluationFailed):
        failure = error.failure
        with atomic(files.failed_solution) as file:
            np.savez(file, solution=failure.solution, seed=failure.seed)
        about |= {
            "row": failure.row,
            "seed": failure.seed,
            "worker": failure.worker,
            "traceback": failure.trace,
            "solution": str(files.failed_solution),
        }
    write_failure(files, stop, about)


def explain_kill(files: StateDir, attempt: dict[str, Any]) -> str:
    """Asks Slurm why an attempt ended without a record.

    Args:
        files: The run's `state/`.
        attempt: The attempt in `status.json`.

    Returns:
        The text for its record.
    """
    job = attempt.get("slurm_job")
    if job is None:
        return "killed"
    if job == os.environ.get("SLURM_JOB_ID"):
        return f"killed (Slurm started job {job} again)"
    state = end_state(job)
    if state == "OUT_OF_MEMORY":
        stop = read_last_stop(files)
        stops, message = stop.memory_stops + 1, f"Slurm job {job}: {state}"
        write_last_stop(files, replace(stop, cause="memory", memory_stops=stops, message=message))
    return f"killed (Slurm job {job}: {state or 'state unknown'})"


def refuse_repetition(files: StateDir, fingerprint: str, attempt: int) -> None:
    """Ends a retry of a run whose failure would happen again.

    When the user starts the sweep (attempt 1), the failure is removed and the run is tried again.

    Args:
        files: The run's `state/`.
        fingerprint: The experiment's fingerprint.
        attempt: Snakemake's count, from 1.

    Raises:
        QdsweepError: The run has already failed in this start; the message is that failure's.
    """
    failure = read_failure(files)
    if attempt > 1 and failure.get("fingerprint") == fingerprint:
        raise QdsweepError(f"not tried again, because it failed before: {failure['message']}")
    forget_failure(files)


def record_refusal(run: RunDir, error: QdsweepError, attempt: int) -> None:
    """Records bad input that ends a job before its run starts, so that a retry ends at once.

    It writes nothing while another process computes the run.

    Args:
        run: The run's folder, named by its id.
        error: The error.
        attempt: Snakemake's count, from 1.

    Raises:
        QdsweepError: The error; on a retry, the message has the earlier error.
    """
    files = run.state
    identity = run.name.rsplit("-", 1)[-1]  # the id has only the beginning of the fingerprint
    with contextlib.suppress(OSError, Locked), Lock(files.lock, wait=0.0):
        start_log(files.log, terminal=False)
        try:
            refuse_repetition(files, identity, attempt)
            write_ending(files, error, identity)
            raise error
        except QdsweepError as refusal:
            logging.getLogger("qdsweep").error("%s", refusal)
            raise
        finally:
            run.publish()
