"""The lock of a run or a stage: one process at a time writes its files.

flock() separates them where the file system supports it well. Elsewhere it does nothing, acts only
within a node, or is refused. The lock then uses properties of every file system: a file that only
one process can create (O_EXCL), the owner's name, and its heartbeat.

The clocks of other nodes and of the file system may be wrong. Decisions therefore use only the
clock of this process to measure how long a file has not changed.
"""

import fcntl
import json
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from qdsweep.errors import STOPPED, QdsweepError
from qdsweep.files import naming
from qdsweep.host.owner import describe, is_near, lives, read_owner, this_owner
from qdsweep.host.slurm import has_ended

# An owner touches its file at the first interval. Where neither the kernel nor Slurm knows about
# it, it counts as dead after the second interval without a touch [s].
BEAT_SECONDS = 5.0
DEAD_SECONDS = 60.0

# The default wait for the lock, longer than until a dead owner counts as dead [s].
WAIT_SECONDS = 75.0
# The delay until the last files of an owner on another node are visible here [s].
SETTLE_SECONDS = 3.0
# Users of one group take turns, as far as the umask lets them.
_MODE = 0o666


class FileWatch:
    """Measures how long files have not changed.

    A process that was suspended has not looked. So of the time between two looks, at most half of
    `DEAD_SECONDS` counts: it needs another look after a suspension.
    """

    def __init__(self) -> None:
        self._seen: dict[Path, tuple[object, float, float]] = {}

    def silent(self, path: Path) -> float:
        """Returns for how long this process has seen no change of a file [s]; 0 at first."""
        look, now = _look(path), time.monotonic()
        before, counted, last = self._seen.get(path, (None, 0.0, now))
        counted += min(now - last, DEAD_SECONDS / 2)
        self._seen[path] = look, counted if look == before else 0.0, now
        return self._seen[path][1]

    def begin(self, path: Path) -> None:
        """Measures from the next look on."""
        self._seen.pop(path, None)

    def is_held(self, lock: Path) -> bool:
        """Returns whether a process seems to hold a lock now, with any clocks of other nodes."""
        if not is_alive(lock):
            return False
        return lives(read_owner(lock) or {}) or self.silent(lock) < DEAD_SECONDS


def _look(path: Path) -> object:
    try:
        with path.open("rb") as file:  # NFS asks its server about a file that is opened
            return os.fstat(file.fileno()).st_mtime_ns, file.read()
    except OSError:
        return None


class Locked(QdsweepError):
    """Another process has the run; the same command can be tried later."""

    exit_code = STOPPED


def busy(path: Path) -> Locked:
    """Returns the error for a run that another process has."""
    return Locked(
        f"{path}: the run is being computed by {describe(read_owner(path))}; wait for it, or end "
        "it there"
    )


