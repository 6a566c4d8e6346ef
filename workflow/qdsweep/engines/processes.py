"""The processes engine: a pool of worker processes on this machine."""

import multiprocessing
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from qdsweep.config.domain import Domain as DomainConfig
from qdsweep.domains.base import Evaluation
from qdsweep.engines import worker
from qdsweep.engines.base import Batch, cut
from qdsweep.errors import QdsweepError

PARTS_PER_WORKER = 4
# A part that kills its worker this often (out of memory, a crash in C) ends the run.
MAX_DEATHS = 3


class Processes:
    """Evaluates in worker processes that keep their domain alive.

    Args:
        domain: The domain's config; each worker builds its own.
        workers: Number of processes.
    """

    name = "processes"

    def __init__(self, domain: DomainConfig, workers: int) -> None:
        self.domain = domain
        self.workers = workers
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        # Spawned, not forked: a worker needs the domain, not the main process's memory (ribs).
        return ProcessPoolExecutor(
            self.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=worker.start,
            initargs=(self.domain,),
        )

    def evaluate(self, batch: Batch, rows: list[slice]) -> Iterator[tuple[slice, Evaluation]]:
        """See `Engine.evaluate`."""
        total = sum(part.stop - part.start for part in rows)
        size = max(1, -(-total // (self.workers * PARTS_PER_WORKER)))
        waiting = deque(cut(rows, size))
        deaths = 0
        while waiting:
            running: dict[Future[Evaluation], slice] = {}
            try:
                for part in waiting:
                    running[self._pool.submit(worker.evaluate, batch.part(part))] = part
                while running:
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        result = future.result()
                        part = running.pop(future)
                        waiting.remove(part)
                        yield part, result
            except BrokenProcessPool:
                deaths += 1
                if deaths == MAX_DEATHS:
                    first = waiting[0]
                    raise QdsweepError(
                        f"a worker process died {deaths} times while it evaluated solutions of "
                        f"this batch (the first one waiting is {first.start}): out of memory, or "
                        "a crash in a library of the domain"
                    ) from None
                # The others are lost with the pool; evaluations are pure, so they are repeated.
                self._pool.shutdown(wait=False, cancel_futures=True)
                time.sleep(0.1)
                self._pool = self._start()

    def close(self) -> None:
        """Ends the workers, also in the middle of an evaluation."""
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()  # it ignores SIGTERM, and holds nothing that could be lost
        for process in processes:
            process.join(5)
