"""The pool of all executors: what it hands out, and when."""

import time
from concurrent.futures import Future
from functools import partial

import numpy as np

from qdsweep.domains.base import Evaluation
from qdsweep.engines.base import Answer, Batch, Outcome
from qdsweep.engines.pool import BATCHES, PER_WORKER, SECONDS, Pool

ROWS = 40


class Instant:
    """Two workers that say that a row takes them 0.2 s."""

    name, remedy, wanted, workers = "instant", "", 2, 2

    def __init__(self):
        self.parts = []

    def submit(self, part, first):
        n = len(part.solutions)
        self.parts.append(n)
        future: Future[Answer] = Future()
        result = Evaluation(np.zeros(n), np.zeros((n, 1)))
        future.set_result(Answer(Outcome(result, [], 0.2 * n), [], "worker"))
        return future

    def problem(self):
        return None

    def close(self):
        pass


def test_workers_have_enough_to_do_while_the_main_process_trains(monkeypatch):
    """As long as it took in one of the last batches, as an iteration may have several.

    Without, no part is handed out earlier than needed.
    """
    executor = Instant()
    pool = Pool(executor)
    batch = Batch(np.zeros((ROWS, 3)), np.zeros(ROWS, dtype=np.uint32))
    ahead, clock = [], [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def meanwhile(seconds):
        ahead.append(len(executor.parts))
        clock[0] += seconds

    for seconds in (0.0, 4 * SECONDS, *[0.0] * (BATCHES + 1)):
        executor.parts.clear()
        for _ in pool.evaluate(batch, [slice(0, ROWS)], partial(meanwhile, seconds)):
            pass
        assert sum(executor.parts) == ROWS
    few, more = 2 * PER_WORKER, 2 * (PER_WORKER + 4)
    assert ahead == [few, few, *[more] * BATCHES, few]


def test_workers_are_given_all_that_is_left_if_the_main_process_trains_longer(monkeypatch):
    executor, clock, ahead = Instant(), [0.0], []
    pool = Pool(executor)
    batch = Batch(np.zeros((ROWS, 3)), np.zeros(ROWS, dtype=np.uint32))
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def meanwhile():
        ahead.append(sum(executor.parts))
        clock[0] += ROWS * SECONDS

    for _ in range(2):
        executor.parts.clear()
        assert len(list(pool.evaluate(batch, [slice(0, ROWS)], meanwhile))) == len(executor.parts)
    assert ahead == [2 * PER_WORKER, ROWS]


def test_a_batch_that_is_all_done_trains_too():
    """As the serial engine has it: whether a run trains must not depend on the engine."""
    called = []
    batch = Batch(np.zeros((1, 3)), np.zeros(1, dtype=np.uint32))
    assert list(Pool(Instant()).evaluate(batch, [], partial(called.append, 1))) == []
    assert called == [1]
