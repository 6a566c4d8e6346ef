"""The preset experiments on gymnasium's tasks: what they promise of their domains."""

import numpy as np
import pytest

from qdsweep.config.compose import compose
from qdsweep.domains import make_domain


def evaluate(name, solutions, **changes):
    """Evaluates as a run of the preset does; `solutions`: how many random ones, or an array."""
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
