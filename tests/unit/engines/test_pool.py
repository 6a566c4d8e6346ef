"""The engine of all executors divides, submits and repeats batches; the serial engine."""

import errno
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from itertools import cycle, islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from qdsweep.domains.base import Evaluation, Token, Unroll
from qdsweep.engines.batch import Answer, Batch, Failure, Outcome
from qdsweep.engines.failures import (
    MAX_LOSSES,
    EvaluationFailed,
    NoWorkers,
    WorkerDied,
    WorkerLost,
)
from qdsweep.engines.pool import (
    BATCHES,
    INCIDENT_SECONDS,
    LEAST_SECONDS,
    LONGEST_SECONDS,
    MAX_LOG_LINES,
    PART_SECONDS,
    PATIENCE,
    PAUSE_SECONDS,
    PER_WORKER,
    Parts,
    Pool,
    Serial,
)

ROWS = 40
WORKERS = 2
BATCH = Batch(np.zeros((ROWS, 3)), np.zeros(ROWS, dtype=np.uint32))


def whole(parts: list[slice]) -> list[tuple[int, int]]:
    """Returns parts in the order of their rows."""
    return sorted((part.start, part.stop) for part in parts)


def sizes(seconds: float, spreads: tuple[float, ...], rows: int = 150) -> list[int]:
    """Returns the sizes of the parts for four workers, of a batch whose rows take these times."""
    parts = Parts()
    for spread in islice(cycle(spreads), 80):
        parts.learn(slice(5, 7), 2 * seconds * spread)
    parts.begin([slice(10, 10 + rows)])
    taken = []
    while parts:
        taken.append(parts.take(4))
    assert [taken[0].start, taken[-1].stop] == [10, 10 + rows]
    assert all(before.stop == after.start for before, after in pairwise(taken))
    return [part.stop - part.start for part in taken]


EVEN, UNEVEN = (1.0,), (0.5, 1.5)


@pytest.mark.parametrize(
    ("seconds", "spreads", "rows", "expected"),
    [
        (2 * LEAST_SECONDS, UNEVEN, 40, [5, 5, 4, 4, 3, 3, 2, 2, 2, 2, *[1] * 8]),
        (LEAST_SECONDS / 5, UNEVEN, 40, [5, 5, 4, 4, 4, 4, 4, 3, 2, 2, 1, 1, 1]),
        (LONGEST_SECONDS / 8, UNEVEN, 99, [*[7] * 8, 6, 5, 4, 4, 3, 3, 3, 2, 2, 2, 2, *[1] * 7]),
        (LEAST_SECONDS / 5, EVEN, 150, [38, 38, 37, 37]),
        (LONGEST_SECONDS / 10, EVEN, 150, [*[10] * 6, *[9] * 10]),
        (10 * LONGEST_SECONDS, EVEN, 3, [1, 1, 1]),
        (10 * LONGEST_SECONDS, UNEVEN, 3, [1, 1, 1]),
    ],
)
def test_parts_are_equal_shares_or_shrink_where_rows_differ(seconds, spreads, rows, expected):
    assert sizes(seconds, spreads, rows) == expected


