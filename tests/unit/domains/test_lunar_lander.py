"""The lunar lander equals gymnasium's own environment, bit for bit, and so does its fast path."""

import gymnasium as gym
import numpy as np
import pytest
from by_gymnasium import land
from domain_makers import make

from qdsweep.domains import lunar_lander
from qdsweep.domains.episodes import episode_seeds
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
# Balances, brakes and so hovers until the time limit.
TILT = np.array([0.25, 0, 0.5, 0, -0.5, -1, 0, 0])
HOVERS = np.concatenate([np.zeros(8), TILT, [0, 0, 0, -0.5, 0, 0, 0, 0], -TILT])


def test_the_fast_path_is_used_here():
    assert not lunar_lander.differing_versions(), "test it with the new versions of the lock file"
    assert LunarLander(1)._lean is not None


def test_hundreds_of_policies_and_seeds_and_every_end():
    rng = np.random.default_rng(7)
    solutions = [HOVERS]
    for case in range(399):
        near = LANDS if case % 2 else 0.0
        solutions.append(near + (0.05, 0.5, 2.0)[case % 3] * rng.normal(size=32))
    seeds = rng.integers(2**32, size=400, dtype=np.uint32)
    seeds[::5] = 52
    result = make(type="lunar_lander").evaluate(np.array(solutions), seeds)
    assert result.fields == {}
    ends = set()
    rows = zip(solutions, seeds, result.objective, result.measures, strict=True)
    for solution, seed, objective, measures in rows:
        expected, end = land(solution, int(seed))
        assert [objective, *measures] == expected, seed
        ends.add(end)
    assert ends == {"asleep", "crash", "away", "limit"}


@pytest.mark.parametrize("limit", [1, 2, 40, 129, 300])
def test_any_time_limit(limit):
    env = gym.make("LunarLander-v3").unwrapped
    lean = lunar_lander.LeanLander(env, limit)
    for seed in range(5):
        assert lean.land(LANDS.reshape(4, 8), seed) == land(LANDS, seed, limit)[0]


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_weights_that_overflow():
    domain = LunarLander(1)
    for scale in (1e150, 1e300, 1.7e308, np.inf):
        assert domain._land(scale * LANDS, 3) == land(scale * LANDS, 3)[0]


def test_other_versions_take_the_plain_path_and_say_so(monkeypatch):
    fast = LunarLander(1)
    monkeypatch.setitem(lunar_lander.PROVEN, "box2d", "2.3.9")
    plain = LunarLander(1)
    assert plain._lean is None
    assert "box2d 2.3.10" in plain.remark
    seeds = np.arange(6, dtype=np.uint32)
    solutions = np.random.default_rng(1).normal(size=(6, 32))
    results = (lander.evaluate(solutions, seeds)[:2] for lander in (fast, plain))
    for by_fast, by_plain in zip(*results, strict=True):
        np.testing.assert_array_equal(by_fast, by_plain)


def test_episodes_are_averaged_over_children_of_the_seed():
    x = np.random.default_rng(4).normal(size=(2, 32))
    single, triple = make(type="lunar_lander"), make(type="lunar_lander", episodes=3)
    result = triple.evaluate(x, np.array([7, 8], dtype=np.uint32))
    assert triple.fields == {"objective_std": ()}
    assert result.fields["objective_std"].shape == (2,)
    children = np.random.SeedSequence(8).generate_state(3)
    singles = single.evaluate(np.repeat(x[1:], 3, axis=0), children)
    assert result.objective[1] == singles.objective.mean()
    assert result.fields["objective_std"][1] == singles.objective.std()
    np.testing.assert_array_equal(result.measures[1], singles.measures.mean(axis=0))
    assert episode_seeds(np.uint32(52), 1) == [52], "one episode has the seed of its evaluation"
