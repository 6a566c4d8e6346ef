"""The lock of a run: one process at a time writes to its folder."""

import fcntl
import json
import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from qdsweep.errors import QdsweepError
from qdsweep.files import naming, read_json_if_whole

# How often the owner touches the file, and after how long without that it counts as dead [s].
# Only needed where flock() does not work across nodes (some Lustre and NFS mounts).
BEAT_SECONDS = 5.0
DEAD_SECONDS = 60.0
WAIT_SECONDS = 60.0


class Locked(QdsweepError):
    """Another process has the run. Exit code 75: try again later."""

    exit_code = 75


class Lock:
    """A context manager that holds `state/lock`, and writes its owner into it.

    The system frees it when the process dies, in whatever way.

    Args:
        path: The file.
        wait: How long to wait for another owner [s].
    """

    def __init__(self, path: Path, wait: float = WAIT_SECONDS) -> None:
        self.path = path
        self.wait = wait
        self._file: int | None = None
        self._done = threading.Event()

    def __enter__(self) -> "Lock":
        self.path.parent.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + self.wait
        while not self._try():
            if time.monotonic() >= deadline:
                raise Locked(
                    f"{self.path}: the run is being computed by {describe(read_owner(self.path))}: "
                    "wait for it, or end it there"
                )
            time.sleep(min(0.5, max(0.0, deadline - time.monotonic())))
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # what the owner did is done, whatever is said of it here
                os.truncate(file, 0)
                os.close(file)

    def _try(self) -> bool:
        # Workers must not inherit it: they would hold the lock after their main process was killed.
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return False
        if not self._is_ours(file):  # it was removed or replaced in between
            os.close(file)
            return False
        owner = read_owner(self.path)
        elsewhere = owner and owner.get("host") != socket.gethostname()
        if elsewhere and time.time() - os.fstat(file).st_mtime < DEAD_SECONDS:
            os.close(file)
            return False
        with naming(self.path):
            os.truncate(file, 0)
            os.write(file, json.dumps(this_process()).encode())
        self._file = file
        return True

    def _is_ours(self, file: int) -> bool:
        try:
            return os.fstat(file).st_ino == self.path.stat().st_ino
        except OSError:
            return False

    def _beat(self) -> None:
        while not self._done.wait(BEAT_SECONDS):
            if self._file is not None:
                with suppress(OSError):
                    os.utime(self._file)


def this_process() -> dict[str, Any]:
    """Returns host, process and Slurm job, as the lock and the list of attempts name them."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "slurm_job": os.environ.get("SLURM_JOB_ID"),
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


def is_alive(path: Path) -> bool:
    """Returns whether somebody holds the lock now."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        if not os.fstat(file).st_size:  # of most runs
            return False
        owner = read_owner(path)
        return bool(
            owner
            and owner.get("host") != socket.gethostname()
            and time.time() - os.fstat(file).st_mtime < DEAD_SECONDS
        )
    finally:
        os.close(file)
