"""Observation normalisation has the statistics of the run, with any workers."""

import numpy as np
import pytest
from by_gymnasium import play
from small_runs import StopsAfter, digest_of
from support import POLE

from qdsweep.algorithms import make_algorithm
from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.engines import make_engine
from qdsweep.engines.base import Batch
from qdsweep.engines.failures import evaluate_safely
from qdsweep.engines.pool import Serial
from qdsweep.experiment import reload
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.state import State
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.records.paths import StateDir

EXPERIMENT = {**POLE, "domain": {**POLE["domain"], "episodes": 2}}


def begin():
    experiment = compose(EXPERIMENT)
    domain = make_domain(experiment.domain)
    algorithm = make_algorithm(experiment, domain, None)
    return experiment, domain, State(algorithm, context=np.zeros(domain.context_dim))


def run(experiment, state, engine, stop=None):
    run_loop(experiment, state, engine, stop or Stop(), lambda *_: None)
    engine.close()
    return digest_of(state)


@pytest.fixture(scope="module")
def straight():
    experiment, domain, state = begin()
    return run(experiment, state, Serial(domain)), state


def test_the_policy_sees_the_values_of_the_formula():
    """Plays with only gymnasium: (x - mean) / std of all earlier observations."""
    domain = make_domain(compose(EXPERIMENT, {"episodes": 1}).domain)
    rng = np.random.default_rng(2)
    policies, seeds = rng.normal(size=(6, domain.solution_dim)), np.arange(6, dtype=np.uint32)
    mean, std, context, seen = np.zeros(4), np.ones(4), np.zeros(9), []
    for _ in range(2):
        result = domain.evaluate(policies, seeds, context)
        for row, policy in enumerate(policies):
            weights = policy.reshape(2, 4)

            def act(x, weights=weights, mean=mean, std=std):
                scaled = np.clip((x.astype(np.float64) - mean) / std, -10, 10)
                return int(np.argmax(weights @ scaled))

            episode = play("CartPole-v1", act, row)
            seen += [*episode.observations[:-1]]
            assert result.objective[row] == episode.total
            np.testing.assert_array_equal(result.fields["observation_mean"][row], mean)
        context = context + result.tally.sum(axis=0)
        assert context[0] == len(seen)
        mean = context[1:5] / context[0]
        std = np.sqrt(context[5:] / context[0] - mean**2 + 1e-8)
        np.testing.assert_allclose(mean, np.mean(seen, axis=0), rtol=1e-12)
        np.testing.assert_allclose(std, np.std(seen, axis=0), rtol=1e-5)


def test_it_changes_results_and_not_those_without_it(straight):
    plain = compose(EXPERIMENT, {"normalize_observations": False})
    domain = make_domain(plain.domain)
    assert not hasattr(domain, "context_dim")
    state = State(make_algorithm(plain, domain, None))
    assert run(plain, state, Serial(domain)) != straight[0]
    rows = straight[1].algorithm.archive.rows()
    assert (
        rows["observation_mean"].shape == rows["observation_std"].shape == (len(rows["index"]), 4)
    )
    assert len(np.unique(rows["observation_std"], axis=0)) > 1, "elites of several iterations"


@pytest.mark.parametrize(("parts", "workers"), [(0, 1), (3, 2), (25, 3), (47, 1)])
def test_stopped_in_a_batch_and_resumed_by_any_workers_it_is_the_same_run(
    straight, tmp_path, parts, workers
):
    experiment, domain, state = begin()
    stop = Stop()
    with pytest.raises(Interrupted):
        run(experiment, state, StopsAfter(domain, stop, parts), stop)
    reload.save(state, StateDir(tmp_path), "f", {})
    again = reload.newest(StateDir(tmp_path), "f", {}).state
    cluster = Cluster(engine="processes", workers_per_node=workers)
    assert (
        run(experiment, again, make_engine(cluster, experiment, domain, None, None, {}))
        == (straight[0])
    )
    np.testing.assert_array_equal(again.context, straight[1].context)


def test_a_failed_evaluation_adds_nothing():
    _, domain, state = begin()
    batch = Batch(
        np.full((2, domain.solution_dim), np.nan), np.zeros(2, np.uint32), False, state.context
    )
    domain._policy = None  # every evaluation fails
    outcome = evaluate_safely(domain, batch, 0, 0.0)
    assert len(outcome.failures) == 2
    np.testing.assert_array_equal(outcome.evaluation.tally, np.zeros((2, 9)))
