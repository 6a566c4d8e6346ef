"""When this process must be gone: the end of its Slurm job, or `max_seconds`."""

import os
import re
import subprocess
import time
from datetime import datetime


def seconds_left(max_seconds: float | None) -> float | None:
    """Seconds until the run must have ended, or None for no limit.

    Args:
        max_seconds: The limit that the user gave [s], or None.
    """
    limits = [limit for limit in (max_seconds, _slurm_seconds_left()) if limit is not None]
    return min(limits, default=None)


def _slurm_seconds_left() -> float | None:
    job = os.environ.get("SLURM_JOB_ID")
    if job is None:
        return None
    end = os.environ.get("SLURM_JOB_END_TIME")
    if end is not None and end.isdigit():
        return int(end) - time.time()
    try:  # Slurm before 22.11 does not say it in the environment
        text = subprocess.run(
            ["scontrol", "show", "job", job], capture_output=True, text=True, timeout=30
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"EndTime=(\d{4}-\S+)", text)
    return datetime.fromisoformat(found[1]).timestamp() - time.time() if found else None
