"""The owner of a lock: the process that its file names, and whether this process lives."""

import os
import socket
from pathlib import Path
from typing import Any

from qdsweep.files import read_json_if_whole
from qdsweep.host.slurm import job_details


def this_process() -> dict[str, Any]:
    """Returns host, process and Slurm job, as the lock and the list of attempts name them."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "slurm_job": os.environ.get("SLURM_JOB_ID"),
    }


def this_owner() -> dict[str, Any]:
    """Returns this process as its lock names it: the name is unique."""
    job = os.environ.get("SLURM_JOB_ID")
    return {
        **this_process(),
        "began": _began(os.getpid()),
        **_kernel(),
        "restarts": job_details(job).get("Restarts") if job else None,
    }


def read_owner(path: Path) -> dict[str, Any] | None:
    """Returns the process that holds or held the lock, or None."""
    return read_json_if_whole(path) or None


def describe(owner: dict[str, Any] | None) -> str:
    """Returns an owner in words."""
    if owner is None:
        return "another process"
    job = f", Slurm job {owner['slurm_job']}" if owner.get("slurm_job") else ""
    return f"process {owner.get('pid')} on {owner.get('host')}{job}"


def is_near(owner: dict[str, Any]) -> bool:
    """Returns whether an owner is in this boot and pid namespace, where /proc shows it.

    The name of the host decides nothing: cloned machines share it, and their machine id.
    """
    own_kernel = _kernel()
    return None not in own_kernel.values() and own_kernel == {
        key: owner.get(key) for key in own_kernel
    }


def lives(owner: dict[str, Any]) -> bool | None:
    """Returns whether an owner lives, by the knowledge of this node; None if it is unknown.

    If it is unknown, only heartbeats decide: this node may have been restarted since, or another
    one may have its name.
    """
    if is_near(owner):
        began = _began(owner.get("pid"))
        if began is None and _is_hidden(owner.get("pid")):
            return None
        is_same = owner.get("began") in (None, began)
        return began is not None and is_same and owner.get("pid") != os.getpid()
    is_of_earlier_release = "boot" not in owner and owner.get("host") == socket.gethostname()
    if is_of_earlier_release and _began(owner.get("pid")) is not None:
        return True
    job, restarts = owner.get("slurm_job"), owner.get("restarts")
    if job is not None and job == os.environ.get("SLURM_JOB_ID"):
        # Slurm restarts a job only when no part of it runs any more.
        count = job_details(job).get("Restarts")
        return False if None not in (restarts, count) and restarts != count else None
    return None


def _kernel() -> dict[str, str | None]:
    """Returns boot and pid namespace, which decide whether /proc here shows a process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return {"boot": boot, "pids": os.readlink("/proc/self/ns/pid")}  # noqa: PTH115 - no path
    except OSError:
        return {"boot": None, "pids": None}


def _began(pid: object) -> str | None:
    """Returns when a process began, in ticks since the boot; None where it does not run."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    # See proc(5). The fields before the first one are pid and name, and a name may have blanks. So
    # these are the fields 3, the state (zombie or dead), and 22, starttime.
    return None if fields[0] in "ZX" else fields[19]


def _is_hidden(pid: object) -> bool:
    """Returns whether a process exists that /proc does not show (another user's, by hidepid)."""
    try:
        os.kill(int(str(pid)), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, OverflowError):
        pass
    return False
