"""When this process must have ended: with its Slurm job, or after `max_seconds`."""

import os
import time

from qdsweep.host.slurm import end_of_job

# Time for the Snakemakes around a run, and for its workers' step, to end after it [s].
SLURM_MARGIN = 10.0


def seconds_left(max_seconds: float | None) -> float | None:
    """Returns the time until the run must have ended, or None if there is no limit [s].

    Args:
        max_seconds: The limit that the user gave [s], or None.
    """
    limits = [limit for limit in (max_seconds, _slurm_seconds_left()) if limit is not None]
    return min(limits, default=None)


def _slurm_seconds_left() -> float | None:
    job = os.environ.get("SLURM_JOB_ID")
    if job is None:
        return None
    end = os.environ.get("SLURM_JOB_END_TIME")  # since Slurm 22.11
    found = float(end) if end is not None and end.isdigit() else end_of_job(job)
    return None if found is None else found - SLURM_MARGIN - time.time()
