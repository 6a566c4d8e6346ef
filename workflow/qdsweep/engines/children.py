"""Worker processes of a run, forked by one process that has made the settings and the imports.

So a machine with 100 workers reads the (shared) file system once and has the libraries in memory
once. The process that starts them, the main process or a Dask worker, keeps its own settings.
"""

import contextlib
import os
import pickle
import queue
import signal
import socket
import subprocess
import sys
import threading
import traceback
from multiprocessing.connection import Connection
from pathlib import Path

from qdsweep.domains import import_libraries
from qdsweep.engines.base import Answer, Batch
from qdsweep.engines.failures import UnfitWorker, WorkerFailed, WorkerLost
from qdsweep.engines.worker import Evaluator, Order
from qdsweep.host.process import die_with_parent
from qdsweep.host.signals import SIGNALS, ignore_signals

# How often it looks whether a worker that does not answer is alive [s]: its death may go unseen,
# as processes that it has forked hold its end of the connection.
LOOK_SECONDS = 1.0


class Children:
    """Some worker processes. One that dies is replaced.

    Args:
        order: The settings of all workers.
        number: How many.
        name: Their name in the run's log; their own number follows.
    """

    def __init__(self, order: Order, number: int, name: str) -> None:
        self._order, self._name = order, name
        self._lock = threading.Lock()
        self._is_closed = False
        self._launch()
        self._idle: queue.SimpleQueue[int] = queue.SimpleQueue()
        places = range(1, number + 1)
        self._connections = {place: self._start(place) for place in places}
        self._pids: dict[int, int] = {}
        for place in places:
            self._idle.put(place)

    def _launch(self) -> None:
        """Starts the process that forks them."""
        order = self._order
        self._control, theirs = socket.socketpair()
        with theirs:
            self._forker = subprocess.Popen(
                [sys.executable, "-P", "-m", "qdsweep.engines.children", str(theirs.fileno())],
                env={**os.environ, **order.settings},
                cwd=order.directory if Path(order.directory).is_dir() else None,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the main process
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
        """Returns why they cannot work for the run, when one of them has tried; empty if not."""
        try:
            return str(pickle.loads(self.ask(pickle.dumps(None))))
        except WorkerLost as error:
            return f"{error} has died"

    def ask(self, question: bytes) -> bytes:
        """Has a question of `pack` answered, for `unpack`, as soon as one of them is idle.

        Raises:
            WorkerLost: The process died.
        """
        place = self._idle.get()
        try:
            connection = self._connections[place]
            if place not in self._pids:
                self._pids[place] = connection.recv()
            connection.send_bytes(question)
            while not connection.poll(LOOK_SECONDS):
                os.kill(self._pids[place], 0)
            return connection.recv_bytes()
        except (OSError, EOFError):
            self._connections[place].close()
            self._pids.pop(place, None)
            with contextlib.suppress(OSError):  # all of them are being ended
                self._connections[place] = self._start(place)
            raise WorkerLost(f"{self._name} {place}") from None
        finally:
            self._idle.put(place)

    def close(self) -> None:
        """Ends them and what they have started, also in the middle of an evaluation."""
        with self._lock:
            self._is_closed = True
            self._control.close()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._forker.pid, signal.SIGKILL)
            self._forker.wait()


def pack(part: Batch, first: int) -> bytes:
    """Returns the question for a part of a batch that begins with the batch's row `first`."""
    return pickle.dumps((part, first), protocol=5)


def unpack(answer: bytes) -> Answer:
    """Returns what a worker has answered; see `Evaluator.evaluate`.

    Raises:
        UnfitWorker: It cannot work for the run.
        WorkerFailed: Its own code failed.
    """
    content = pickle.loads(answer)
    if isinstance(content, Exception):
        raise content
    assert isinstance(content, Answer)
    return content


def _fork(control: socket.socket) -> None:
    """Forks a worker for each connection that is sent, until the other side has ended."""
    with contextlib.suppress(Exception):  # the worker itself reports it
        import_libraries(pickle.load(sys.stdin.buffer))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for them
    while True:
        _, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not descriptors:
            os.killpg(0, signal.SIGKILL)  # with all processes that were started from here
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a domain may wait for its own
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
            except BaseException:  # not of the domain's evaluation: that is a Failure
                answer = WorkerFailed(f"worker {name} failed:\n{traceback.format_exc()}")
            connection.send_bytes(pickle.dumps(answer, protocol=5))
    os._exit(0)


if __name__ == "__main__":
    for number in SIGNALS:
        signal.signal(number, lambda *_: None)
    _fork(socket.socket(fileno=int(sys.argv[1])))