@given(st.integers(1, 200), st.floats(1e-6, 1), st.sampled_from([EVEN, UNEVEN]))
def test_every_worker_gets_rows_and_no_part_is_long(rows, seconds, spreads):
    parts = sizes(seconds, spreads, rows)
    assert len(parts) >= min(rows, 4)
    assert parts[0] <= -(-rows // 4)
    assert max(parts) * seconds <= 1.5 * LONGEST_SECONDS + seconds  # a share is rounded
    assert parts == sorted(parts, reverse=True)


def test_before_a_time_is_known_parts_are_single_rows():
    parts = Parts()
    assert not parts
    parts.begin([slice(3, 5), slice(7, 9)])
    assert parts.plenty(3) and not parts.plenty(4)
    assert parts.take(2) == slice(3, 4)
    parts.give_back(slice(20, 22))
    assert parts.plenty(4) and not parts.plenty(5)
    assert [parts.take(2) for _ in range(5)] == [slice(i, i + 1) for i in (20, 21, 4, 7, 8)]
    assert not parts and not parts.plenty(1)
    for _ in range(80):
        parts.learn(slice(0, 1), LEAST_SECONDS)
    parts.begin([slice(0, 8)])
    assert not parts.plenty(4), "there are only equal shares"


class Clock:
    """The clock of the pool, which only a test advances."""

    def __init__(self, monkeypatch) -> None:
        self.now = 0.0  # as directly after the machine's start
        for name in ("monotonic", "perf_counter"):
            monkeypatch.setattr(time, name, lambda: self.now)


@pytest.fixture
def clock(monkeypatch) -> Clock:
    return Clock(monkeypatch)


def answer_of(part: Batch, lines: tuple[str, ...] = ()) -> Answer:
    """The answer of a worker that takes 0.2 s per row."""
    n = len(part.solutions)
    result = Evaluation(np.zeros(n), np.zeros((n, 1)))
    return Answer(Outcome(result, [], 0.2 * n), list(lines), "worker 7")


class Instant:
    """Two workers that answer at once."""

    name, remedy, wanted = "instant", "see the log of the pool", 2

    def __init__(self, answer: Callable[[Batch, int], Answer] | None = None) -> None:
        self.workers = WORKERS
        self.parts: list[int] = []
        self.answer = answer or (lambda part, first: answer_of(part))
        self.reason: str | None = None
        self.closed = False

    def submit(self, part: Batch, first: int, home: int | None = None) -> "Future[Answer]":
        self.parts.append(len(part.solutions))
        future: Future[Answer] = Future()
        try:
            future.set_result(self.answer(part, first))
        except WorkerLost as error:
            future.set_exception(error)
        return future

    def problem(self) -> str | None:
        return self.reason

    def close(self) -> None:
        self.closed = True


def evaluate(pool: Pool, rows: list[slice] | None = None, **meanwhile) -> list[slice]:
    return [part for part, _ in pool.evaluate(BATCH, rows or [slice(0, ROWS)], **meanwhile)]


def test_workers_have_enough_to_do_while_the_main_process_trains(clock):
    """The training time of one of the last batches counts, as an iteration may have several.

    Without training, no part is submitted earlier than needed.
    """
    executor = Instant()
    pool = Pool(executor)
    ahead = []

    def trains(seconds: float) -> None:
        ahead.append(len(executor.parts))
        clock.now += seconds

    for seconds in (0.0, 4 * LONGEST_SECONDS, *[0.0] * (BATCHES + 1)):
        executor.parts.clear()
        evaluate(pool, meanwhile=partial(trains, seconds))
        assert sum(executor.parts) == ROWS
    few, more = WORKERS * PER_WORKER, WORKERS * (PER_WORKER + 4)
    assert ahead == [few, few, *[more] * BATCHES, few]


@pytest.mark.parametrize(("seconds", "rows"), [(0.2, [1] * 8), (LEAST_SECONDS / 2.5, [2] * 4)])
def test_parts_that_continue_episodes_are_short_and_those_of_workers_take_turns(seconds, rows):
    """`timeout` is for parts, and a part may have to be played again."""

    class Homes(Instant):
        def submit(self, part, first, home=None):
            homes.append((first, home))
            return super().submit(part, first, home)

    def answer(part, first):
        answered = answer_of(part)
        took = seconds * len(part.solutions)
        return answered._replace(result=answered.result._replace(seconds=took))

    executor, homes = Homes(answer), []
    pool = Pool(executor)
    batch = Batch(np.zeros((8, 2)), np.zeros(8, np.uint32), unroll=Unroll(5, [Token()] * 8, 8))
    for parts in ([1] * 8, rows):
        executor.parts.clear()
        homes.clear()
        assert len(list(pool.evaluate(batch, [slice(0, 8)]))) == len(parts)
        assert executor.parts == parts
    workers = max(home for _, home in homes) + 1
    assert [home for _, home in homes] == [*range(workers)] * (len(homes) // workers)
    assert all(first * workers // 8 == home for first, home in homes)


def test_workers_are_given_all_that_is_left_if_the_main_process_trains_longer(clock):
    executor, ahead = Instant(), []
    pool = Pool(executor)

    def trains() -> None:
        ahead.append(sum(executor.parts))
        clock.now += ROWS * LONGEST_SECONDS

    for _ in range(2):
        executor.parts.clear()
        assert len(evaluate(pool, meanwhile=trains)) == len(executor.parts)
    assert ahead == [WORKERS * PER_WORKER, ROWS]


def test_a_batch_that_is_all_done_trains_too():
    """As with the serial engine, because training must not depend on the engine."""
    trained = []
    assert list(Pool(Instant()).evaluate(BATCH, [], partial(trained.append, 1))) == []
    assert trained == [1]


def test_the_last_rows_are_kept_for_a_worker_that_is_free():
    executor, ahead = Instant(), []
    evaluate(Pool(executor), [slice(0, 3)], meanwhile=lambda: ahead.append(len(executor.parts)))
    assert ahead == [WORKERS]


class LosesTheFirstPart:
    """Loses the part with row 0 several times, each loss after some seconds."""

    def __init__(self, clock: Clock, times: int, seconds: float) -> None:
        self.clock, self.left, self.seconds = clock, times, seconds
        self.lost = 0

    def __call__(self, part: Batch, first: int) -> Answer:
        if first == 0 and self.left:
            self.left -= 1
            self.lost += 1
            self.clock.now += self.seconds
            raise WorkerLost
        return answer_of(part)


def test_a_part_that_is_lost_is_evaluated_by_others(clock):
    loses = LosesTheFirstPart(clock, MAX_LOSSES - 1, INCIDENT_SECONDS)
    parts = whole(evaluate(Pool(Instant(loses))))
    assert parts[0][0] == 0 and parts[-1][1] == ROWS
    assert all(before[1] == after[0] for before, after in pairwise(parts))
    assert loses.lost == MAX_LOSSES - 1


def test_a_part_that_is_lost_again_and_again_ends_the_run(clock):
    loses = LosesTheFirstPart(clock, 100, INCIDENT_SECONDS)
    with refused(MAX_LOSSES, "solutions 0", kind=WorkerDied):
        evaluate(Pool(Instant(loses)))
    assert loses.lost == MAX_LOSSES


def test_losses_of_one_incident_count_once(clock):
    loses = LosesTheFirstPart(clock, 20, INCIDENT_SECONDS / 30)
    evaluate(Pool(Instant(loses)))
    assert loses.lost == 20


def test_an_evaluation_that_failed_is_raised():
    failure = Failure(3, 11, np.zeros(3), "ValueError: no", "", "worker 7")
    with refused(3, 11, "ValueError: no", kind=EvaluationFailed):
        evaluate(Pool(Instant(lambda part, first: Answer(failure, [], "worker 7"))))


class LacksMemory:
    """The answers of workers of which row 7 does not fit into memory several times."""

    def __init__(self, times: int) -> None:
        self.left, self.tries = times, 0

    def __call__(self, part: Batch, first: int) -> Answer:
        if not first <= 7 < first + len(part.solutions):
            return answer_of(part)
        self.tries += 1
        if not self.left:
            return answer_of(part)
        self.left -= 1
        failure = Failure(7, 11, np.zeros(3), "MemoryError: no", "", "worker 7", "memory")
        return Answer(failure, [], "worker 7")


@pytest.fixture
def hasty(monkeypatch):
    """Pauses of no time."""
    monkeypatch.setattr("qdsweep.engines.pool.PAUSE_SECONDS", 0.0)


@pytest.mark.parametrize("times", range(MAX_LOSSES + 1))
def test_what_the_machine_lacks_is_waited_for_at_most_as_often_as_a_lost_worker(hasty, times):
    lacks = LacksMemory(times)
    if times < MAX_LOSSES:
        parts = whole(evaluate(Pool(Instant(lacks))))
        assert parts[0][0] == 0 and parts[-1][1] == ROWS
        assert all(before[1] == after[0] for before, after in pairwise(parts))
        assert lacks.tries == times + 1
        return
    with refused("memory", "solution 7", 11, "mem_mb_per_worker", kind=EvaluationFailed):
        evaluate(Pool(Instant(lacks)))
    assert lacks.tries == MAX_LOSSES


class Leaves:
    """An executor's workers: some, then none for this many checks of the pool."""

    def __init__(self, clock: Clock, looks: int, seconds: float) -> None:
        self.clock, self.looks, self.seconds = clock, looks, seconds

    def count(self) -> int:
        if not self.looks:
            return WORKERS
        self.looks -= 1
        self.clock.now += self.seconds
        return 0


class Changing(Instant):
    """An executor with the workers of `Leaves`."""

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves
        super().__init__()

    @property
    def workers(self) -> int:
        return self.leaves.count()

    @workers.setter
    def workers(self, number: int) -> None:
        pass


def test_nothing_is_handed_out_for_a_while_after_that(clock):
    class Timed(Changing):
        def submit(self, part, first, home=None):
            times.append(clock.now)
            return super().submit(part, first, home)

    times: list[float] = []
    executor = Timed(Leaves(clock, 0, 0.0))
    lacks = executor.answer = LacksMemory(1)
    looked = executor.leaves.count

    def count() -> int:
        clock.now += 0.1 * (lacks.tries == 1)
        return looked()

    executor.leaves.count = count
    assert whole(evaluate(Pool(executor)))[-1][1] == ROWS
    assert PAUSE_SECONDS <= max(np.diff(times)) < PAUSE_SECONDS + 1


def test_the_first_worker_is_waited_for(clock):
    came = Changing(Leaves(clock, 10, PATIENCE / 10))
    Pool(came).wait()
    assert came.leaves.looks == 0
    never = Changing(Leaves(clock, 1000, PATIENCE / 4))
    with refused(f"{PATIENCE:.0f} s", never.remedy, kind=NoWorkers):
        Pool(never, timeout=1.0).wait()
    assert 1000 - never.leaves.looks <= 2 * 6


def test_why_no_worker_will_come_is_known_at_once(clock):
    executor = Changing(Leaves(clock, 1000, 1.0))
    executor.reason = "the job 17 was cancelled"
    with refused("17", kind=NoWorkers):
        Pool(executor).wait()
    assert executor.leaves.looks == 998


@pytest.mark.parametrize(
    ("timeout", "patience"), [(None, PATIENCE), (60.0, 30.0), (10 * PATIENCE, PATIENCE)]
)
def test_all_workers_may_leave_for_a_while(clock, caplog, timeout, patience):
    executor = Changing(Leaves(clock, 0, patience / 2.5))
    pool = Pool(executor, timeout)
    assert pool.workers == WORKERS
    for _ in range(2):  # the wait starts again
        executor.leaves.looks = 4
        assert whole(evaluate(pool))[-1][1] == ROWS
    assert len(caplog.records) == 2
    executor.leaves.looks = 100
    with refused(f"{patience:.0f} s", executor.remedy, kind=NoWorkers):
        evaluate(pool)
    assert f"{patience:.0f} s" in caplog.messages[-1]
    assert pool.workers == WORKERS
    pool.close()
    assert executor.closed


def test_the_number_of_workers_is_the_largest_or_what_is_wanted():
    executor = Instant()
    pool = Pool(executor)
    assert pool.name == "instant"
    numbers = []
    for executor.workers, executor.wanted in ((0, 0), (0, 1), (3, 1), (2, 1), (2, 5)):
        numbers.append(pool.workers)
    assert numbers == [0, 1, 3, 3, 5]


def test_lines_of_workers_reach_the_log_up_to_a_limit(caplog):
    caplog.set_level(logging.INFO, logger="qdsweep")
    lines = tuple(f"line {number}" for number in range(MAX_LOG_LINES // ROWS))  # for each row
    pool = Pool(Instant(lambda part, first: answer_of(part, lines)))
    for _ in range(2):
        evaluate(pool)
    assert len(caplog.messages) == MAX_LOG_LINES + 1
    assert caplog.messages[:2] == ["[worker 7] line 0", "[worker 7] line 1"]
    assert caplog.messages[MAX_LOG_LINES - 1] == f"[worker 7] {lines[-1]}"
    assert "state/workers" in caplog.messages[-1]


class Steady:
    """A domain in which each row takes some seconds."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock, self.seconds = clock, seconds
        self.solution_dim, self.measures, self.fields = 3, {}, {}

    def evaluate(self, solutions, seeds) -> Evaluation:
        self.clock.now += self.seconds * len(solutions)
        return Evaluation(np.zeros(len(solutions)), np.zeros((len(solutions), 0)))


def test_parts_of_the_serial_engine_grow_to_half_a_second(clock):
    domain = Steady(clock, PART_SECONDS / 10)
    engine = Serial(domain)
    engine.wait()
    assert (engine.name, engine.workers) == ("serial", 1)
    trained = []
    rows, train = [slice(0, 3), slice(5, 31)], partial(trained.append, 1)
    parts = []
    for part, outcome in engine.evaluate(BATCH, rows, train):
        parts.append((part.start, part.stop))
        assert outcome.seconds == pytest.approx(domain.seconds * (part.stop - part.start))
    assert trained == [1]
    assert parts == [(0, 1), (1, 3), (5, 9), (9, 17), (17, 25), (25, 31)]
    domain.seconds = 0.7 * PART_SECONDS
    parts = [part.stop - part.start for part, _ in engine.evaluate(BATCH, [slice(0, 20)])]
    assert parts == [8, 4, 2, 2, 2, 2]
    for seconds, expected in ((1.0, [2, 2, 1]), (3.0, [2, 1, 1, 1]), (0.5, [1] * 5)):
        clock.now, domain.seconds = 0.0, seconds * PART_SECONDS  # 1 and 0.5 are the exact limits
        parts = [part.stop - part.start for part, _ in engine.evaluate(BATCH, [slice(0, 5)])]
        assert parts == expected
    engine.close()


@pytest.mark.parametrize("scored", [None, -5.0])
def test_the_serial_engine_waits_for_what_the_machine_lacks(clock, monkeypatch, scored):
    class Lacks(Steady):
        left = 0

        def evaluate(self, solutions, seeds):
            if 4 in solutions[:, 0] and self.left and len(solutions) == 1:
                self.left -= 1
                raise RuntimeError("the simulator failed") from MemoryError("4 GiB")
            if 4 in solutions[:, 0] and len(solutions) > 1:  # a single row needs less
                raise OSError(errno.ENOMEM, "no")
            return super().evaluate(solutions, seeds)

    def sleep(seconds: float) -> None:
        clock.now += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    solutions = np.repeat(np.arange(ROWS, dtype=float)[:, None], 3, axis=1)
    batch, domain = BATCH._replace(solutions=solutions), Lacks(clock, 0.0)
    for timeout, pause in ((None, 3.0), (60.0, 3.0), (6.0, 1.0)):
        clock.now, domain.left = 0.0, MAX_LOSSES - 1
        results = list(Serial(domain, scored, timeout).evaluate(batch, [slice(0, 9)]))
        assert sum(len(outcome.evaluation.objective) for _, outcome in results) == 9
        assert not any(outcome.failures for _, outcome in results)
        assert clock.now == (MAX_LOSSES - 1) * pause
    domain.left = MAX_LOSSES
    with refused("memory", "solution 4 ", "the simulator failed", kind=EvaluationFailed):
        list(Serial(domain, scored).evaluate(batch, [slice(0, 9)]))
    assert domain.left == 0


def test_the_serial_engine_scores_a_failure_by_its_row(clock):
    class Fails(Steady):
        def evaluate(self, solutions, seeds):
            if 4 in solutions[:, 0]:
                raise ValueError("four")
            return super().evaluate(solutions, seeds)

    solutions = np.repeat(np.arange(ROWS, dtype=float)[:, None], 3, axis=1)
    batch = BATCH._replace(solutions=solutions)
    domain = Fails(clock, 0.0)
    results = list(Serial(domain, -5.0).evaluate(batch, [slice(2, 9)]))
    failures = [failure.row for _, outcome in results for failure in outcome.failures]
    assert failures == [4]
    objectives = np.concatenate([outcome.evaluation.objective for _, outcome in results])
    assert objectives.tolist() == [0, 0, -5, 0, 0, 0, 0]
    with refused(4, "four", kind=EvaluationFailed):
        list(Serial(domain).evaluate(batch, [slice(2, 9)]))
