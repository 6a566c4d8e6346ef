"""Worker processes on this machine, by the standard library."""

import logging
import multiprocessing
import signal
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from qdsweep.config.cluster import Cluster
from qdsweep.engines import evaluator
from qdsweep.engines.base import Answer, Batch
from qdsweep.engines.evaluator import Order
from qdsweep.host.parent import die_with_parent
from qdsweep.records.run_dir import StateDir

log = logging.getLogger("qdsweep")


def connect(order: Order, cluster: Cluster, state: StateDir, helpers: object) -> "Processes":
    """Starts the pool."""
    return Processes(order, cluster.workers)


class Processes:
    """A pool of processes. It breaks when one of them dies, and is then made anew.

    Args:
        order: What the workers must know.
        workers: Number of processes.
    """

    name = "processes"
    lost = (BrokenProcessPool,)
    remedy = "the pool starts them when they are needed"

    def __init__(self, order: Order, workers: int) -> None:
        self.wanted = self.workers = workers
        self._order = order
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        # Spawned and not forked: a worker needs no copy of the main process's memory (ribs).
        return ProcessPoolExecutor(
            self.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start_worker,
            initargs=(self._order,),
        )

    def submit(self, part: Batch, first: int) -> "Future[Answer]":
        """Has a part evaluated; see `Executor.submit`."""
        try:
            return self._pool.submit(evaluator.evaluate, part, first)
        except BrokenProcessPool:
            log.warning("a worker is lost, and the others with it: all start again")
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = self._start()
            return self._pool.submit(evaluator.evaluate, part, first)

    def problem(self) -> None:
        """There are always workers."""

    def close(self) -> None:
        """Ends the workers, also in the middle of an evaluation."""
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()  # it ignores SIGTERM, and has nothing to save
        for process in processes:
            process.join(5)


def _start_worker(order: Order) -> None:
    die_with_parent(signal.SIGKILL)
    evaluator.start(order)
