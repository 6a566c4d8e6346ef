"""The warm process: `python -m qdsweep.warm.server SOCKET_FD COMMAND`, of `start_warm`.

COMMAND is the function `MODULE:NAME` that runs the words of a command.

Its standard input gives the experiments to prepare for, and ends with the Snakemake that
started it. It never has a second thread, so that it can be forked at any time.
"""

import atexit
import contextlib
import gc
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from qdsweep.analysis.stages import STAGES
from qdsweep.config.experiment import Experiment
from qdsweep.host.machine import apply_baseline, kept_by_forks
from qdsweep.host.process import die_with_parent
from qdsweep.host.signals import SIGNALS
from qdsweep.host.slurm import job_details
from qdsweep.warm.client import LENGTH

# How long to wait for the command of a connected client, which sends it at once [s].
_PATIENCE = 10.0
# How long to wait where no more files can be opened [s].
PAUSE = 0.1
# Modules that the functions of stages import when they need them.
_OF_STAGES = (
    *("pandas", "matplotlib.figure", "matplotlib.backends.backend_agg"),
    *("matplotlib.backends.backend_pdf", "matplotlib.backends.backend_svg"),
)

Command = Callable[[list[str]], int]


class Request(NamedTuple):
    """A command to run: its words, folder, environment, umask and standard streams."""

    argv: list[str]
    cwd: str
    env: dict[str, str]
    umask: int
    streams: list[int]


def main() -> None:
    """Prepares, then forks a process for each command until Snakemake has ended."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # They reach Snakemake's whole process group; this process ends when Snakemake does.
        signal.signal(number, signal.SIG_IGN)
    listener = socket.socket(fileno=int(sys.argv[1]))
    folder = Path(listener.getsockname()).parent
    try:
        apply_baseline("avx2")
        module, _, name = sys.argv[2].partition(":")
        command: Command = getattr(import_module(module), name)
        prepare(sys.stdin.buffer.readline())
        job = os.environ.get("SLURM_JOB_ID")
        if job and not job_details(job):  # forks inherit the answer, so hundreds ask Slurm once
            job_details.cache_clear()
        if has_threads():  # a fork of such a process may hang
            print("a plug-in starts threads, so each run starts on its own", file=sys.stderr)
            return
        gc.freeze()  # so that no garbage collection in a fork copies these objects
        _Server(listener, command).serve()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def prepare(experiments: bytes) -> None:
    """Imports what runs need, and makes numba compile what their algorithms call (JSON list)."""
    sent = json.loads(experiments)
    if not sent:
        return
    import qdsweep.experiment.run  # noqa: F401
    from qdsweep.warm.rehearsal import rehearse

    for data in sent:
        try:  # from JSON, where a list may stand for a tuple
            rehearse(Experiment.model_validate_json(json.dumps(data)))
        except (Exception, SystemExit) as error:  # its runs report what is wrong with it
            what = f"{type(error).__name__}: {error}"
            print(f"not compiled in advance, so its runs compile it: {what}", file=sys.stderr)


def prepare_stages() -> None:
    """Imports what the stages after the runs need; the first of them waits for it."""
    with contextlib.suppress(Exception):  # the stage itself reports what is broken
        for library in _OF_STAGES:
            import_module(library)
        for stage in STAGES:
            stage.load()


def has_threads() -> bool:
    """Returns whether this process has a second thread, also one that Python does not know of."""
    return len(list(Path("/proc/self/task").iterdir())) > 1


class _Server:
    def __init__(self, listener: socket.socket, command: Command) -> None:
        self._listener, self._command = listener, command
        self._clients: dict[int, socket.socket] = {}  # by the pid that runs its command
        self._ready = selectors.DefaultSelector()
        self._ready.register(listener, selectors.EVENT_READ, self._accept)
        self._ready.register(sys.stdin, selectors.EVENT_READ, self._close)
        waker, wakes = socket.socketpair()
        waker.setblocking(False)
        wakes.setblocking(False)
        self._waker = waker
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        self._ready.register(wakes, selectors.EVENT_READ, self._reap)
        self._open = True
        self._stages = {stage.name for stage in STAGES}  # none, once it is prepared for them

    def serve(self) -> None:
        """Serves commands until Snakemake and all of them have ended."""
        while self._open or self._clients:
            for key, _ in self._ready.select():
                key.data(key.fileobj)

    def _accept(self, listener: socket.socket) -> None:
        client = None
        try:
            client, _ = listener.accept()
            client.settimeout(_PATIENCE)
            pid = self._fork(_receive(client))
        except (OSError, ValueError, TypeError):  # the client then runs its command itself
            if client is None:  # this process has too many open files: some commands end first
                time.sleep(PAUSE)
            else:
                client.close()
            return
        self._clients[pid] = client
        self._ready.register(client, selectors.EVENT_READ, lambda _: self._hang_up(pid))
        with contextlib.suppress(OSError):
            client.sendall(b"%d\n" % pid)

    def _fork(self, request: Request) -> int:
        """Runs a command in a fork, and returns its pid."""
        try:
            if {*request.argv} & self._stages:
                self._stages = set()
                prepare_stages()
                gc.freeze()
            sys.stdout.flush()
            sys.stderr.flush()
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until the fork has handlers
            pid = os.fork()
            if pid == 0:
                _run(request, self._command)
            return pid
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            for stream in request.streams:
                os.close(stream)

    def _hang_up(self, pid: int) -> None:
        """Ends the command of a client that was killed: it saves its state first."""
        if pid not in self._clients:  # it ended while this process was busy, and was reaped
            return
        self._ready.unregister(self._clients[pid])
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)

    def _reap(self, wakes: socket.socket) -> None:
        wakes.recv(4096)
        while self._clients:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            client = self._clients.pop(pid)
            with contextlib.suppress(KeyError):
                self._ready.unregister(client)
            with contextlib.suppress(OSError):
                client.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
            client.close()

    def _close(self, stdin: Any) -> None:
        """Takes no more commands, as Snakemake has ended."""
        self._ready.unregister(stdin)
        self._ready.unregister(self._listener)
        self._listener.close()
        self._open = False


def _receive(client: socket.socket) -> Request:
    head, streams, _, _ = socket.recv_fds(client, LENGTH.size, 3)
    try:
        if len(head) < LENGTH.size or len(streams) < 3:
            raise ValueError("this is no client")
        (left,) = LENGTH.unpack(head)
        content = b""
        while left > len(content):
            more = client.recv(left - len(content))
            if not more:
                raise ValueError("the client has left")
            content += more
        return Request(**json.loads(content), streams=list(streams))
    except BaseException:
        for stream in streams:
            os.close(stream)
        raise


def _run(request: Request, command: Command) -> None:
    """Runs a command in the fork, as the client would have, and ends the fork."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, *SIGNALS):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        die_with_parent(signal.SIGTERM)  # the client then runs its command itself
        for target, stream in enumerate(request.streams):
            os.dup2(stream, target)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.chdir(request.cwd)
        os.umask(request.umask)
        have = kept_by_forks()
        os.environ.clear()
        os.environ.update(request.env | have)
        sys.argv = ["qdsweep", *request.argv]
        import numpy as np

        np.random.seed()  # as in a process of its own
        code = command(request.argv)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
