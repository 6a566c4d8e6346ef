"""A real Snakemake and its jobs that start in a moment, to be killed hundreds of times.

What takes seconds at each start, imports and numba's compilation, is done once in this process:
Snakemake is a fork of it, and so is the sweep's warm process, which here outlives Snakemake. All
else is as typed: jobs are started by Snakemake, and engines, ranks and workers by jobs.
"""

import atexit
import contextlib
import importlib
import logging
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
from counting import forget_plugin
from support import REPO
from waiting import wait_until

PREPARED = (
    *("snakemake.cli", "snakemake.workflow", "snakemake.report", "qdsweep.experiment.run"),
    *("qdsweep.planning.checks", "qdsweep.planning.start", "qdsweep.analysis.stages"),
)


@contextlib.contextmanager
def warm_process(folder: Path) -> Iterator[Path]:
    """A warm process, forked from this one; yields its socket, whose path must be short."""
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
                server._Server(listener).serve()
    os.close(end)
    try:
        yield path
    finally:
        os.close(begin)
        os.waitpid(pid, 0)


class Start:
    """A start of Snakemake in a process group of its own.

    Args:
        folder: Where it is typed, and where `printed.txt` has what it says.
        words: Its options.
        env: Further variables of its environment; QDSWEEP_WARM is a warm process's socket.
    """

    def __init__(self, folder: Path, words: list[object], env: Mapping[str, str]) -> None:
        for name in PREPARED:
            importlib.import_module(name)
        self.folder, self.printed = folder, folder / "printed.txt"
        self.printed.write_text("")
        self.code: int | None = None
        self.pid = os.fork()
        if not self.pid:
            _leave(self.printed, folder, os.open(os.devnull, os.O_RDONLY))
            os.environ.update(env)
            whole = ["-s", str(REPO / "Snakefile"), *map(str, words)]
            sys.argv = ["snakemake", *whole]
            with _ending():
                sys.modules["snakemake.cli"].main(whole)  # type: ignore[attr-defined]

    def has_ended(self) -> bool:
        """Whether it has ended; sets `code`."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def begins(self, text: str = "\nExecute ") -> float:
        """Waits until it says that a job begins, or ends; returns how long that took."""
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
        """SIGKILL for its whole group; returns what else lives in its folder at that moment.

        Args:
            with_jobs: Also for its jobs, which are forks of the warm process and in no group of it.
        """
        jobs = living(self.folder) if with_jobs else []
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:  # it had no time yet for a group of its own
            os.kill(self.pid, signal.SIGKILL)
        for job in jobs:
            if _is_job(job):
                with contextlib.suppress(psutil.NoSuchProcess):
                    job.kill()
        os.waitpid(self.pid, 0)
        self.code = -signal.SIGKILL
        return living(self.folder)


def living(folder: Path) -> list[psutil.Process]:
    """The processes that work in a folder or below it, but for this one."""
    found = []
    for process in psutil.process_iter(["cwd", "status"]):
        place = Path(process.info["cwd"] or "/")
        if process.pid != os.getpid() and (place == folder or folder in place.parents):
            found.append(process)
    return found


def _is_job(process: psutil.Process) -> bool:
    """Whether it is a fork of the warm process, which has its name, but not its folder."""
    with contextlib.suppress(psutil.NoSuchProcess):
        parent = process.parent()
        return parent is not None and parent.ppid() == os.getpid()
    return False


def _leave(said: Path, folder: Path, reads: int) -> None:
    """Makes a fork of pytest a process of its own."""
    os.setsid()
    os.chdir(folder)
    forget_plugin()
    writes = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream, target in ((reads, 0), (writes, 1), (writes, 2)):
        os.dup2(stream, target)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    atexit._clear()  # what pytest has for its own end
    logging.getLogger().handlers.clear()


@contextlib.contextmanager
def _ending() -> Iterator[None]:
    """Ends a fork with what is done in it."""
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
