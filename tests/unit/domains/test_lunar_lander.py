"""The lunar lander: the bits of pyribs' example, episodes and their seeds."""

import numpy as np
from domain_makers import make
from lander_example import by_gymnasium

from qdsweep.domains.episodes import episode_seeds


def test_lunar_lander_has_the_bits_of_the_pyribs_example():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(30, 32))
    # Balances, brakes and so hovers until the time limit, which has to be the same, too.
    tilt = np.array([0.25, 0, 0.5, 0, -0.5, -1, 0, 0])
    x[0] = np.concatenate([np.zeros(8), tilt, [0, 0, 0, -0.5, 0, 0, 0, 0], -tilt])
    seeds = rng.integers(2**32, size=30, dtype=np.uint32)
    seeds[1] = 52
    result = make(type="lunar_lander").evaluate(x, seeds)
    expected = [by_gymnasium(row, int(seed))[0] for row, seed in zip(x, seeds, strict=True)]
    np.testing.assert_array_equal(
        np.column_stack([result.objective, result.measures]), np.array(expected, dtype=float)
    )
    assert result.fields == {}


def test_episodes_are_averaged_over_children_of_the_seed():
    x = np.random.default_rng(4).normal(size=(2, 32))
    one, three = make(type="lunar_lander"), make(type="lunar_lander", episodes=3)
    result = three.evaluate(x, np.array([7, 8], dtype=np.uint32))
    assert three.fields == {"objective_std": ()}
    assert result.fields["objective_std"].shape == (2,)
    children = np.random.SeedSequence(8).generate_state(3)
    singles = one.evaluate(np.repeat(x[1:], 3, axis=0), children)
    assert result.objective[1] == singles.objective.mean()
    assert result.fields["objective_std"][1] == singles.objective.std()
    np.testing.assert_array_equal(result.measures[1], singles.measures.mean(axis=0))


def test_one_episode_has_the_seed_of_its_evaluation():
    assert episode_seeds(np.uint32(52), 1) == [52]
    assert 52 not in episode_seeds(52, 4) and len(set(episode_seeds(52, 4))) == 4
