"""The processes engine: a pool of worker processes on this machine."""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from qdsweep.config.domain import Domain as DomainConfig
from qdsweep.engines import worker
from qdsweep.engines.base import Batch, Outcome, nothing
from qdsweep.engines.failures import MAX_DEATHS, WorkerDied
from qdsweep.engines.parts import PER_WORKER, Parts


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
        self._parts = Parts()
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        # Spawned and not forked: a worker needs no copy of the main process's memory (ribs).
        return ProcessPoolExecutor(
            self.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=worker.start,
            initargs=(self.domain, self.objective_on_failure),
        )

    def wait(self) -> None:
        """Returns at once: the pool starts its processes when they are needed."""

    def evaluate(
        self, batch: Batch, rows: list[slice], meanwhile: Callable[[], None] = nothing
    ) -> Iterator[tuple[slice, Outcome]]:
        """Evaluates in the pool; see `Engine.evaluate`."""
        self._parts.begin(rows)
        running: dict[Future[Outcome], slice] = {}
        deaths = 0
        while self._parts or running:
            try:
                while self._parts and (
                    len(running) < self.workers
                    or (
                        len(running) < PER_WORKER * self.workers
                        and self._parts.plenty(self.workers)
                    )
                ):
                    part = self._parts.take(self.workers)
                    try:
                        future = self._pool.submit(worker.evaluate, batch.part(part), part.start)
                    except BrokenProcessPool:
                        self._parts.give_back(part)
                        raise
                    running[future] = part
                meanwhile()
                meanwhile = nothing
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    outcome = future.result()
                    part = running.pop(future)
                    self._parts.learn(part, outcome.seconds)
                    yield part, outcome
            except BrokenProcessPool:
                deaths += 1
                # These were lost with the pool. Evaluations are pure, so they are repeated.
                first = min((part.start for part in running.values()), default=0)
                for part in running.values():
                    self._parts.give_back(part)
                running = {}
                if deaths == MAX_DEATHS:
                    raise WorkerDied(deaths, first) from None
                self._pool.shutdown(wait=False, cancel_futures=True)
                self._pool = self._start()

    def close(self) -> None:
        """Ends the workers, also in the middle of an evaluation."""
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()  # it ignores SIGTERM, and has nothing to save
        for process in processes:
            process.join(5)
