"""`qdsweep worker` for a run of the ray engine: a node of its Ray cluster."""

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

# Of a node, for parts that are too large for a message [B].
MEMORY = 200_000_000
# Ray's processes by their environment, or where Ray has written a title over that, by their log
# files, one of which the process itself has open while it ends.
JANITOR = """cat
ours() { grep -ls "$0" /proc/[0-9]*/environ; find /proc/[0-9]*/fd -lname "$0/*"; }
kill -9 $(ours | cut -d/ -f3 | grep -vx $PPID)
rm -rf "$0" || { sleep 2; rm -rf "$0"; }"""


class Scratch:
    """A folder for Ray's sockets and logs. It vanishes when this process has ended, in any way.

    Ray's remaining processes end with it: after a kill some of them stay for minutes.

    Attributes:
        path: The folder: short, as names of sockets have at most 107 characters.
    """

    def __init__(self) -> None:
        usual = tempfile.gettempdir()
        self.path = tempfile.mkdtemp(prefix="qdsweep-", dir=usual if len(usual) <= 14 else "/tmp")
        self._janitor = subprocess.Popen(  # it reads from this process until that has ended
            ["sh", "-c", JANITOR, self.path],
            env={"PATH": os.defpath},  # nothing of an earlier folder, whose janitor would end it
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def environment(self, token: Path) -> dict[str, str]:
        """Returns the variables of all Ray processes, with the file of the run's token."""
        return {
            "RAY_TMPDIR": self.path,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_memory_monitor_refresh_ms": "0",  # memory is Slurm's business
            "RAY_worker_register_timeout_seconds": "600",  # a hundred may start at once
        }


def work(run: Path, workers: int, patience: float) -> None:
    """Is a node of a run's Ray cluster until that ends.

    Args:
        run: The run's folder.
        workers: How many worker processes the node can have.
        patience: How long to look for the run's main process [s].

    Raises:
        QdsweepError: There is no main process.
    """
    file = RunDir(run).state.connection
    deadline = time.monotonic() + patience
    while not answers(address := str((about := read_json_if_whole(file)).get("address"))):
        if time.monotonic() > deadline:
            raise QdsweepError(f"{file}: no main process found for {patience:.0f} s")
        time.sleep(0.1)
    os.environ.pop("RAY_AUTH_TOKEN", None)  # of another cluster
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
    while node.poll() is None and answers(address):
        time.sleep(1)
    node.terminate()
    node.wait()


def answers(address: str) -> bool:
    """Returns whether a process listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=30).close()
    except (OSError, ValueError):
        return False
    return True
