"""Worker processes of a run, forked by one process that has the CPU settings and the imports.

With 100 workers, a machine therefore reads the (shared) file system once, and has the libraries in
memory once. The process that starts the workers, the main process or a Dask worker, keeps its own
settings.
"""

import contextlib
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from multiprocessing.connection import Connection, wait
from pathlib import Path

from qdsweep.domains import import_libraries
from qdsweep.engines.batch import Answer, Batch
from qdsweep.engines.failures import UnfitWorker, WorkerFailed, WorkerLost
from qdsweep.engines.worker import Evaluator, Order
from qdsweep.host.process import die_with_parent, ending
from qdsweep.host.signals import SIGNALS, ignore_signals

# The interval of checks whether a silent worker is alive [s]. Its connection may stay open after
# its death, because processes that it has forked hold its end.
_LOOK_SECONDS = 1.0
# The pid and the exit code of a worker that has ended.
_REPORT = struct.Struct("!ii")


class Children:
    """Several worker processes. A process that dies is replaced.

    Args:
        order: The settings of all workers.
        number: Number of processes.
        name: Their common name in the run's log, before the number of each.
    """

    def __init__(self, order: Order, number: int, name: str) -> None:
        self._order, self._name = order, name
        self._lock = threading.Lock()
        self._is_closed = False
        self._launch()
        places = range(1, number + 1)
        self._idle = list(places)
        self._has_idle = threading.Condition()
        self._connections = {place: self._start(place) for place in places}
        self._pids: dict[int, int] = {}
        self._codes: dict[int, int] = {}  # exit codes, by the pid

    def _launch(self) -> None:
        """Starts the process that forks the workers."""
        order = self._order
        self._control, theirs = socket.socketpair()
        with theirs:
            self._forker = subprocess.Popen(
                [sys.executable, "-P", "-m", "qdsweep.engines.children", str(theirs.fileno())],
                env={**os.environ, **order.settings},
                cwd=order.directory if Path(order.directory).is_dir() else None,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.PIPE,
                start_new_session=True,  # only the main process receives Ctrl-C
            )
        assert self._forker.stdin is not None
        with self._forker.stdin as stdin:
            pickle.dump(order.domain, stdin)

    def _start(self, place: int) -> Connection:
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            if self._forker.poll() is not None and not self._is_closed:
                self._control.close()
                self._launch()
            socket.send_fds(self._control, [b"+"], [theirs.fileno()])
        connection = Connection(ours.detach())
        connection.send((self._order, f"{self._name} {place}"))
        return connection

    def problem(self) -> str:
        """Returns the reason why the next idle worker is unfit for the run; empty if it is fit."""
        try:
            return str(pickle.loads(self.ask(pickle.dumps(None))))
        except WorkerLost as error:
            return f"{error} has died"

    def ask(self, question: bytes, place: int | None = None) -> bytes:
        """Passes a question of `pack` to an idle worker, and returns the answer for `unpack`.

        Args:
            question: The question.
            place: The number of the worker, from 1, or None for the one that is idle next.

        Raises:
            WorkerLost: The process died.
        """
        idle = self._idle
        with self._has_idle:
            self._has_idle.wait_for(lambda: place in idle if place else idle)
            place = idle.pop(idle.index(place) if place else 0)
        try:
            connection = self._connections[place]
            if place not in self._pids:
                self._pids[place] = connection.recv()
            connection.send_bytes(question)
            while not connection.poll(_LOOK_SECONDS):
                os.kill(self._pids[place], 0)  # an OSError if it is dead
            if answer := connection.recv_bytes():
                return answer
            answer = connection.recv_bytes()  # the last one, as its process lacks something
            self._replace(place)
            return answer
        except (OSError, EOFError):
            pid = self._pids.get(place, 0)
            self._connections[place].close()
            how = self._ending(pid)
            self._replace(place)
            raise WorkerLost(f"{self._name} {place}{f' ({how})' * bool(how)}") from None
        finally:
            with self._has_idle:
                idle.append(place)
                self._has_idle.notify_all()

    def _replace(self, place: int) -> None:
        """Starts a process in the place of one that has ended, or that now ends."""
        self._pids.pop(place, None)
        self._connections[place].close()
        with contextlib.suppress(OSError):  # all workers are being ended
            self._connections[place] = self._start(place)

    def _ending(self, pid: int) -> str:
        """Returns how a worker has ended; empty where the process that forked it does not know."""
        with self._lock:
            while pid not in self._codes:
                if self._is_closed or not wait([self._control], _LOOK_SECONDS):
                    return ""
                report = self._control.recv(_REPORT.size, socket.MSG_WAITALL)
                if len(report) < _REPORT.size:
                    return ""
                ended, code = _REPORT.unpack(report)
                self._codes[ended] = code
            return ending(self._codes.pop(pid))

    def close(self) -> None:
        """Ends the workers and their child processes, also in the middle of an evaluation."""
        with self._lock:
            self._is_closed = True
            self._control.close()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._forker.pid, signal.SIGKILL)
            self._forker.wait()


def pack_part(part: Batch, first: int) -> bytes:
    """Returns the question for a part of a batch that starts at the batch's row `first`."""
    return pickle.dumps((part, first), protocol=5)


def unpack(answer: bytes) -> Answer:
    """Returns the answer of a worker; see `Evaluator.evaluate`.

    Raises:
        UnfitWorker: The worker cannot work for the run.
        WorkerFailed: The worker's own code failed.
    """
    content = pickle.loads(answer)
    if isinstance(content, Exception):
        raise content
    assert isinstance(content, Answer)
    return content


def _fork(control: socket.socket) -> None:
    """Forks a worker for each connection that arrives, until the other side has ended."""
    with contextlib.suppress(Exception):  # the worker itself reports it
        import_libraries(pickle.load(sys.stdin.buffer))

    def report(*_: object) -> None:
        with contextlib.suppress(OSError):  # no worker is left, or too many reports wait
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                code = os.waitstatus_to_exitcode(ended[1])
                control.send(_REPORT.pack(ended[0], code), socket.MSG_DONTWAIT)

    signal.signal(signal.SIGCHLD, report)
    while True:
        _, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not descriptors:
            os.killpg(0, signal.SIGKILL)  # also ends all processes that were started here
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a domain may wait for its children
            control.close()
            ignore_signals()
            die_with_parent(signal.SIGKILL)
            _work(Connection(descriptors[0]))
        os.close(descriptors[0])


def _work(connection: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        connection.send(os.getpid())
        order, name = connection.recv()
        evaluator = Evaluator(order, name)
        while True:
            question = connection.recv()
            answer: object
            try:
                answer = evaluator.evaluate(*question) if question else evaluator.problem
            except UnfitWorker as error:
                answer = error
            except BaseException:  # errors of an evaluation are a Failure and do not arrive here
                answer = WorkerFailed(f"worker {name} failed:\n{traceback.format_exc()}")
            if isinstance(answer, Answer) and answer.lacks:
                connection.send_bytes(b"")  # a new process may have what this one lacks
            connection.send_bytes(pickle.dumps(answer, protocol=5))
    os._exit(0)


if __name__ == "__main__":
    for number in SIGNALS:
        signal.signal(number, lambda *_: None)
    _fork(socket.socket(fileno=int(sys.argv[1])))
