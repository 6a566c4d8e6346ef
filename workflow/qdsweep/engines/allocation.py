"""The processes that start a run's workers on this machine or on the nodes of its Slurm job."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from qdsweep.config.cluster import Cluster
from qdsweep.records.paths import RunDir

# Time for workers to leave on request, and then to end after SIGTERM and after SIGKILL [s].
LEAVING_SECONDS = 2.0
ENDING_SECONDS = 10.0
PYTHON = (sys.executable, "-P", "-m", "qdsweep")
# The pid of the main process for `qdsweep worker`, if that is its parent.
MAIN = "QDSWEEP_MAIN"


def start_helpers(cluster: Cluster, run: Path, qdsweep: Sequence[str] = PYTHON) -> int:
    """Starts `qdsweep worker` on each node, and returns the pid of the process that started them.

    Workers start and import their libraries while the main process does the same.

    Args:
        cluster: The cluster config, with the numbers of workers and nodes.
        run: The run's folder, absolute.
        qdsweep: The command of qdsweep on each node, which may enter an image.
    """
    state = RunDir(run).state
    state.workers.mkdir(parents=True, exist_ok=True)
    here = cluster.workers_per_node if cluster.over_nodes() else cluster.workers
    words = [*qdsweep, "worker", "--connect", str(state.connection), "--workers", str(here)]
    words += ["--engine", cluster.engine_name]
    env = os.environ.copy()
    if cluster.over_nodes():
        words = [*_srun(cluster, state.workers), *words]
    elif qdsweep == PYTHON:  # the workers need not enter an image
        env[MAIN] = str(os.getpid())
    # They have their own process group: Ctrl-C must reach only the main process, which ends them.
    with (state.workers / "start.log").open("ab") as log:
        return psutil.Popen(
            words,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ).pid


class Helpers:
    """The processes of `start_helpers`, for the main process.

    Args:
        pid: The result of `start_helpers`. The process may run outside this process's image.
        run: The run's folder.

    Attributes:
        logs: The folder of the workers' logs.
        are_leaving: Whether the workers were asked to leave.
    """

    def __init__(self, pid: int, run: Path) -> None:
        self.are_leaving = False
        self.logs = RunDir(run).state.workers
        self._process: psutil.Process | None = None
        with contextlib.suppress(psutil.NoSuchProcess):
            self._process = psutil.Process(pid)

    def are_gone(self) -> bool:
        """Returns whether all workers have ended permanently."""
        try:
            return self._process is None or (
                not self._process.is_running() or self._process.status() == psutil.STATUS_ZOMBIE
            )
        except psutil.NoSuchProcess:
            return True

    def close(self) -> None:
        """Waits for the workers that were asked to leave, and then ends the others."""
        for seconds, end in (
            (LEAVING_SECONDS if self.are_leaving else 0.0, None),
            (ENDING_SECONDS, signal.SIGTERM),
            (ENDING_SECONDS, signal.SIGKILL),
        ):
            if end is not None and self._process is not None:
                with contextlib.suppress(psutil.NoSuchProcess):
                    self._process.send_signal(end)
            deadline = time.monotonic() + seconds
            while not self.are_gone():
                if time.monotonic() >= deadline:
                    break
                time.sleep(0.01)
            else:
                return


def _srun(cluster: Cluster, logs: Path) -> list[str]:
    # One task for each node, which forks its workers. The step continues if a node is lost or a
    # worker dies (--no-kill, -K0), and shares its cores with the main process (--overlap).
    # Ray already has workers on the first node, that of the main process.
    first = 1 if cluster.engine_name == "ray" else 0
    return [
        "srun",
        "--overlap",
        "--no-kill",
        "--kill-on-bad-exit=0",
        f"--relative={first}",
        f"--nodes={cluster.nodes - first}",
        f"--ntasks={cluster.nodes - first}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={cluster.workers_per_node}",
        "--cpu-bind=none",
        "--job-name=qdsweep-workers",
        f"--output={logs}/node-%N.log",
    ]
