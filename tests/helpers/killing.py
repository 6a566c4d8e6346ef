"""Real commands and jobs that start fast, so tests can kill them hundreds of times.

Imports and numba's compilation, which take seconds at each start, are done once in this process.
`snakemake`, `qdsweep` and the warm process, which here outlives Snakemake, are forks of it.
Everything else is unchanged: Snakemake starts jobs, and jobs start engines, ranks and workers.

A process stops at a moment that a test has named (`stop_at`), so that the test can kill any
process there. See `_arm` for the moments; `evaluation` is a moment of the domain in counting.py.
"""

import atexit
import contextlib
import importlib
import logging
import os
import pickle
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import psutil
from in_process import forget_plugins
from support import REPO
from waiting import wait_until

PREPARED = (
    *("snakemake.cli", "snakemake.workflow", "snakemake.report", "qdsweep.experiment.run"),
    *("qdsweep.planning.checks", "qdsweep.planning.start", "qdsweep.analysis.turns"),
)


@contextlib.contextmanager
def warm_process(folder: Path) -> Iterator[Path]:
    """Forks a warm process from this one, and yields its socket, whose path must be short."""
    from qdsweep.cli import main
    from qdsweep.warm import server

    server.prepare_stages()
    path = folder / "warm"
    end, begin = os.pipe()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1024)
        pid = os.fork()
        if not pid:
            os.close(begin)
            _leave(folder / "warm.log", folder, end)
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            with _ending():
                server._Server(listener, main).serve()
    os.close(end)
    try:
        yield path
    finally:
        os.close(begin)
        os.waitpid(pid, 0)


def stop_at(folder: Path, moment: str, number: int = 1) -> None:
    """Stops the first process of a folder that reaches a moment this many times."""
    (folder / "next").write_text(f"{number} {moment}")
    (folder / "next").rename(folder / "stop")  # whole, as another process reads it


def stopped(folder: Path) -> int | None:
    """Returns the process that waits at the moment."""
    with contextlib.suppress(FileNotFoundError):
        return int((folder / "stopped").read_text())
    return None


def go_on(folder: Path) -> None:
    """Lets it continue, if it has not been killed."""
    (folder / "stopped").unlink(missing_ok=True)


_reached = Counter[str]()


def _reach(moment: str) -> None:
    """Waits here, if the file `stop` of this folder names the moment."""
    try:
        number, wanted = Path("stop").read_text().split(" ", 1)
        if wanted != moment:
            return
        _reached[moment] += 1
        if _reached[moment] < int(number):
            return
        os.rename("stop", "claimed")  # noqa: PTH104 - only one process can
    except FileNotFoundError:
        return
    Path("waits").write_text(str(os.getpid()))  # another one may still read the first file
    os.rename("waits", "stopped")  # noqa: PTH104
    while Path("stopped").exists():
        time.sleep(0.01)


