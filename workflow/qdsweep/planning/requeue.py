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
from qdsweep.host.slurm import is_running, requeue
from qdsweep.records.run_dir import RunDir
from qdsweep.records.sweep_dir import Results

PAUSE_SECONDS = 10.0


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
    job = (read_owner(lock) or {}).get("slurm_job")
    if job is None or silent < DEAD_SECONDS or not is_running(job):
        return
    print(
        f"qdsweep: {run.name}: Slurm job {job} has lost its main process "
        f"({silent:.0f} s ago) and does nothing: queued again",
        file=sys.stderr,
    )
    requeue(job)
