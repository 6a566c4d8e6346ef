"""A watch over Slurm jobs that have lost their first node, where the main process was.

A job over several nodes outlives a lost node (--no-kill). If that is the first one, Slurm leaves
the others allocated with nothing to do until the wall time ends; no process of ours is left there
to say so. The controlling Snakemake sees it by the run's lock and has the job queued again.
"""

import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from qdsweep.host.lock import DEAD_SECONDS, read_owner
from qdsweep.host.slurm import is_running, requeue

PAUSE_SECONDS = 10.0


def watch_jobs(runs: Iterable[str], runs_dir: Path) -> None:
    """Starts the watch, which ends with this process.

    Args:
        runs: Run ids.
        runs_dir: `results/runs`.
    """
    locks = [runs_dir / run / "state" / "lock" for run in runs]

    def watch() -> None:
        while True:
            time.sleep(PAUSE_SECONDS)
            for lock in locks:
                _check(lock)

    threading.Thread(target=watch, daemon=True).start()


def _check(lock: Path) -> None:
    try:
        silent = time.time() - lock.stat().st_mtime
    except OSError:
        return
    job = (read_owner(lock) or {}).get("slurm_job")
    if job is None or silent < DEAD_SECONDS or not is_running(job):
        return
    print(
        f"qdsweep: {lock.parent.parent.name}: Slurm job {job} has lost its main process "
        f"({silent:.0f} s ago) and does nothing: queued again",
        file=sys.stderr,
    )
    requeue(job)
