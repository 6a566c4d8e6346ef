"""The batches of PGA-MAP-Elites and of TD3 without QD, and their training data."""

import numpy as np
import pytest
from composing import with_algorithm
from learners import tell
from refusals import refused
from small_runs import fresh

from qdsweep.algorithms import make_algorithm
from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.stop import Stop
from qdsweep.records.archive import SEED

TASK = {
    "domain": {"preset": "pendulum", "max_episode_steps": 20},
    "archive": {"dims": [6, 6]},
    "batch_size": 10,
    "iterations": 4,
}


def batches(algorithm, domain, count):
    """Returns the batches of some iterations; results are passed before the next batch."""
    for iteration in range(count):
        candidates = algorithm.ask()
        yield candidates
        algorithm.meanwhile()
        tell(algorithm, domain, candidates, iteration)
        assert algorithm.ask() is None


def test_a_batch_of_pga_me_is_mutants_the_greedy_actor_and_elites_that_climbed():
    experiment = with_algorithm("pga_me", TASK, iso_sigma=0.0, line_sigma=0.0, first_sigma=0.3)
    domain = make_domain(experiment.domain)
    algorithm = make_algorithm(experiment, domain, None)
    first, second, third = (each.solutions for each in batches(algorithm, domain, 3))
    assert first.shape == (10, domain.solution_dim)
    np.testing.assert_array_equal(first[:5], np.zeros_like(first[:5]))  # iso_sigma around x0
    assert np.std(first[5:]) == pytest.approx(0.3, rel=0.1)
    known = {row.tobytes() for row in first}
    assert all(row.tobytes() in known for row in second[:5]), "mutants without noise are elites"
    assert second[5].tobytes() not in known
    for climbed in second[6:]:
        # Adam's steps are at most its rate long, and bias keeps no coordinate in its place.
        steps = np.abs(first.astype(np.float32) - climbed).max(axis=1)
        assert 0 < steps.min() < 10 * 0.001 * 1.5
    assert (third[5] != second[5]).any(), "the greedy actor has learnt in between"
    assert algorithm.learner.replay.size == 3 * 10 * 20
    rows = algorithm.archive.rows()
    assert {SEED, "solution", "objective"} <= set(rows)


@pytest.mark.parametrize(("share", "mutants"), [(0.0, 10), (1.0, 0), (0.1, 9)])
def test_the_share_of_gradients_may_be_anything(share, mutants):
    experiment = with_algorithm("pga_me", TASK, gradient_fraction=share, iso_sigma=0.0)
    domain = make_domain(experiment.domain)
    algorithm = make_algorithm(experiment, domain, None)
    greedy = []
    for candidates in batches(algorithm, domain, 2):
        assert len(candidates.solutions) == 10
        greedy = np.flatnonzero((candidates.solutions == algorithm.learner.greedy).all(axis=1))
    assert list(greedy) == ([] if share == 0 else [mutants])


def test_td3_plays_its_greedy_actor_and_noise_around_it_and_trains_by_what_was_played():
    experiment = with_algorithm("td3", TASK, sigma=0.1, training_ratio=0.25)
    domain = make_domain(experiment.domain)
    algorithm = make_algorithm(experiment, domain, None)
    trained = []
    algorithm.learner.train = trained.append
    for candidates in batches(algorithm, domain, 3):
        np.testing.assert_array_equal(candidates.solutions[0], algorithm.learner.greedy)
        noise = candidates.solutions[1:] - algorithm.learner.greedy
        assert np.std(noise) == pytest.approx(0.1, rel=0.1)
    assert trained == [0, 50, 50]  # a quarter of 10 episodes of 20 steps


def test_settings_change_during_the_run(tmp_path):
    schedule = "2 batch_size=7 gradient_fraction=0.2 training_steps=1"
    experiment = with_algorithm("pga_me", {**TASK, "schedule": schedule})
    state, engine = fresh(experiment, tmp_path)
    run_loop(experiment, state, engine, Stop(), lambda *_: None)
    assert state.evaluations == 2 * 10 + 2 * 7 == experiment.evaluations_after(4)
    assert state.algorithm.settings.gradient_fraction == 0.2


@pytest.mark.parametrize("kind", ["cvt", "sliding_boundaries", "proximity", "dns"])
def test_any_archive_will_do(kind, tmp_path):
    archive = {"type": kind} | ({"novelty_threshold": 0.1} if kind == "proximity" else {})
    made = with_algorithm("pga_me", {**TASK, "iterations": 2}).model_dump(mode="json")
    quick = {"training_steps": 2, "gradient_minibatch": 8}
    experiment = compose({**made, "algorithm": {"preset": "pga_me", "archive": archive}}, quick)
    state, engine = fresh(experiment, tmp_path)
    run_loop(experiment, state, engine, Stop(), lambda *_: None)
    assert state.algorithm.metrics()["num_elites"] > 0


@pytest.mark.parametrize("name", ["pga_me", "td3", "cma_mega_td3_es"])
@pytest.mark.parametrize(
    ("domain", "reason"),
    [
        ("lp_sphere", "lp_sphere"),
        ("lunar_lander", "lunar_lander"),
        ({"preset": "pendulum", "normalize_observations": True}, "normalize_observations"),
    ],
)
def test_a_domain_that_nothing_can_learn_from_is_refused(name, domain, reason):
    with refused(name, reason):
        compose({**TASK, "domain": domain, "algorithm": name, "num_emitters": 1})


def test_several_emitters_are_refused_with_the_remedy():
    with refused("num_emitters = 5", "num_emitters: 1", "batch_size", 50):
        compose({**TASK, "algorithm": "td3", "num_emitters": 5})


def test_actions_that_td3_cannot_choose_are_refused_when_the_environment_is_known():
    experiment = compose({**TASK, "domain": "cartpole", "algorithm": "pga_me"}, {"num_emitters": 1})
    with refused("pga_me", "TD3", "discrete"):
        make_algorithm(experiment, make_domain(experiment.domain), None)
    experiment = compose(TASK, {"algorithm": "td3", "num_emitters": 1})
    domain = make_domain(experiment.domain)
    domain.actor = domain.actor._replace(high=domain.actor.low)
    with refused("td3", "pendulum"):
        make_algorithm(experiment, domain, None)
