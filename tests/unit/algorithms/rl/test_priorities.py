"""Proportional priorities: what is drawn how often, and that sums never drift."""

import pickle

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
from qdsweep.algorithms.rl.dqn import Priorities


@pytest.mark.parametrize("capacity", [1, 2, 5, 64, 100])
def test_slots_are_drawn_in_proportion_to_their_priorities(capacity):
    rng = np.random.default_rng(1)
    priorities, wanted = Priorities(capacity), rng.random(capacity)
    wanted[::3] = 0.0
    wanted[-1] = 2.0
    priorities[np.arange(capacity)] = wanted
    np.testing.assert_array_equal(priorities[np.arange(capacity)], wanted)
    count = 20_000
    drawn = np.bincount(priorities.draw(rng.random(count)), minlength=capacity)
    # One of each of `count` equal parts: a slot has its share, to a draw at each end.
    assert np.abs(drawn - count * wanted / wanted.sum()).max() <= 2
    assert (drawn[wanted == 0] == 0).all()


def test_the_extreme_draws_hit_slots_that_have_a_priority():
    priorities = Priorities(7)
    priorities[np.array([2, 5])] = np.array([0.1, 0.3])
    most = np.nextafter(1.0, 0.0)
    assert list(priorities.draw(np.array([0.0]))) == [2]
    assert list(priorities.draw(np.array([most, most]))) == [5, 5]


def test_sums_depend_on_the_priorities_alone_not_on_what_came_before():
    rng = np.random.default_rng(2)
    changed, fresh = Priorities(50), Priorities(50)
    for _ in range(100):
        slots = rng.integers(0, 50, 20)  # some of them twice
        changed[slots] = rng.random(20) * 10.0 ** rng.integers(-8, 8)
    every = np.arange(50)
    fresh[every] = changed[every]
    again = pickle.loads(pickle.dumps(changed))
    changed[every[:0]] = np.empty(0)
    for other in (fresh, again):
        np.testing.assert_array_equal(changed._sums, other._sums)
