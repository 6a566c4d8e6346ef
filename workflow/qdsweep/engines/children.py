"""Worker processes of a run, forked by one process that has made the settings and the imports.

So a machine with 100 workers reads the (shared) file system once and has the libraries in memory
once, and whoever starts them, the main process or a Dask worker, keeps its own settings.
"""

import contextlib
import os
import pickle
import queue
import signal
import socket
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from qdsweep.engines.base import Answer, Batch
from qdsweep.engines.evaluator import Evaluator, Order, ignore_signals, import_libraries
from qdsweep.engines.failures import UnfitWorker, WorkerLost
from qdsweep.host.parent import die_with_parent


class Children:
    """Some worker processes. One that dies is replaced.

    Args:
        order: What they must know.
        number: How many.
        name: What they are called in the run's log; their own number follows.
    """

    def __init__(self, order: Order, number: int, name: str) -> None:
        self._order, self._name = order, name
        self._control, theirs = socket.socketpair()
        with theirs:
            self._forker = subprocess.Popen(
                [sys.executable, "-m", "qdsweep.engines.children", str(theirs.fileno())],
                env={**os.environ, **order.settings},
                cwd=order.directory if Path(order.directory).is_dir() else None,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the main process
            )
        assert self._forker.stdin is not None
        with self._forker.stdin as stdin:
            pickle.dump(order.domain, stdin)
        self._idle: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._connections = {place: self._start(place) for place in range(1, number + 1)}

    def _start(self, place: int) -> Connection:
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [b"+"], [theirs.fileno()])
        connection = Connection(ours.detach())
        connection.send((self._order, f"{self._name} {place}"))
        self._idle.put(place)
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
            UnfitWorker: What forks them has ended.
            WorkerLost: The process died.
        """
        place = self._idle.get()
        connection = self._connections[place]
        try:
            connection.send_bytes(question)
            answer = connection.recv_bytes()
        except (OSError, EOFError):
            connection.close()
            try:
                self._connections[place] = self._start(place)
            except OSError:
                self._idle.put(place)
                raise UnfitWorker(f"{self._name}: what forks its processes has ended") from None
            raise WorkerLost(f"{self._name} {place}") from None
        self._idle.put(place)
        return answer

    def close(self) -> None:
        """Ends them, also in the middle of an evaluation."""
        self._control.close()
        self._forker.kill()  # and with it those that it has forked
        self._forker.wait()


def pack(part: Batch, first: int) -> bytes:
    """Returns the question for a part of a batch that begins with the batch's row `first`."""
    return pickle.dumps((part, first), protocol=5)


def unpack(answer: bytes) -> Answer:
    """Returns what a worker has answered; see `Evaluator.evaluate`.

    Raises:
        UnfitWorker: It cannot work for the run.
    """
    found = pickle.loads(answer)
    if isinstance(found, Exception):
        raise found
    assert isinstance(found, Answer)
    return found


def _fork(control: socket.socket) -> None:
    """Forks a worker for each connection that is sent, until the other side has ended."""
    import_libraries(pickle.load(sys.stdin.buffer))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    while True:
        _, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not descriptors:
            return
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a domain may wait for its own
            control.close()
            die_with_parent(signal.SIGKILL)
            _work(Connection(descriptors[0]))
        os.close(descriptors[0])


def _work(connection: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        order, name = connection.recv()
        evaluator = Evaluator(order, name)
        while True:
            question = connection.recv()
            answer: object
            try:
                answer = evaluator.evaluate(*question) if question else evaluator.problem
            except Exception as error:
                answer = error
            connection.send_bytes(pickle.dumps(answer, protocol=5))
    os._exit(0)


if __name__ == "__main__":
    ignore_signals()
    _fork(socket.socket(fileno=int(sys.argv[1])))
