"""CMA-MEGA with estimated gradients: its batches, insertions and gradients."""

from copy import deepcopy

import numpy as np
import pytest
from composing import with_algorithm
from learners import tell
from refusals import refused
from small_runs import experiment

from qdsweep.algorithms import make_algorithm
from qdsweep.domains import make_domain
from qdsweep.domains.base import Actor, Evaluation, Record

ES = {"algorithm": "cma_mega_es", "num_emitters": 1, "batch_size": 24}
ACTOR = Actor(((4, 3), (2, 4)), True, "tanh", np.full(2, -1.0), np.full(2, 1.0))
D = 4 * 3 + 4 + 2 * 4 + 2


@pytest.fixture
def calls_of(monkeypatch):
    """Records the keywords of each call of a method."""

    def watch(owner, name):
        calls, method = [], getattr(owner, name)

        def noted(**keys):
            calls.append(deepcopy(keys))  # the method changes some of them
            return method(**keys)

        monkeypatch.setattr(owner, name, noted)
        return calls

    return watch


def sizes(calls):
    return [len(keys["solution"]) for keys in calls]


def play(algorithm, domain, batches):
    """Asks for some batches, passes their results, and returns the last batch."""
    for _ in range(batches):
        candidates = algorithm.ask()
        tell(algorithm, domain, candidates)
    return candidates


def test_an_iteration_is_the_mean_with_samples_then_what_branches(calls_of):
    exp = experiment(**ES)
    domain = make_domain(exp.domain)
    algorithm = make_algorithm(exp, domain, None)
    insertions = calls_of(algorithm.ribs_archive, "add")
    first = algorithm.ask()
    assert not first.gradients and not first.experience
    mean, around = first.solutions[0], first.solutions[1:]
    assert around.shape == (12, domain.solution_dim)
    np.testing.assert_array_equal(mean, domain.x0)
    np.testing.assert_allclose(around[:6] + around[6:], np.tile(2 * mean, (6, 1)), atol=1e-12)
    assert np.std(around - mean) == pytest.approx(domain.step, rel=0.3)

    tell(algorithm, domain, first)
    np.testing.assert_array_equal(algorithm.archive.rows()["solution"], [mean])
    assert len(play(algorithm, domain, 1).solutions) == 11
    assert algorithm.ask() is None and sizes(insertions) == [1, 11]


def test_the_branched_solutions_lie_along_estimates_of_the_exact_gradients():
    """With many samples, they are close to those with the domain's own jacobian."""
    exp = experiment(**ES | {"batch_size": 4012, "samples": 4000, "algorithm.sigma": 0.05})
    domain = make_domain(exp.domain)
    estimated, exact = (make_algorithm(exp, domain, None) for _ in range(2))
    exact._jacobian = lambda candidates, _: domain.jacobian(candidates.solutions[:1])[0]
    estimate, truth = (play(each, domain, 2).solutions for each in (estimated, exact))
    # The error of a unit gradient from p pairs has the length sqrt((d - 1) pi / 3 / p).
    error = np.linalg.norm(estimate - truth, axis=1).mean() / np.linalg.norm(truth, axis=1).mean()
    assert 0.01 < error < 0.12  # two to three gradients add up


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"num_emitters": 2}, ("num_emitters = 2", "num_emitters: 1")),
        ({"batch_size": 4}, ("batch_size = 4", 5)),
        ({"samples": 22}, ("batch_size = 24", 25, 22)),
        ({"ranker": "nov"}, ("ranker", "nov", "grid")),
    ],
)
def test_what_does_not_fit_is_refused(changes, names):
    with refused(*names):
        experiment(**ES | changes)


def test_settings_change_during_the_run():
    algorithm = make_algorithm(experiment(**ES), make_domain(experiment(**ES).domain), None)
    algorithm.change("algorithm.sigma", 0.001)
    around = algorithm.ask().solutions[1:]
    assert np.std(around) == pytest.approx(0.001, rel=0.3)
    algorithm.change("algorithm.emitter.lr", 0.25)
    assert algorithm._emitter._grad_opt._lr == 0.25
    with refused("batch_size"):
        algorithm.change("batch_size", 40)


class Episodes:
    """An invented domain with episodes of three steps, where each solution sometimes fails."""

    solution_dim, fields, x0, step = D, {}, np.zeros(D), 0.1
    measures, objective_range, actor = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}, (-50.0, 0.0), ACTOR

    def evaluate(self, solutions, seeds, experience=True):
        rng = np.random.default_rng(0)
        records = [
            Record(
                rng.normal(size=(4, 3)).astype(np.float32),
                rng.uniform(-1, 1, (3, 2)).astype(np.float32),
                rng.normal(size=3).astype(np.float32),
                np.array([0, 0, 1], dtype=np.uint8),
            )
            for _ in solutions
        ]
        records[0] = None
        objective = -np.sum((solutions - 0.3) ** 2, axis=1)
        return Evaluation(objective, solutions[:, :2], experience=records)


@pytest.fixture
def learning():
    sizes = {"archive": {"dims": [6, 5]}, "batch_size": 24, "iterations": 5}
    quick = {"training_steps": 3, "gradient_observations": 20}
    exp = with_algorithm("cma_mega_td3_es", sizes, **quick)
    return make_algorithm(exp, Episodes(), None)


def test_the_critic_shows_where_the_objective_grows(learning, calls_of):
    steps = calls_of(learning._emitter, "tell_dqd")
    critic, domain = learning._critic, Episodes()
    for _ in range(2):
        play(learning, domain, 2)
        assert learning.ask() is None
    # At first a random direction. Then, without training here, again a random one.
    first, second = (step["jacobian"][0][0] for step in steps)
    assert np.std(first) == pytest.approx(1, rel=0.4) and not np.array_equal(first, second)

    candidates = learning.ask()
    learning.meanwhile()
    wanted = learning._objective_gradient.copy()
    assert wanted.any() and critic._steps == 3
    tell(learning, domain, candidates)
    np.testing.assert_array_equal(steps[-1]["jacobian"][0][0], wanted)
    assert learning._objective_gradient is None  # it does not belong to the next mean


def test_the_greedy_actor_is_inserted_but_not_ranked(learning, calls_of):
    insertions, ranked = calls_of(learning.ribs_archive, "add"), calls_of(learning._emitter, "tell")
    domain = Episodes()
    last = play(learning, domain, 2)
    np.testing.assert_array_equal(last.solutions[-1], learning._critic.greedy)
    assert last.experience and sizes(insertions) == [1, 11] and sizes(ranked) == [10]
    assert len(ranked[0]["add_info"]["status"]) == 10
    # It also learns from samples, but not from failed rows.
    assert learning._critic.replay.size == 3 * (12 + 10)
