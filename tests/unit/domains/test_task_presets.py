"""The preset experiments on gymnasium's tasks have the declared domains."""

import numpy as np
import pytest

from qdsweep.config.compose import compose
from qdsweep.domains import make_domain


def evaluate(name, solutions, **changes):
    """Evaluates as in a run of the preset; `solutions` is a number of random ones, or an array."""
    experiment = compose(name)
    config = experiment.domain.model_copy(update=changes)
    domain = make_domain(config)
    if isinstance(solutions, int):
        rng = np.random.default_rng(0)
        solutions = domain.step * rng.normal(size=(solutions, domain.solution_dim))
    seeds = np.full(len(solutions), config.evaluation_seed, dtype=np.uint32)
    return experiment, domain, domain.evaluate(solutions, seeds)


@pytest.mark.parametrize(
    ("name", "count", "steps"),
    [("cartpole", 200, 500), ("pendulum", 60, 200), ("bipedal_walker", 30, 100)],
)
def test_random_policies_differ_in_their_measures(name, count, steps):
    experiment, domain, result = evaluate(name, count, max_episode_steps=steps)
    low, high = np.array(list(domain.measures.values())).T
    within = ((result.measures >= low) & (result.measures <= high)).all(axis=1)
    assert within.mean() > 0.9
    places = (result.measures - low) / (high - low) * experiment.archive.dims
    assert len(np.unique(places.astype(int), axis=0)) > count / 5
    low, high = domain.objective_range
    assert (result.objective >= low).all() and (result.objective <= high).all()


def test_the_pendulum_starts_hanging():
    _, domain, result = evaluate("pendulum", np.zeros((1, 41)))
    assert result.objective == pytest.approx(-200 * np.pi**2, rel=0.02)
    assert domain.solution_dim == 41


@pytest.mark.parametrize(("name", "best"), [("rl_cartpole", 500), ("rl_lunar_lander", 300)])
def test_tasks_of_reinforcement_learning_have_a_fresh_seed_for_each_episode(name, best):
    experiment = compose(name)
    assert list(experiment.budget) == ["steps"] and experiment.domain.evaluation_seed == "solution"
    domain = make_domain(experiment.domain)
    assert domain.actor.discrete and [outputs for outputs, _ in domain.actor.shapes[:2]] == [64, 64]
    draws = [domain.xavier(np.random.SeedSequence(seed)) for seed in range(20)]
    result = domain.evaluate(np.array(draws), np.arange(20, dtype=np.uint32))
    low, high = np.array(list(domain.measures.values())).T
    inside = (result.measures >= low) & (result.measures <= high)
    assert inside.mean() > 0.8 and np.ptp(result.measures, axis=0).min() > 0.1
    assert domain.objective_range[1] == best >= result.objective.max()