class _Halved:
    """A file with a moment in the middle of each write."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> "_Halved":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def write(self, content: Any) -> int:
        view = pickle.PickleBuffer(content).raw()
        half = len(view) // 2
        if half < 1000:  # without the payload
            return self._file.write(content)
        first = self._file.write(view[:half])
        self._file.flush()
        _reach("half the bytes")
        return first + self._file.write(view[half:])


def _arm() -> None:
    """Gives this process its moments: in a save, in a learner, and before a file has its name."""
    from qdsweep.algorithms.ribs.archive_algorithm import ArchiveAlgorithm
    from qdsweep.experiment.state import Pending
    from qdsweep.experiment.stop import Stop

    fsync, replace, opened, deferred = os.fsync, Path.replace, Path.open, Stop.deferred

    def is_reload(path: Path) -> bool:
        return path.name.startswith(".reload-")

    def open_(path: Path, *arguments: Any, **named: Any) -> Any:
        file = opened(path, *arguments, **named)
        if not is_reload(path):
            return file
        _reach("after open")
        return _Halved(file)

    def fsync_(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if is_reload(path):
            _reach("before fsync")
        elif path.name == "state":
            _reach("before fsync of folder")
        fsync(descriptor)

    def replace_(path: Path, target: Path) -> Path:
        _reach("before rename" if is_reload(path) else f"before {Path(target).name}")
        return replace(path, target)

    @contextlib.contextmanager
    def deferred_(stop: Stop) -> Iterator[None]:
        with deferred(stop):
            _reach("training")
            yield

    def then(owner: type, name: str, moment: str) -> None:
        original = getattr(owner, name)

        @wraps(original)
        def followed(*arguments: Any) -> Any:
            returned = original(*arguments)
            _reach(moment)
            return returned

        setattr(owner, name, followed)

    os.fsync = fsync_
    Path.open, Path.replace, Stop.deferred = open_, replace_, deferred_  # type: ignore
    then(Pending, "put", "outcome")
    then(ArchiveAlgorithm, "insert", "tell")


class Start:
    """A start of a command in its own process group.

    Args:
        folder: The working directory, where `printed.txt` has its output.
        words: Its options.
        env: Further variables of its environment; QDSWEEP_WARM is a warm process's socket.
        program: snakemake or qdsweep.
    """

    def __init__(
        self,
        folder: Path,
        words: list[object],
        env: Mapping[str, str],
        program: str = "snakemake",
    ) -> None:
        for name in PREPARED:
            importlib.import_module(name)
        self.folder, self.printed = folder, folder / "printed.txt"
        self.printed.write_text("")
        self.code: int | None = None
        self.pid = os.fork()
        if not self.pid:
            _leave(self.printed, folder, os.open(os.devnull, os.O_RDONLY))
            os.environ.update(env)
            tempfile.tempdir = None
            whole = ["-s", REPO / "Snakefile"] if program == "snakemake" else []
            sys.argv = [program, *map(str, [*whole, *words])]
            module = "snakemake.cli" if program == "snakemake" else "qdsweep.cli"
            with _ending():
                sys.exit(sys.modules[module].main(sys.argv[1:]))  # type: ignore[attr-defined]

    def has_ended(self) -> bool:
        """Whether it has ended; sets `code`."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def begins(self, text: str = "\n[") -> float:
        """Waits until it reports the start or end of a job; returns the time that this took [s]."""
        start = time.monotonic()
        wait_until(lambda: self.has_ended() or self.says(text), 300, "a job")
        return time.monotonic() - start

    def says(self, text: str) -> bool:
        return text in self.printed.read_text()

    def lives(self, seconds: float) -> bool:
        """Whether it has not ended within some time."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and not self.has_ended():
            time.sleep(min(0.02, left))
        return not self.has_ended()

    def kill(self, with_jobs: bool) -> list[psutil.Process]:
        """Sends SIGKILL to its whole group; returns the other live processes in its folder.

        Args:
            with_jobs: Also for its jobs, which are forks of the warm process in other groups.
        """
        jobs = living(self.folder) if with_jobs else []
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:  # it does not have its own group yet
            os.kill(self.pid, signal.SIGKILL)
        for job in jobs:
            if _is_job(job):
                with contextlib.suppress(psutil.NoSuchProcess):
                    job.kill()
        os.waitpid(self.pid, 0)
        self.code = -signal.SIGKILL
        return living(self.folder)


def living(folder: Path) -> list[psutil.Process]:
    """Returns the processes that work in a folder or below it, without this one.

    This includes processes elsewhere that were started with the folder as KILLED_IN.
    """
    there = []
    for process in psutil.process_iter(["cwd", "environ"]):
        place = Path(process.info["cwd"] or "/")
        started = (process.info["environ"] or {}).get("KILLED_IN") == str(folder)
        if process.pid != os.getpid() and (place == folder or folder in place.parents or started):
            there.append(process)
    return there


def _is_job(process: psutil.Process) -> bool:
    """Whether a process is a fork of the warm process, with its name, but not its folder."""
    with contextlib.suppress(psutil.NoSuchProcess):
        parent = process.parent()
        return parent is not None and parent.ppid() == os.getpid()
    return False


def _leave(printed: Path, folder: Path, reads: int) -> None:
    """Makes a fork of pytest an independent process."""
    os.setsid()
    os.chdir(folder)
    forget_plugins()
    writes = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream, target in ((reads, 0), (writes, 1), (writes, 2)):
        os.dup2(stream, target)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    atexit._clear()  # pytest's functions for its own end
    logging.getLogger().handlers.clear()
    _arm()


@contextlib.contextmanager
def _ending() -> Iterator[None]:
    """Runs a function in a fork, and ends the fork."""
    code = 1
    try:
        yield
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
