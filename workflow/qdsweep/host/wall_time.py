"""The wall time of this process, which ends with its Slurm job, or after `max_seconds`."""

import os
import time

from qdsweep.host.clock import AWAKE
from qdsweep.host.slurm import end_of_job, job_details

# Time for the Snakemakes around a run, and for its workers' step, to end after it [s].
SLURM_MARGIN = 10.0


class WallTime:
    """When this process must have ended: with its Slurm job, or after `max_seconds`.

    Args:
        max_seconds: The limit that the user gave, which a suspension extends [s]; None for none.
    """

    def __init__(self, max_seconds: float | None) -> None:
        self._own_end = None if max_seconds is None else AWAKE.now() + max_seconds
        self._suspended = AWAKE.suspended()
        self._job_end = _end_of_this_job()

    def end(self, margin: float = 0.0, *, has_begun: bool = True) -> float | None:
        """Returns the time of the clock `AWAKE`; None without a limit.

        Args:
            margin: How much earlier [s].
            has_begun: Whether this start has done some work. The user's limit waits for that.
        """
        suspended = AWAKE.suspended()
        if suspended != self._suspended:  # Slurm extends a job that it has suspended, and no other
            self._suspended = suspended
            job_details.cache_clear()
            self._job_end = _end_of_this_job(asks=True) or self._job_end
        limits = [self._own_end] if has_begun else []
        limits.append(None if self._job_end is None else self._job_end - suspended)
        return min((limit - margin for limit in limits if limit is not None), default=None)


def _end_of_this_job(*, asks: bool = False) -> float | None:
    """Returns the end of this Slurm job, as `time.monotonic` counts; None where it is unknown."""
    job = os.environ.get("SLURM_JOB_ID")
    if job is None:
        return None
    given = os.environ.get("SLURM_JOB_END_TIME", "")  # since Slurm 22.11
    # A past end is that of a job whose time was extended, or of an ended one in an old tmux.
    known = not asks and given.isdigit() and float(given) > time.time()
    end = float(given) if known else end_of_job(job)
    if end is None or end < time.time():
        return None
    return time.monotonic() + end - SLURM_MARGIN - time.time()
