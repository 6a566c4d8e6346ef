"""Starts the workers of a run: on this machine, or on the nodes of its Slurm job."""

import os
import subprocess
import sys
from pathlib import Path

from qdsweep.config.cluster import Cluster
from qdsweep.engines.connection import connection_path

# After the hub has sent the workers away; then the starter is told to end them.
LEAVING_SECONDS = 2.0
ENDING_SECONDS = 10.0


class Crew:
    """The process that starts workers, and what it says.

    Workers start, and import what they need, while the main process does the same.

    Args:
        cluster: How many, and on how many nodes.
        run: The run's folder.

    Attributes:
        logs: Where they write what they have to say.
        is_leaving: Whether the hub has sent them away.
    """

    def __init__(self, cluster: Cluster, run: Path) -> None:
        self.is_leaving = False
        self.logs = run / "state" / "workers"
        self.logs.mkdir(parents=True, exist_ok=True)
        file = connection_path(run)
        over_nodes = cluster.nodes > 1 and "SLURM_JOB_ID" in os.environ
        here = cluster.workers_per_node if over_nodes else cluster.workers
        words = [sys.executable, "-m", "qdsweep", "worker", "--connect", str(file)]
        words += ["--workers", str(here)]
        if over_nodes:
            words = [*_srun(cluster, self.logs), *words]
        # Out of this process's group: Ctrl-C asks the main process, which sends them away.
        with (self.logs / "start.log").open("ab") as log:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def is_gone(self) -> bool:
        """Whether all its workers have ended for good."""
        return self._process.poll() is not None

    def close(self) -> None:
        """Waits until the workers have left; makes those leave that the hub could not tell."""
        for seconds, end in (
            (LEAVING_SECONDS if self.is_leaving else 0.0, None),
            (ENDING_SECONDS, self._process.terminate),
            (ENDING_SECONDS, self._process.kill),
        ):
            if end is not None:
                end()
            try:
                self._process.wait(seconds)
                return
            except subprocess.TimeoutExpired:
                continue


def _srun(cluster: Cluster, logs: Path) -> list[str]:
    # One task a node, which forks its workers. A lost node or a worker that dies does not end
    # the step (--no-kill, -K0); the main process shares its node's cores with it (--overlap).
    return [
        "srun",
        "--overlap",
        "--no-kill",
        "--kill-on-bad-exit=0",
        f"--nodes={cluster.nodes}",
        f"--ntasks={cluster.nodes}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={cluster.workers_per_node}",
        "--cpu-bind=none",
        "--job-name=qdsweep-workers",
        f"--output={logs}/node-%N.log",
    ]
