"""The engine of all executors: it hands them a batch in parts, some ahead for each worker."""

import logging
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future

from qdsweep.engines.base import Answer, Batch, Failure, Outcome, nothing
from qdsweep.engines.executors.base import Executor
from qdsweep.engines.failures import MAX_LOSSES, EvaluationFailed, NoWorkers, WorkerDied, WorkerLost
from qdsweep.engines.parts import PER_WORKER, SECONDS, Parts

log = logging.getLogger("qdsweep")

# How long a run waits for its first worker, or for another one when it has lost them all [s].
PATIENCE = 300.0
# How often it looks whether there are more workers, or none [s].
LOOK_SECONDS = 0.1
# Losses of a part within some seconds count once: a node may be lost, or workers taken away.
INCIDENT_SECONDS = 3.0
# Of so many batches, the longest absence of the main process is expected again: it trains in the
# first one of an iteration, which may have several.
BATCHES = 8
# At most so many lines of workers reach the run's log.
MAX_LINES = 1000


class Pool:
    """Evaluates with the workers of an executor.

    Args:
        executor: Has them.
        timeout: The experiment's `timeout` [s]: a run without workers must say so before.
    """

    def __init__(self, executor: Executor, timeout: float | None = None) -> None:
        self.name = executor.name
        self._executor = executor
        self._patience = PATIENCE if timeout is None else min(PATIENCE, timeout / 2)
        self._parts = Parts()
        self._most = 0
        self._lines = 0
        # How long the main process did something else during each of the last batches [s].
        self._away: deque[float] = deque(maxlen=BATCHES)
        self._lonely_since: float | None = None

    @property
    def workers(self) -> int:
        """The most workers that there were at a time, or are to be."""
        self._most = max(self._most, self._executor.workers)
        return max(self._most, self._executor.wanted)

    def wait(self) -> None:
        """Returns when the first worker is there."""
        while not self._executor.workers:
            self._look_for_workers(PATIENCE)
            time.sleep(0.01)

    def evaluate(
        self, batch: Batch, rows: list[slice], meanwhile: Callable[[], None] = nothing
    ) -> Iterator[tuple[slice, Outcome]]:
        """Evaluates with the workers; see `Engine.evaluate`."""
        self._parts.begin(rows)
        losses: dict[int, tuple[int, float]] = {}  # first row -> how often lost, when at last
        running: dict[Future[Answer], slice] = {}
        done: queue.SimpleQueue[Future[Answer]] = queue.SimpleQueue()
        # While the main process trains, the workers need enough to do.
        more = int(max(self._away, default=0.0) / SECONDS)
        self._hand_out(batch, running, done, PER_WORKER + more)
        start = time.monotonic()
        meanwhile()
        self._away.append(time.monotonic() - start)
        while self._parts or running:
            self._hand_out(batch, running, done, PER_WORKER)
            try:
                future = done.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                self._look_for_workers(self._patience)
                continue
            part = running.pop(future)
            try:
                answer = future.result()
            except WorkerLost:
                self._parts.give_back(part)  # others evaluate it, with the same seeds
                _note_loss(losses, part.start)
                continue
            self._lonely_since = None
            self._log(answer)
            if isinstance(answer.result, Failure):
                raise EvaluationFailed(answer.result)
            self._parts.learn(part, answer.result.seconds)
            yield part, answer.result

    def _hand_out(
        self,
        batch: Batch,
        running: "dict[Future[Answer], slice]",
        done: "queue.SimpleQueue[Future[Answer]]",
        ahead: int,
    ) -> None:
        """Hands out at most so many parts per worker.

        The last rows are kept until there is a worker without a part, as parts are cut better then;
        but not from workers that must have enough for a while.
        """
        workers = self._executor.workers
        while self._parts and (
            len(running) < workers
            or (
                len(running) < ahead * workers
                and (ahead > PER_WORKER or self._parts.plenty(workers))
            )
        ):
            part = self._parts.take(workers)
            future = self._executor.submit(batch.part(part), part.start)
            running[future] = part
            future.add_done_callback(done.put)

    def _look_for_workers(self, patience: float) -> None:
        if self._executor.workers:
            self._lonely_since = None
            self._most = max(self._most, self._executor.workers)
            return
        reason = self._executor.problem()
        if reason is not None:
            raise NoWorkers(reason)
        now = time.monotonic()
        if self._lonely_since is None:
            self._lonely_since = now
            if self._most:
                log.warning("no worker is left: waits for one, for %.0f s at most", patience)
        if now - self._lonely_since > patience:
            raise NoWorkers(f"no worker for {patience:.0f} s: {self._executor.remedy}")

    def _log(self, answer: Answer) -> None:
        for line in answer.lines[: max(0, MAX_LINES - self._lines)]:
            log.info("[%s] %s", answer.worker, line)
        before, self._lines = self._lines, self._lines + len(answer.lines)
        if before < MAX_LINES <= self._lines:
            log.info("what workers say from now on stands in state/workers alone")

    def close(self) -> None:
        """Ends the workers, also in the middle of an evaluation."""
        self._executor.close()


def _note_loss(losses: dict[int, tuple[int, float]], row: int) -> None:
    count, last = losses.get(row, (0, -INCIDENT_SECONDS))
    now = time.monotonic()
    if now - last < INCIDENT_SECONDS:
        return
    losses[row] = count + 1, now
    if count + 1 == MAX_LOSSES:
        raise WorkerDied(MAX_LOSSES, row)
