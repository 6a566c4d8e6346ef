"""The processes engine: a pool of worker processes on this machine."""

import multiprocessing
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from qdsweep.config.domain import Domain as DomainConfig
from qdsweep.engines import worker
from qdsweep.engines.base import Batch, Outcome, cut
from qdsweep.errors import QdsweepError

PARTS_PER_WORKER = 2
PART_SECONDS = 0.25
# A part that kills its worker this often (out of memory, a crash in C) ends the run.
MAX_DEATHS = 3


class WorkerDied(QdsweepError):
    """Worker processes die, whatever they are started with."""


class Processes:
    """Evaluates in worker processes that keep their domain alive.

    Args:
        domain: The domain's config; each worker builds its own.
        workers: Number of processes.
        objective_on_failure: See `evaluate_safely`.
    """

    name = "processes"

    def __init__(
        self, domain: DomainConfig, workers: int, objective_on_failure: float | None = None
    ) -> None:
        self.domain = domain
        self.workers = workers
        self.objective_on_failure = objective_on_failure
        self._row_seconds: float | None = None
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        # Spawned, not forked: a worker needs the domain, not the main process's memory (ribs).
        return ProcessPoolExecutor(
            self.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=worker.start,
            initargs=(self.domain, self.objective_on_failure),
        )

    def evaluate(self, batch: Batch, rows: list[slice]) -> Iterator[tuple[slice, Outcome]]:
        """See `Engine.evaluate`."""
        waiting = deque(rows)
        running: dict[Future[Outcome], slice] = {}
        deaths = 0
        while waiting or running:
            try:
                while waiting and len(running) < PARTS_PER_WORKER * self.workers:
                    part = self._next_part(waiting)
                    future = self._pool.submit(worker.evaluate, batch.part(part), part.start)
                    running[future] = part
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    outcome = future.result()
                    part = running.pop(future)
                    self._row_seconds = outcome.seconds / (part.stop - part.start)
                    yield part, outcome
            except BrokenProcessPool:
                deaths += 1
                # Lost with the pool; evaluations are pure, so they are repeated.
                waiting.extendleft(running.values())
                running = {}
                if deaths == MAX_DEATHS:
                    raise WorkerDied(
                        f"a worker process died {deaths} times in one batch (solutions "
                        f"{sorted(part.start for part in waiting)[0]} and later were under way): "
                        "out of memory, a crash in a library of the domain, or its own os._exit"
                    ) from None
                self._pool.shutdown(wait=False, cancel_futures=True)
                self._pool = self._start()

    def _next_part(self, waiting: deque[slice]) -> slice:
        """Takes the next rows: some tenths of a second, and less towards the end of the batch."""
        left = sum(part.stop - part.start for part in waiting)
        size = left // (PARTS_PER_WORKER * self.workers)
        if self._row_seconds is None:
            size = 1  # nothing is known yet
        elif self._row_seconds > 0:
            size = min(size, int(PART_SECONDS / self._row_seconds))
        rows = waiting.popleft()
        part, *rest = cut([rows], max(1, size))
        if rest:
            waiting.appendleft(slice(rest[0].start, rows.stop))
        return part

    def close(self) -> None:
        """Ends the workers, also in the middle of an evaluation."""
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()  # it ignores SIGTERM, and holds nothing that could be lost
        for process in processes:
            process.join(5)
