"""Slurm jobs that have lost their first node, with the main process, are queued again.

A job over several nodes survives a lost node (--no-kill). If that was the first one, the others
stay allocated with nothing to do until the wall time ends, and no process is left there that could
report it. The main Snakemake sees it by the run's lock, which nobody touches any more.
"""

import sys
import threading
import time
from collections.abc import Iterable

from qdsweep.host.owner import DEAD_SECONDS, Watch, read_owner
from qdsweep.host.slurm import requeue, running_since
from qdsweep.records.run_dir import RunDir
from qdsweep.records.sweep_dir import Results

PAUSE_SECONDS = 10.0
# How long a job that was started again may take until its main process has the lock: two starts of
# Snakemake, perhaps of an image, on a busy file system.
START_SECONDS = 600.0


def requeue_lost(runs: Iterable[str], results: Results) -> None:
    """Starts a thread that queues lost jobs again; it ends with this process.

    Args:
        runs: Run ids.
        results: The folder results/.
    """
    folders = [results.run(run) for run in runs]
    watch = Watch()

    def look() -> None:
        while True:
            time.sleep(PAUSE_SECONDS)
            for run in folders:
                _check(run, watch)

    threading.Thread(target=look, daemon=True).start()


def _check(run: RunDir, watch: Watch) -> None:
    lock = run.state.lock
    silent = watch.silent(lock)
    owner = read_owner(lock) or {}
    job = owner.get("slurm_job")
    if job is None or silent < DEAD_SECONDS or (running := running_since(job)) is None:
        return
    restarts, seconds = running
    if restarts != owner.get("restarts") and seconds < START_SECONDS:
        return  # it starts, and has not come to the run yet
    print(
        f"qdsweep: {run.name}: Slurm job {job} has lost its main process "
        f"({silent:.0f} s ago) and does nothing: queued again",
        file=sys.stderr,
    )
    requeue(job)
