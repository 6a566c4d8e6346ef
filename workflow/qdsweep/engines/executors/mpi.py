"""MPI: every rank except 0 is a worker. In MPI, a lost rank ends the whole job.

No rank waits inside MPI, because that would keep a core busy. Ranks poll for messages instead.
"""

import logging
import os
import threading
import time
import traceback
from collections import deque
from concurrent.futures import Future
from typing import Any

from mpi4py import MPI

from qdsweep.config.cluster import Cluster
from qdsweep.engines.batch import Answer, Batch
from qdsweep.engines.worker import Evaluator, Order
from qdsweep.host.signals import ignore_signals
from qdsweep.records.paths import StateDir

log = logging.getLogger("qdsweep")

WORLD = MPI.COMM_WORLD
# A rank sleeps between two polls for a fraction of the time that it has waited, at most this [s].
MAIN_SECONDS = 0.001
WORKER_SECONDS = 0.01


def connect_ranks(order: Order, cluster: Cluster, state: StateDir, helpers: object) -> "Ranks":
    """Makes an executor of the other ranks."""
    return Ranks(order)


class Ranks:
    """The other ranks, each with a queue of parts, as MPI keeps the messages of a rank in order.

    Args:
        order: The settings of all workers.
    """

    name = "mpi"
    remedy = "the ranks have not answered"

    def __init__(self, order: Order) -> None:
        self.wanted = WORLD.size - 1
        self._running: dict[int, deque[Future[Answer]]] = {}
        self._problems: list[str] = []
        self._sent: list[MPI.Request] = []
        self._expected = threading.Semaphore(0)
        self._lock = threading.Lock()  # MPI may not support two threads at a time
        for rank in range(1, WORLD.size):
            self._send(rank, order)
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def workers(self) -> int:
        """The number of ranks that have answered and can work for the run."""
        return len(self._running)

    def submit(self, part: Batch, first: int, home: int | None = None) -> "Future[Answer]":
        """Has a part evaluated; see `Executor.submit`."""
        future: Future[Answer] = Future()
        with self._lock:
            rank = min(self._running, key=lambda rank: len(self._running[rank]))
            if home is not None:
                rank = list(self._running)[home % len(self._running)]
            self._running[rank].append(future)
            self._send(rank, (part, first))
        return future

    def problem(self) -> str | None:
        """Returns why no worker will ever come; None while one may."""
        return self._problems[0] if len(self._problems) == self.wanted else None

    def close(self) -> None:
        """Leaves the ranks to `end`, because only the end of this process can interrupt them."""
        with self._lock:
            self._forget_sent()

    def _forget_sent(self) -> None:
        self._sent = [sent for sent in self._sent if not sent.Test()]

    def _send(self, rank: int, what: object) -> None:
        self._forget_sent()
        self._sent.append(WORLD.isend(what, rank))
        self._expected.release()

    def _listen(self) -> None:
        status = MPI.Status()
        while self._expected.acquire():
            since = time.monotonic()
            while True:
                with self._lock:
                    if WORLD.iprobe(status=status):
                        answer = WORLD.recv(source=status.source)
                        break
                _pause(since, MAIN_SECONDS)
            with self._lock:
                self._take(status.source, answer)

    def _take(self, rank: int, answer: Any) -> None:
        if rank not in self._running:
            about, problem = answer
            if problem:
                self._problems.append(f"rank {rank} ({about}) rejected: {problem}")
                log.warning("worker %s", self._problems[-1])
                return
            self._running[rank] = deque()
            log.info("worker rank %d (%s), %d now", rank, about, self.workers)
        elif isinstance(answer, Exception):
            self._running[rank].popleft().set_exception(answer)
        else:
            self._running[rank].popleft().set_result(answer)


def serve_rank() -> None:
    """Evaluates for rank 0 until it ends."""
    ignore_signals()
    order = _receive()
    if order is None:
        return
    try:
        made = Evaluator(order, f"rank {WORLD.rank}")
        WORLD.send((f"process {os.getpid()} on {os.uname().nodename}", made.problem), 0)
        while (question := _receive()) is not None:
            answer: Any
            try:
                answer = made.evaluate(*question)
            except Exception as error:
                answer = error
            WORLD.send(answer, 0)
    except BaseException:  # otherwise the other ranks would wait forever
        traceback.print_exc()
        WORLD.Abort(1)


def end(code: int) -> None:
    """Ends all ranks. If `code` is not 0, it also interrupts their evaluations."""
    if code:
        WORLD.Abort(code)
    for rank in range(1, WORLD.size):
        WORLD.send(None, rank)
    MPI.Finalize()


def library() -> str:
    """Returns the name and version of this MPI library."""
    return " ".join(MPI.Get_library_version().split()[:3])


def _receive() -> Any:
    since = time.monotonic()
    while not WORLD.iprobe(source=0):
        _pause(since, WORKER_SECONDS)
    return WORLD.recv(source=0)


def _pause(since: float, longest: float) -> None:
    """Sleeps between two polls for 2 % of the time that has passed since `since`.

    A message that comes soon is found soon, and a long wait costs few polls. The shortest sleep is
    20 µs, the longest one `longest` [s].
    """
    time.sleep(min(longest, max(2e-5, (time.monotonic() - since) / 50)))
