"""Who holds a lock, as its file says, and whether that process still lives.

The clocks of other nodes and of the file system may be wrong: for what is decided here, how long a
file has not changed is measured by the clock of this process alone.
"""

import os
import socket
import time
from pathlib import Path
from typing import Any

from qdsweep.files import read_json_if_whole
from qdsweep.host.slurm import job_details

# How often an owner touches its file, and after how long without that it counts as dead where
# nobody can be asked about it [s].
BEAT_SECONDS = 5.0
DEAD_SECONDS = 60.0


def this_process() -> dict[str, Any]:
    """Returns host, process and Slurm job, as the lock and the list of attempts name them."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "slurm_job": os.environ.get("SLURM_JOB_ID"),
    }


def this_owner() -> dict[str, Any]:
    """Returns this process as its lock names it: no other process ever has the same."""
    job = os.environ.get("SLURM_JOB_ID")
    return {
        **this_process(),
        "began": _began(os.getpid()),
        **_kernel(),
        "restarts": job_details(job).get("Restarts") if job else None,
    }


def read_owner(path: Path) -> dict[str, Any] | None:
    """Returns who holds or held the lock, or None."""
    return read_json_if_whole(path) or None


def describe(owner: dict[str, Any] | None) -> str:
    """Returns an owner in words."""
    if owner is None:
        return "another process"
    job = f", Slurm job {owner['slurm_job']}" if owner.get("slurm_job") else ""
    return f"process {owner.get('pid')} on {owner.get('host')}{job}"


def is_near(owner: dict[str, Any]) -> bool:
    """Returns whether an owner is on this node, where /proc shows it while it lives."""
    here = _kernel()
    there = {key: owner.get(key) for key in here}
    of_earlier_release = there["boot"] is None and owner.get("host") == socket.gethostname()
    return there == here or of_earlier_release


def lives(owner: dict[str, Any]) -> bool | None:
    """Returns whether an owner lives, as far as this node knows; None where it does not."""
    if is_near(owner):
        began = _began(owner.get("pid"))
        is_same = owner.get("began") in (None, began)
        return began is not None and is_same and owner.get("pid") != os.getpid()
    if owner.get("host") == socket.gethostname() and owner.get("boot") != _kernel()["boot"]:
        return False  # it was switched off in between
    job, restarts = owner.get("slurm_job"), owner.get("restarts")
    if job is not None and job == os.environ.get("SLURM_JOB_ID"):
        # Slurm starts a job again once nothing of it runs any more.
        now = job_details(job).get("Restarts")
        return False if None not in (restarts, now) and restarts != now else None
    return None


class Watch:
    """Says how long files have not changed."""

    def __init__(self) -> None:
        self._seen: dict[Path, tuple[object, float]] = {}

    def silent(self, path: Path) -> float:
        """Returns for how long this process has seen no change of a file [s]; 0 at first."""
        look, now = _look(path), time.monotonic()
        before, since = self._seen.get(path, (None, now))
        self._seen[path] = look, since if look == before else now
        return now - self._seen[path][1]


def _look(path: Path) -> object:
    try:
        with path.open("rb") as file:  # NFS asks its server about a file that is opened
            return os.fstat(file.fileno()).st_mtime_ns, file.read()
    except OSError:
        return None


def _kernel() -> dict[str, str | None]:
    """Names what tells whether /proc here shows a process: the boot, and what it numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return {"boot": boot, "pids": os.readlink("/proc/self/ns/pid")}  # noqa: PTH115 - no path
    except OSError:
        return {"boot": None, "pids": None}


def _began(pid: object) -> str | None:
    """Returns when a process began, in ticks since the boot; None where it does not run."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
