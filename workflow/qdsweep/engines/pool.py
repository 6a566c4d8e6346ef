"""Engines, which evaluate a batch part by part: in an executor's workers, or in this process.

The workers get their parts in advance. The interface of an executor is a subset of
`concurrent.futures`.
"""

import logging
import queue
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import groupby
from typing import Protocol

from qdsweep.domains.base import Domain
from qdsweep.engines.batch import Answer, Batch, Failure, Outcome, cut_rows, nothing
from qdsweep.engines.failures import (
    MAX_LOSSES,
    EvaluationFailed,
    NoWorkers,
    WorkerDied,
    WorkerLost,
    describe_failure,
    evaluate_safely,
)

# The number of parts that a worker may have: one to evaluate, and the next one in transit. It has
# more while the main process trains and cannot send parts.
PER_WORKER = 2
# The longest part, and the shortest one while there are rows for all workers [s]. A part costs an
# engine up to one millisecond.
LONGEST_SECONDS = 0.25
LEAST_SECONDS = 0.005
# If the times of rows differ by less than this (relative spread), equal shares are best.
EVEN = 0.1

log = logging.getLogger("qdsweep")
# How long a run waits for its first worker, or for another one after it has lost all [s].
PATIENCE = 300.0
# The interval of checks for new workers, or for none [s].
_LOOK_SECONDS = 0.1
# Losses of a part within this time count once, because a whole node may be lost [s].
INCIDENT_SECONDS = 3.0
# How long a run pauses if the machine lacks something for an evaluation [s].
PAUSE_SECONDS = 3.0
# The longest absence of the main process in this many batches is expected again. It trains in the
# first batch of an iteration, and an iteration may have several batches.
BATCHES = 8
# At most this many lines of workers reach the run's log.
MAX_LOG_LINES = 1000
# A part, and the number of its own worker; None for a part of any worker.
_Settled = tuple[slice, int | None]
# Long enough to make the cost of parts negligible, short enough to save often and stop at once [s].
PART_SECONDS = 0.5


