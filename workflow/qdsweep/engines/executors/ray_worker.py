"""`qdsweep worker` for a run with the ray engine, as a node of its Ray cluster."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from signal import SIGTERM

from qdsweep.engines.children import die_with_parent
from qdsweep.errors import QdsweepError
from qdsweep.files import read_json_if_whole
from qdsweep.records.paths import RunDir

# Ray's memory on a node for parts that are too large for a message [B].
MEMORY = 200_000_000
# It finds Ray's processes by their environment. Where Ray has written a title over that, it finds
# them by their open log files, one of which this process also has open while it ends.
JANITOR = """cat
ours() { grep -ls "$0" /proc/[0-9]*/environ; find /proc/[0-9]*/fd -lname "$0/*"; }
kill -9 $(ours | cut -d/ -f3 | grep -vx $PPID)
rm -rf "$0" || { sleep 2; rm -rf "$0"; }"""


class Scratch:
    """A folder for Ray's sockets and logs, which is removed however this process ends.

    Ray's remaining processes are ended then, because some of them stay for minutes after a kill.

    Attributes:
        path: The folder. It is short, because names of sockets have at most 107 characters.
    """

    def __init__(self) -> None:
        usual = tempfile.gettempdir()
        self.path = tempfile.mkdtemp(prefix="qdsweep-", dir=usual if len(usual) <= 14 else "/tmp")
        self._janitor = subprocess.Popen(  # it reads from this process until this has ended
            ["sh", "-c", JANITOR, self.path],
            env={"PATH": os.defpath},  # without an earlier folder, whose janitor would end it
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def environment(self, token: Path) -> dict[str, str]:
        """Returns the environment of all Ray processes, with the file of the run's token."""
        return {
            "RAY_TMPDIR": self.path,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_memory_monitor_refresh_ms": "0",  # Slurm limits the memory
            "RAY_worker_register_timeout_seconds": "600",  # a hundred workers may start at once
        }


def work_with_ray(run: Path, workers: int, patience: float) -> None:
    """Runs a node of a run's Ray cluster until the cluster ends.

    Args:
        run: The run's folder.
        workers: Number of worker processes that the node can have.
        patience: How long to look for the run's main process [s].

    Raises:
        QdsweepError: There is no main process.
    """
    file = RunDir(run).state.connection
    deadline = time.monotonic() + patience
    while not is_listening(address := str((about := read_json_if_whole(file)).get("address"))):
        if time.monotonic() > deadline:
            raise QdsweepError(f"{file}: no main process found for {patience:.0f} s")
        time.sleep(0.1)
    os.environ.pop("RAY_AUTH_TOKEN", None)  # it may belong to another cluster
    scratch = Scratch()
    node = subprocess.Popen(
        [
            *(sys.executable, "-P", "-m", "ray.scripts.scripts", "start", "--block"),
            *("--address", address, "--num-cpus", str(workers), "--disable-usage-stats"),
            *("--object-store-memory", str(MEMORY)),
        ],
        env={**os.environ, **about["settings"], **scratch.environment(file.parent / "token")},
        preexec_fn=partial(die_with_parent, SIGTERM),
    )
    while node.poll() is None and is_listening(address):
        time.sleep(1)
    node.terminate()
    node.wait()


def is_listening(address: str) -> bool:
    """Returns whether a process listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=30).close()
    except (OSError, ValueError):
        return False
    return True
