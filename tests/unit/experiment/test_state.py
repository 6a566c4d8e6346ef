"""The state of a run: a pending batch, seeds of evaluations, budgets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_runs import experiment, fresh

from qdsweep.domains.base import Evaluation, Record
from qdsweep.engines.batch import Batch
from qdsweep.experiment.state import (
    Pending,
    State,
    evaluation_seeds,
    measure,
    no_seconds,
    reached,
)

COUNT = 7
SEEDS = np.arange(COUNT, dtype=np.uint32)
BATCH = Batch(np.zeros((COUNT, 2)), SEEDS)


def record(row: int) -> Record:
    return Record(*(np.full((1, 1), row) for _ in range(4)))


def evaluation(rows: slice, **others: object) -> Evaluation:
    """Returns results that differ in each row; row 3 has no record."""
    numbers = np.arange(rows.start, rows.stop, dtype=float)
    return Evaluation(
        numbers,
        np.stack([numbers, -numbers], axis=1),
        {"extra": np.repeat(numbers[:, None], 3, axis=1).astype(np.float32)},
        jacobian=np.ones((len(numbers), 3, 2)) * numbers[:, None, None],
        tally=numbers[:, None] * 10,
        experience=[None if row == 3 else record(row) for row in range(rows.start, rows.stop)],
        steps=numbers.astype(np.int64) * 100,
    )


@given(st.lists(st.integers(1, COUNT - 1), unique=True).map(sorted), st.randoms())
def test_parts_in_any_order_are_the_whole_evaluation(cuts, random):
    pending = Pending.of(BATCH._replace(experience=True))
    assert pending.missing() == [slice(0, COUNT)]
    assert pending.done.dtype == bool
    parts = [slice(a, b) for a, b in zip([0, *cuts], [*cuts, COUNT], strict=True)]
    random.shuffle(parts)
    for part in parts:
        pending.put(part, evaluation(part))
    assert pending.missing() == []
    merged, expected = pending.evaluation(), evaluation(slice(0, COUNT))
    for name in ("objective", "measures", "jacobian", "tally", "steps"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(expected, name), strict=True)
    assert merged.fields.keys() == {"extra"}
    np.testing.assert_array_equal(merged.fields["extra"], expected.fields["extra"], strict=True)
    rows = [None if each is None else int(each[0][0, 0]) for each in merged.experience]
    assert rows == [0, 1, 2, None, 4, 5, 6]


def test_what_a_domain_does_not_give_is_none():
    pending = Pending.of(BATCH)
    pending.put(slice(0, COUNT), Evaluation(np.zeros(COUNT), np.zeros((COUNT, 1))))
    merged = pending.evaluation()
    assert merged[2:] == ({}, None, None, None, None)


def test_a_failed_row_counts_once_however_often_it_is_evaluated():
    pending = Pending.of(BATCH)
    for rows, failed in ((slice(0, 4), [1, 3]), (slice(0, 4), [1, 3]), (slice(4, COUNT), [6])):
        pending.put(
            rows, Evaluation(np.zeros(len(SEEDS[rows])), np.zeros((COUNT, 1))[rows]), failed
        )
    assert np.flatnonzero(pending.failed).tolist() == [1, 3, 6]
    assert pending.evaluation().steps is None, "the domain counts none"
    pending.failed[:] = True
    assert pending.evaluation().steps.tolist() == [0] * COUNT


def test_a_batch_with_missing_rows_has_no_evaluation():
    pending = Pending.of(BATCH)
    for rows in (slice(1, 3), slice(5, 6)):
        pending.put(rows, evaluation(rows))
    assert pending.missing() == [slice(0, 1), slice(3, 5), slice(6, 7)]
    with pytest.raises(AssertionError):
        pending.evaluation()


def test_a_solution_has_the_same_seed_in_any_batch():
    seeds = evaluation_seeds("solution", 7, 3, 0, 6)
    sequence = np.random.SeedSequence(7, spawn_key=(1, 3))
    np.testing.assert_array_equal(seeds, sequence.generate_state(6), strict=True)
    np.testing.assert_array_equal(evaluation_seeds("solution", 7, 3, 2, 4), seeds[2:], strict=True)


@pytest.mark.parametrize(("policy", "key"), [("iteration", 3), ("fixed", 0)])
def test_one_seed_for_an_iteration_or_all(policy, key):
    (seed,) = np.random.SeedSequence(7, spawn_key=(1, key)).generate_state(1)
    expected = np.full(5, seed, dtype=np.uint32)
    np.testing.assert_array_equal(evaluation_seeds(policy, 7, 3, 2, 5), expected, strict=True)


def test_a_number_is_the_seed_of_every_evaluation():
    expected = np.full(5, 52, dtype=np.uint32)
    np.testing.assert_array_equal(evaluation_seeds(52, 7, 3, 2, 5), expected, strict=True)


@pytest.fixture
def state(tmp_path) -> State:
    return fresh(experiment(), tmp_path)[0]


def test_an_iteration_that_ends_is_counted(state):
    assert state.is_between_iterations
    state.asked, state.trained, state.evaluations = 8, True, 40
    assert not state.is_between_iterations
    state.end_iteration()
    state.asked += 8
    state.end_iteration()
    assert (state.iterations, state.evaluations, state.asked) == (2, 56, 0)
    assert state.trained is False
    state.pending = Pending.of(BATCH)
    assert not state.is_between_iterations


def test_a_budget_is_used_when_all_its_units_are(state):
    state.iterations, state.evaluations, state.steps = 3, 30, None
    assert reached(state, {"iterations": 3, "evaluations": 29})
    assert not reached(state, {"iterations": 3, "evaluations": 31})
    assert reached(state, {"steps": 0}) and not reached(state, {"steps": 1})


def test_a_row_of_metrics_counts_what_was_spent(state):
    state.iterations, state.evaluations, state.steps = 3, 30, 300
    row = measure(state)
    spent = {"iteration": 3, "evaluations": 30, "steps": 300}
    assert row == {**spent, **state.algorithm.metrics()}
    phases = ("ask", "evaluate", "tell", "reload", "compile")
    assert state.seconds == no_seconds() == dict.fromkeys(phases, 0.0)