class Parts:
    """The rows that wait for a worker, in parts of at most some tenths of a second.

    If all rows take about the same time, every worker gets an equal share. Otherwise parts become
    smaller towards the end of the batch, so that no worker waits long for the last part. This is
    guided self-scheduling (Polychronopoulos and Kuck 1987). The times of rows are kept from batch
    to batch.
    """

    def __init__(self) -> None:
        self._waiting: deque[slice] = deque()
        self._left = self._total = self._given = 0
        self._row_seconds: float | None = None
        self._spread = 1.0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def begin(self, rows: list[slice]) -> None:
        """Starts a new batch, and drops the remaining rows of the previous one."""
        self._waiting = deque(rows)
        self._left = self._total = sum(part.stop - part.start for part in rows)
        self._given = 0

    def give_back(self, part: slice) -> None:
        """Takes back a part whose worker was lost."""
        self._waiting.appendleft(part)
        self._left += part.stop - part.start

    def learn(self, part: slice, seconds: float) -> None:
        """Records the time of a part [s]. Recent parts count more."""
        now = max(1e-9, seconds / (part.stop - part.start))
        if self._row_seconds is None:
            self._row_seconds = now
        self._spread += 0.1 * (abs(now - self._row_seconds) / self._row_seconds - self._spread)
        self._row_seconds += 0.1 * (now - self._row_seconds)

    def plenty(self, workers: int) -> bool:
        """Returns whether there is more than one part for every worker."""
        return self._left > workers * self._size(workers)

    def take(self, workers: int) -> slice:
        """Returns the next part.

        Args:
            workers: Number of workers that share the remaining rows.
        """
        rows = self._waiting.popleft()
        part, *rest = cut_rows([rows], self._size(workers))
        self._given += 1
        if rest:
            self._waiting.appendleft(slice(rest[0].start, rows.stop))
        self._left -= part.stop - part.start
        return part

    def _size(self, workers: int) -> int:
        if self._row_seconds is None:
            return 1  # because no time is known yet
        longest = LONGEST_SECONDS / self._row_seconds
        if self._spread > EVEN:
            fair = -(-self._left // workers)
            least = min(fair, int(LEAST_SECONDS / self._row_seconds))
            return max(1, min(max(-(-fair // PER_WORKER), least), int(longest)))
        rounds = max(1, round(self._total / workers / longest))
        size, larger = divmod(self._total, rounds * workers)
        return max(1, size + (self._given < larger))


def settle(
    batch: Batch, rows: list[slice], workers: int, size: int = 1
) -> tuple[list[_Settled], list[slice]]:
    """Gives each row that continues an episode its own worker, which has its live environment.

    Args:
        batch: The whole batch.
        rows: The rows to evaluate.
        workers: Number of workers.
        size: The largest number of rows of a part.

    Returns:
        The parts of such rows with the number of their worker, those of different workers in turn,
        and the other rows.

    Example:
        Six rows of two workers, of which row 1 is evaluated already, and a whole episode:

        >>> import numpy as np
        >>> from qdsweep.domains.base import Token, Unroll
        >>> from qdsweep.engines.batch import Batch
        >>> from qdsweep.engines.pool import settle
        >>> unroll = Unroll(5, [*[Token()] * 6, None], 6)
        >>> batch = Batch(np.zeros((7, 2)), np.zeros(7, np.uint32), unroll=unroll)
        >>> parts, others = settle(batch, [slice(0, 1), slice(2, 7)], 2, size=2)
        >>> [(part.start, part.stop, home) for part, home in parts]
        [(0, 1, 0), (3, 5, 1), (2, 3, 0), (5, 6, 1)]
        >>> others
        [slice(6, 7, None)]
    """
    if batch.unroll is None:
        return [], rows
    continued = [token is not None for token in batch.unroll.tokens]
    count, workers = sum(continued), min(workers, sum(continued))
    settled: list[tuple[int, int, slice]] = []  # with the turn of its worker, and the worker
    turns, others = Counter[int](), []
    for part in rows:
        homes = [row * workers // count if continued[row] else None for row in _range(part)]
        for home, group in groupby(_range(part), key=lambda row: homes[row - part.start]):
            own = list(group)
            span = slice(own[0], own[-1] + 1)
            if home is None:
                others.append(span)
                continue
            for cut in cut_rows([span], size):
                settled.append((turns[home], home, cut))
                turns[home] += 1
    settled.sort(key=lambda each: each[:2])
    return [(cut, home) for _, home, cut in settled], others


def _range(rows: slice) -> range:
    return range(rows.start, rows.stop)


class Executor(Protocol):
    """Evaluates parts in workers that keep their domain alive (`qdsweep.engines.worker`).

    Attributes:
        name: Its name in the cluster config.
        wanted: Number of workers that the run has asked for.
        remedy: The advice to the user if no worker comes.
    """

    name: str
    wanted: int
    remedy: str

    @property
    def workers(self) -> int:
        """The current number of workers."""
        ...

    def submit(self, part: Batch, first: int, home: int | None = None) -> "Future[Answer]":
        """Submits a part. The future raises `WorkerLost` if the worker was lost.

        Args:
            part: The part.
            first: The batch's row at which it starts.
            home: The number of the worker that should evaluate it, modulo the number of workers.
                Equal numbers mean the same worker as long as no worker comes or is lost.
        """
        ...

    def problem(self) -> str | None:
        """Returns the reason why no worker will ever come; None while one may."""
        ...

    def close(self) -> None:
        """Ends the workers, also in the middle of an evaluation."""
        ...


class Pool:
    """Evaluates with the workers of an executor.

    Args:
        executor: The executor that has the workers.
        timeout: The experiment's `timeout` [s]. A run without workers must report so earlier.
    """

    def __init__(self, executor: Executor, timeout: float | None = None) -> None:
        self.name = executor.name
        self._executor = executor
        self._patience = PATIENCE if timeout is None else min(PATIENCE, timeout / 2)
        self._pause = _pause(timeout)
        self._parts = Parts()
        self._settled: deque[_Settled] = deque()  # the parts that wait for their own worker
        self._unroll_seconds = LEAST_SECONDS  # the time of a row of such a part [s]
        self._most = 0
        self._lines = 0
        # How long the main process was busy otherwise during each of the last batches [s].
        self._away: deque[float] = deque(maxlen=BATCHES)
        self._lonely_since: float | None = None

    @property
    def workers(self) -> int:
        """The largest number of workers so far, or the number that the run has asked for."""
        self._most = max(self._most, self._executor.workers)
        return max(self._most, self._executor.wanted)

    def wait(self) -> None:
        """Waits for the first worker."""
        while not self._executor.workers:
            self._look_for_workers(PATIENCE)
            time.sleep(0.01)

    def evaluate(
        self, batch: Batch, rows: list[slice], meanwhile: Callable[[], None] = nothing
    ) -> Iterator[tuple[slice, Outcome]]:
        """Evaluates with the workers; see `Engine.evaluate`."""
        # A part is short, also one whose episodes must be played again: `timeout` is for parts.
        size = max(1, int(LEAST_SECONDS / self._unroll_seconds))
        settled, others = settle(batch, rows, self.workers, size)
        self._settled = deque(settled)
        self._parts.begin(others)
        losses: dict[int, tuple[int, float]] = {}  # first row -> number of losses, time of the last
        shortages, resume = Counter[int](), 0.0
        running: dict[Future[Answer], _Settled] = {}
        done: queue.SimpleQueue[Future[Answer]] = queue.SimpleQueue()
        # The workers need enough parts for the time while the main process trains.
        more = int(max(self._away, default=0.0) / LONGEST_SECONDS)
        self._hand_out(batch, running, done, PER_WORKER + more)
        start = time.monotonic()
        meanwhile()
        self._away.append(time.monotonic() - start)
        while self._parts or self._settled or running:
            if time.monotonic() >= resume:
                self._hand_out(batch, running, done, PER_WORKER)
            try:
                future = done.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                self._look_for_workers(self._patience)
                continue
            part, home = running.pop(future)
            try:
                answer = future.result()
            except WorkerLost as error:
                self._give_back(part, home)  # another worker evaluates it with the same seeds
                _note_loss(losses, part.start, str(error))
                continue
            self._lonely_since = None
            self._log(answer)
            if isinstance(answer.result, Failure):
                _note_failure(shortages, answer.result)
                self._give_back(part, home)
                resume = time.monotonic() + self._pause
                continue
            if home is None:
                self._parts.learn(part, answer.result.seconds)
            else:
                self._unroll_seconds = answer.result.seconds / (part.stop - part.start)
            yield part, answer.result

    def _give_back(self, part: slice, home: int | None) -> None:
        if home is None:
            self._parts.give_back(part)
        else:
            self._settled.append((part, home))

    def _hand_out(
        self,
        batch: Batch,
        running: "dict[Future[Answer], _Settled]",
        done: "queue.SimpleQueue[Future[Answer]]",
        ahead: int,
    ) -> None:
        """Submits at most `ahead` parts per worker, after all parts that have their own worker.

        The last rows wait for a worker without a part, because they are divided better then. This
        does not apply to workers that need enough parts for a while.
        """
        workers = self._executor.workers

        def submit(part: slice, home: int | None) -> None:
            future = self._executor.submit(batch.part(part), part.start, home)
            running[future] = part, home
            future.add_done_callback(done.put)

        while self._settled and workers:
            submit(*self._settled.popleft())
        while self._parts and (
            len(running) < workers
            or (
                len(running) < ahead * workers
                and (ahead > PER_WORKER or self._parts.plenty(workers))
            )
        ):
            submit(self._parts.take(workers), None)

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
                log.warning("no worker is left; waiting at most %.0f s for one", patience)
        if now - self._lonely_since > patience:
            raise NoWorkers(f"no worker for {patience:.0f} s: {self._executor.remedy}")

    def _log(self, answer: Answer) -> None:
        for line in answer.lines[: max(0, MAX_LOG_LINES - self._lines)]:
            log.info("[%s] %s", answer.worker, line)
        before, self._lines = self._lines, self._lines + len(answer.lines)
        if before < MAX_LOG_LINES <= self._lines:
            log.info("further output of workers is only in state/workers")

    def close(self) -> None:
        """Ends the workers, also in the middle of an evaluation."""
        self._executor.close()


def _note_loss(losses: dict[int, tuple[int, float]], row: int, lost: str) -> None:
    count, last = losses.get(row, (0, -INCIDENT_SECONDS))
    now = time.monotonic()
    if now - last < INCIDENT_SECONDS:
        return
    losses[row] = count + 1, now
    if count + 1 == MAX_LOSSES:
        raise WorkerDied(MAX_LOSSES, row, lost)


def _pause(timeout: float | None) -> float:
    """Returns `PAUSE_SECONDS`, or less, so that all pauses of a part are within the timeout."""
    return PAUSE_SECONDS if timeout is None else min(PAUSE_SECONDS, timeout / (2 * MAX_LOSSES))


def _note_failure(shortages: Counter[int], failure: Failure) -> None:
    """Raises a failure, unless the machine lacks something that it may have later."""
    shortages[failure.row] += 1
    if not failure.lacks or shortages[failure.row] == MAX_LOSSES:
        raise EvaluationFailed(failure)
    log.warning("evaluated again, for lack of %s: %s", failure.lacks, describe_failure(failure))


class Serial:
    """Evaluates part by part. The parts grow until one takes about half a second."""

    name = "serial"
    workers = 1

    def __init__(
        self,
        domain: Domain,
        objective_on_failure: float | None = None,
        timeout: float | None = None,
    ) -> None:
        self.domain = domain
        self.objective_on_failure = objective_on_failure
        self._pause = _pause(timeout)
        self._size = 1

    def wait(self) -> None:
        """Returns at once, because this process is the worker."""

    def evaluate(
        self, batch: Batch, rows: list[slice], meanwhile: Callable[[], None] = nothing
    ) -> Iterator[tuple[slice, Outcome]]:
        """Evaluates in this process; see `Engine.evaluate`."""
        meanwhile()
        shortages = Counter[int]()
        waiting = list(reversed(rows))
        while waiting:
            part, *rest = cut_rows([waiting.pop()], self._size)
            if rest:
                waiting.append(slice(rest[0].start, rest[-1].stop))
            try:
                outcome = evaluate_safely(
                    self.domain, batch.part(part), part.start, self.objective_on_failure
                )
            except EvaluationFailed as error:
                _note_failure(shortages, error.failure)
                waiting.append(part)
                time.sleep(self._pause)
                continue
            if outcome.seconds < PART_SECONDS / 2:
                self._size *= 2
            elif outcome.seconds > 2 * PART_SECONDS:
                self._size = max(1, self._size // 2)
            yield part, outcome

    def close(self) -> None:
        """Does nothing, because there is no worker to end."""