class Lock:
    """A context manager that holds `state/lock`, and writes its owner into it.

    It is free as soon as this node or Slurm detects that the owner is dead. Otherwise it is free
    when the owner's last heartbeat is `DEAD_SECONDS` old. A process that was suspended for that
    time and has lost the lock ends before it writes.

    Args:
        path: The file.
        wait: How long to wait for another owner [s].
        watch: Has already watched the file.
        terminal: Gets a line if only heartbeats show whether the owner lives; None: the standard
            error output.
    """

    def __init__(
        self,
        path: Path,
        wait: float = WAIT_SECONDS,
        watch: FileWatch | None = None,
        terminal: TextIO | None = None,
    ) -> None:
        self.path = path
        self.wait = wait
        self._file: int | None = None
        self._content = b""
        self._done = threading.Event()
        self._watch = watch or FileWatch()
        self._ask_at = 0.0
        self._is_moved = False  # the last owner was on another node
        self._terminal = terminal
        self._awaited = ""

    def __enter__(self) -> "Lock":
        self.path.parent.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + self.wait
        while not self._try():
            if time.monotonic() >= deadline:
                raise busy(self.path)
            time.sleep(min(0.5, max(0.0, deadline - time.monotonic())))
        threading.Thread(target=self._beat, daemon=True).start()
        if self._is_moved:
            time.sleep(SETTLE_SECONDS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()  # first: an empty file is a lost lock for `_beat`
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # the owner's work is done, even if this fails
                if self.path.read_bytes() == self._content:
                    os.truncate(file, 0)
            with suppress(OSError):
                os.close(file)

    def _try(self) -> bool:
        # Workers must not inherit the file: they would hold the lock after their main process was
        # killed.
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
        try:
            self._file = file if self._take(file) else None
        finally:
            if self._file is None:
                os.close(file)
        return self._file is not None

    def _take(self, file: int) -> bool:
        """Becomes the owner, if there is none."""
        if not _granted(file, fcntl.LOCK_EX) or not self._is_ours(file):
            return False
        owner = read_owner(self.path)
        if owner:
            self._is_moved = not is_near(owner)
            if not self._is_dead(owner):
                return False
        with self._alone() as is_alone:
            if not is_alone or read_owner(self.path) != owner:
                return False
            self._content = json.dumps(this_owner()).encode()
            with naming(self.path):
                # A kill in between leaves an empty file: it names no owner, so the lock is free.
                os.truncate(file, 0)
                os.write(file, self._content)
                os.fsync(file)  # so that other nodes can read it
        return True

    def _is_ours(self, file: int) -> bool:
        """Returns whether the path still names this open file."""
        try:
            return os.fstat(file).st_ino == self.path.stat().st_ino
        except OSError:
            return False

    def _is_dead(self, owner: dict[str, Any]) -> bool:
        alive = lives(owner)
        if alive is not None:
            return not alive
        if self._watch.silent(self.path) >= DEAD_SECONDS or self._has_ended(owner):
            return True
        if self.wait and self._awaited != (awaited := describe(owner)):
            self._awaited = awaited
            _explain_wait(self.path, awaited, self._terminal or sys.stderr)
        return False

    def _has_ended(self, owner: dict[str, Any]) -> bool:
        """Asks Slurm, which may be slow, at most once in `BEAT_SECONDS`."""
        job = owner.get("slurm_job")
        if job in (None, os.environ.get("SLURM_JOB_ID")) or time.monotonic() < self._ask_at:
            return False
        self._ask_at = time.monotonic() + BEAT_SECONDS
        return has_ended(job)

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Lets only one process at a time look for an owner, and become the owner."""
        claim = self.path.with_name(f"{self.path.name}.claim")
        try:
            file = os.open(claim, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
        except FileExistsError:
            # The file exists for milliseconds; an old one belongs to a killed process. It is empty
            # if that was killed at once. One that was suspended there sees the new owner.
            owner = read_owner(claim)
            limit = DEAD_SECONDS if owner else BEAT_SECONDS
            if lives(owner or {}) is False or self._watch.silent(claim) >= limit:
                claim.unlink(missing_ok=True)
            yield False
            return
        try:
            with naming(claim):
                try:
                    os.write(file, json.dumps(this_owner()).encode())
                finally:
                    os.close(file)
            yield True
        finally:
            claim.unlink(missing_ok=True)

    def _beat(self) -> None:
        while not self._done.wait(BEAT_SECONDS):
            if self._file is not None:
                with suppress(OSError):
                    os.utime(self._file)
            if self._is_lost():
                print(
                    f"qdsweep: {self.path}: {describe(read_owner(self.path))} took over, because "
                    "this process stopped sending heartbeats. It ends, and writes nothing more",
                    file=sys.stderr,
                    flush=True,
                )
                os._exit(Locked.exit_code)

    def _is_lost(self) -> bool:
        try:
            content = self.path.read_bytes()
        except OSError:  # a removed folder is reported by the next write
            return False
        return content != self._content and not self._done.is_set()


def _explain_wait(path: Path, owner: str, terminal: TextIO) -> None:
    print(
        f"qdsweep: {path}: waiting for {owner}. It is on another machine, in another container, or "
        "of the time before a restart, so only heartbeats show whether it lives. It counts as dead "
        f"after {DEAD_SECONDS:.0f} s without one",
        file=terminal,
        flush=True,
    )


def _granted(file: int, operation: int) -> bool:
    """Returns whether flock() finds no other holder; also where the file system has no flock()."""
    try:
        fcntl.flock(file, operation | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # ENOLCK, ENOSYS, EOPNOTSUPP
        return True
    return True


def is_alive(path: Path) -> bool:
    """Returns whether a process seems to hold the lock now, for displays.

    For an owner on another node, the time of the file decides, if all clocks are right.
    """
    if _is_locked(path):
        return True
    try:
        about = path.stat()
    except OSError:
        return False
    owner = read_owner(path) if about.st_size else None  # most runs have no owner
    if owner is None:
        return False
    alive = lives(owner)
    return time.time() - about.st_mtime < DEAD_SECONDS if alive is None else alive


def _is_locked(path: Path) -> bool:
    """Returns whether flock() finds a holder."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _granted(file, fcntl.LOCK_SH)
    finally:
        os.close(file)


def may_be_alive(path: Path) -> bool:
    """Returns whether a process may hold the lock; no clock is trusted."""
    if is_alive(path):
        return True
    owner = read_owner(path) or {}
    if not owner or lives(owner) is not None:
        return False
    job = owner.get("slurm_job")
    return job is None or not has_ended(job)


def held(paths: Iterable[Path]) -> set[Path]:
    """Returns the locks whose owners live; it waits for heartbeats where only they show it."""
    watch = FileWatch()
    silent = {path: watch.silent(path) for path in paths if may_be_alive(path)}
    known = {path for path in silent if _is_locked(path) or lives(read_owner(path) or {})}
    for path in silent.keys() - known:
        _explain_wait(path, describe(read_owner(path)), sys.stderr)
    while waits := [path for path in silent.keys() - known if silent[path] < DEAD_SECONDS]:
        time.sleep(0.5)
        silent |= {path: watch.silent(path) for path in waits}
        known |= {path for path in waits if silent[path] == 0}
    return known
