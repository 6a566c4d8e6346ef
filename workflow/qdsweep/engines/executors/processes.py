"""Worker processes on this machine."""

import logging
import resource
from concurrent.futures import Future, ThreadPoolExecutor

from qdsweep.config.cluster import Cluster
from qdsweep.engines.batch import Answer, Batch
from qdsweep.engines.children import Children, pack_part, unpack
from qdsweep.engines.failures import WorkerLost
from qdsweep.engines.worker import Order
from qdsweep.records.paths import StateDir

log = logging.getLogger("qdsweep")


def start_processes(
    order: Order, cluster: Cluster, state: StateDir | None, helpers: object
) -> "Processes":
    """Starts the processes."""
    return Processes(order, cluster.workers)


class Processes:
    """Several processes, each with a thread that waits for it.

    Args:
        order: The settings of all workers.
        workers: Number of processes.
    """

    name = "processes"
    remedy = ""  # never shown, because there are always workers

    def __init__(self, order: Order, workers: int) -> None:
        self.wanted = self.workers = workers
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # one connection per process
        self._children = Children(order, workers, "worker")
        self._threads = ThreadPoolExecutor(workers)
        # One for each process, so that no thread of the others waits for it.
        self._own_threads = [ThreadPoolExecutor(1) for _ in range(workers)]

    def submit(self, part: Batch, first: int, home: int | None = None) -> "Future[Answer]":
        """Submits a part; see `Executor.submit`."""
        if home is None:
            return self._threads.submit(self._evaluate, part, first)
        place = home % self.workers
        return self._own_threads[place].submit(self._evaluate, part, first, place + 1)

    def _evaluate(self, part: Batch, first: int, place: int | None = None) -> Answer:
        try:
            return unpack(self._children.ask(pack_part(part, first), place))
        except WorkerLost as error:
            log.warning("%s is lost, and replaced", error)
            raise

    def problem(self) -> None:
        """Returns None, because there are always workers."""

    def close(self) -> None:
        """Ends the workers, also in the middle of an evaluation."""
        for threads in (self._threads, *self._own_threads):
            threads.shutdown(wait=False, cancel_futures=True)
        self._children.close()
