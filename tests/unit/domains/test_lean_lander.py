"""The lander's fast path equals gymnasium's own environment, bit for bit."""

import gymnasium as gym
import numpy as np
import pytest
from lander_example import by_gymnasium

from qdsweep.domains import lunar_lander
from qdsweep.domains.lunar_lander import LunarLander

# Lands softly from some starts (found by CMA-ME).
LANDS = np.array(
    [
        *(-7.564, -4.481, -2.249, 8.33, 1.643, 0.962, 11.216, -3.078),
        *(-2.039, 3.764, 12.188, 3.568, -4.863, -0.711, 2.089, -1.837),
        *(1.895, -1.498, -5.606, -10.259, -0.074, -1.216, -2.494, 3.845),
        *(-0.338, 13.635, -5.387, 6.857, 7.953, 10.515, 4.384, 1.784),
    ]
)


def test_it_is_used_here():
    assert not lunar_lander.differing_versions(), "prove it with the new versions of the lock file"
    assert LunarLander(1)._lean is not None


def test_hundreds_of_policies_and_seeds_and_every_end():
    rng = np.random.default_rng(7)
    domain = LunarLander(1)
    ends = []
    for case in range(400):
        scale = (0.05, 0.5, 2.0)[case % 3]
        near = LANDS if case % 2 else 0.0
        solution = near + scale * rng.normal(size=32)
        seed = 52 if case % 5 == 0 else int(rng.integers(2**32))
        expected, end = by_gymnasium(solution, seed)
        assert domain._land(solution, seed) == expected, (case, seed)
        ends.append(end)
    counts = {end: ends.count(end) for end in set(ends)}
    assert set(counts) == {"asleep", "crash", "away", "limit"}, counts


@pytest.mark.parametrize("limit", [1, 2, 40, 129, 300])
def test_any_time_limit(limit):
    env = gym.make("LunarLander-v3").unwrapped
    lean = lunar_lander.LeanLander(env, limit)
    for seed in range(5):
        expected, _ = by_gymnasium(LANDS, seed, limit)
        assert lean.land(LANDS.reshape(4, 8), seed) == expected


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_weights_that_overflow():
    domain = LunarLander(1)
    for scale in (1e150, 1e300, 1.7e308, np.inf):
        assert domain._land(scale * LANDS, 3) == by_gymnasium(scale * LANDS, 3)[0]


def test_other_versions_take_the_plain_path_and_say_so(monkeypatch):
    fast = LunarLander(1)
    monkeypatch.setitem(lunar_lander.PROVEN, "box2d", "2.3.9")
    plain = LunarLander(1)
    assert plain._lean is None
    assert "box2d 2.3.10" in plain.remark
    seeds = np.arange(6, dtype=np.uint32)
    solutions = np.random.default_rng(1).normal(size=(6, 32))
    for one, other in zip(
        fast.evaluate(solutions, seeds)[:2], plain.evaluate(solutions, seeds)[:2], strict=True
    ):
        np.testing.assert_array_equal(one, other)
