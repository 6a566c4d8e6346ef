"""ME-ES: its insertions, its gradients, and the elites that it starts from."""

import numpy as np
import pytest
from learners import tell
from refusals import refused
from small_runs import experiment

from qdsweep.algorithms import make_algorithm
from qdsweep.algorithms.base import Candidates
from qdsweep.domains import make_domain

EXPERIMENT = {"algorithm": "me_es", "num_emitters": 1, "batch_size": 41, "lr": 0.3}


def made(**changes):
    exp = experiment(**EXPERIMENT | changes)
    domain = make_domain(exp.domain)
    return make_algorithm(exp, domain, None), domain


def iterate(algorithm, domain, count=1):
    """Runs some iterations, and returns the solutions of each batch of the last one."""
    for _ in range(count):
        batches = []
        while (candidates := algorithm.ask()) is not None:
            tell(algorithm, domain, candidates)
            batches.append(candidates.solutions)
    return batches


def test_only_the_parent_after_its_step_is_inserted():
    algorithm, domain = made()
    samples, parent = iterate(algorithm, domain)
    assert len(samples) == 40 and len(parent) == 1
    np.testing.assert_allclose(samples[:20] + samples[20:], np.tile(2 * domain.x0, (20, 1)))
    np.testing.assert_array_equal(algorithm.archive.rows()["solution"], parent)
    # Adam's first step is of the length lr in every parameter.
    np.testing.assert_allclose(np.abs(parent - domain.x0), 0.3, rtol=1e-3)


def test_it_climbs_the_objective_then_novelty_and_restarts_from_an_elite():
    algorithm, domain = made(generations=5)
    objective = [domain.evaluate(iterate(algorithm, domain)[1], None).objective for _ in range(5)]
    assert np.all(np.diff(np.ravel(objective)) > 0) and algorithm.restarts == 0
    elites = algorithm.archive.rows()["solution"]
    samples, _ = iterate(algorithm, domain)
    assert algorithm.restarts == 1 and algorithm._exploring
    start = (samples[0] + samples[20]) / 2
    assert np.abs(elites - start).max(axis=1).min() < 1e-9
    before = algorithm._parents[:5]
    iterate(algorithm, domain, 4)

    def novelty(measures):
        return ((measures - before) ** 2).sum(axis=1).mean()

    assert novelty(algorithm._parents[-1]) > novelty(algorithm._parents[5])
    iterate(algorithm, domain)
    assert algorithm.restarts == 2 and not algorithm._exploring


def test_novelty_is_the_mean_squared_distance_to_the_nearest_parents():
    algorithm, domain = made(neighbors=2)
    width = np.ptp(list(domain.measures.values()), axis=1)
    algorithm._parents = np.array([[0.0, 0.0], [0.1, 0.0], [0.5, 0.5]])
    novelty = algorithm._novelty(np.array([[0.0, 0.0], [0.2, 0.0]]) * width)
    np.testing.assert_allclose(novelty, [0.01 / 2, (0.01 + 0.04) / 2])
    algorithm._parents = algorithm._parents[:1]
    np.testing.assert_allclose(algorithm._novelty(np.array([[0.2, 0.0]]) * width), [0.04])


@pytest.fixture
def filled():
    """Ten elites in a row with objectives 100, 1, 2, ..., 9; the best one is the oldest."""
    algorithm, domain = made()
    low, ((edge, _), _) = domain.objective_range[0], domain.measures.values()
    for place in range(10):
        algorithm._batch = 2
        measures = np.array([[edge * (1 - place / 5), 0.0]])
        value = domain.evaluate(np.zeros((1, 10)), None)._replace(
            objective=np.array([low + (place or 100)]), measures=measures
        )
        solution = np.full((1, 10), float(place))
        algorithm.tell(Candidates(solution, seeds=np.zeros(1, dtype=np.uint32)), value)
    return algorithm


def shares(algorithm, exploring):
    """How often each of the ten elites is chosen."""
    algorithm._exploring = exploring
    drawn = np.array([algorithm._elite()[0] for _ in range(2000)], dtype=int)
    return np.bincount(drawn, minlength=10) / 2000


def test_to_climb_the_objective_it_starts_from_the_best_or_the_better_of_the_newest(filled):
    # The best in half of the draws, otherwise one of the two best of the last five, 9 : 8.
    expected = np.zeros(10)
    expected[[0, 9, 8]] = 0.5, 0.5 * 9 / 17, 0.5 * 8 / 17
    np.testing.assert_allclose(shares(filled, exploring=False), expected, atol=0.05)


def test_to_climb_novelty_it_starts_from_what_is_most_novel(filled):
    # All parents are near the first elite, so distant elites are more novel.
    filled._parents = filled._parents[:1]
    expected = np.full(10, 0.01)
    expected[5:] += 0.9 * np.arange(5, 10) ** 2 / np.sum(np.arange(5, 10) ** 2)
    np.testing.assert_allclose(shares(filled, exploring=True), expected, atol=0.05)


def test_while_thresholds_refuse_all_it_climbs_from_where_it_is():
    exp = {"archive.learning_rate": 0.1, "threshold_min": 1e6, "generations": 1}
    algorithm, domain = made(**exp)
    _, parent = iterate(algorithm, domain)
    samples, _ = iterate(algorithm, domain)
    assert not len(algorithm.archive.rows()["solution"])
    np.testing.assert_allclose((samples[0] + samples[20]) / 2, parent[0])


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"batch_size": 2}, ("batch_size = 2", "me_es", "3")),
        ({"archive.type": "proximity"}, ("proximity",)),
    ],
)
def test_what_does_not_fit_is_refused(changes, names):
    with refused(*names):
        experiment(**EXPERIMENT | changes)
