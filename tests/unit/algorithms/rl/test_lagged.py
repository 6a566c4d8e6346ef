"""Learners that lag: killed between any two calls they go on with the same bits."""

import pickle

import numpy as np
import pytest
from composing import with_algorithm
from small_runs import digest_of, fresh

pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
from qdsweep.algorithms import make_algorithm
from qdsweep.config.cluster import Cluster
from qdsweep.domains import make_domain
from qdsweep.engines import make_engine
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.stop import Stop

PRESETS = {
    "dqn": {"train_freq": 30, "gradient_steps": 2, "minibatch": 8, "learning_starts": 40},
    "apex_dqn": {"train_freq": 30, "gradient_steps": 2, "minibatch": 8, "learning_starts": 40},
    "impala": {"n_steps": 5, "minibatch": 4, "lag": 2},
}
# Its archive is pickled whole here.
SMALL = {"archive": {"dims": [3, 3]}, "iterations": 6}


def bits(algorithm):
    rows = algorithm.archive.rows()
    return [algorithm.learner.policy.tobytes(), *(rows[key].tobytes() for key in sorted(rows))]


def played(algorithm, domain, *, killed: bool):
    """Some iterations; each phase goes on in a process that knows the pickle alone, or not."""

    def again(one):
        return pickle.loads(pickle.dumps(one)) if killed else one

    asked, seed = [], 0
    for _ in range(6):
        trained = False
        while True:
            algorithm = again(algorithm)
            candidates = algorithm.ask()
            if candidates is None:
                break
            asked.append(candidates)
            algorithm = again(algorithm)
            if not trained:
                algorithm.meanwhile()
                trained = True
            algorithm = again(algorithm)
            seeds = seed + np.arange(len(candidates.solutions), dtype=np.uint32)
            seed += len(seeds)
            found = domain.evaluate(
                candidates.solutions, seeds, experience=True, exploration=candidates.exploration
            )
            algorithm.tell(candidates._replace(seeds=seeds), found)
    return algorithm, asked


def small(preset):
    changes = {"evaluate_every": 3, "evaluation_episodes": 2, **PRESETS[preset]}
    return with_algorithm(preset, SMALL, **changes, batch_size=3)


@pytest.mark.parametrize("preset", PRESETS)
def test_killed_in_each_phase_it_goes_on_with_the_same_bits(preset):
    experiment = small(preset)
    domain = make_domain(experiment.domain)
    straight, asked = played(make_algorithm(experiment, domain, None), domain, killed=False)
    others = np.random.get_state()[1].copy()
    killed, again = played(make_algorithm(experiment, domain, None), domain, killed=True)
    np.testing.assert_array_equal(np.random.get_state()[1], others)
    assert bits(straight) == bits(killed)
    assert [one.solutions.tobytes() for one in asked] == [one.solutions.tobytes() for one in again]
    distinct = {one.solutions[0].tobytes() for one in asked}
    assert len(distinct) > 2, "it has learnt"
    greedy = [len(one.solutions) - 3 for one in asked]
    assert sum(greedy) == 4 and greedy[0] == 2
    for one, count in zip(asked, greedy, strict=True):
        assert not one.exploration.scale[3:].any() and len(one.exploration.scale) == 3 + count


@pytest.mark.parametrize("preset", PRESETS)
def test_any_number_of_workers_gives_one_digest(preset, tmp_path):
    experiment, found = small(preset), set()
    for workers in (1, 2, 3):
        state, engine = fresh(experiment, tmp_path)
        if workers > 1:
            cluster = Cluster(engine="processes", workers_per_node=workers)
            engine = make_engine(cluster, experiment, engine.domain, None, None, {})
        try:
            engine.wait()
            run_loop(experiment, state, engine, Stop(), lambda *_: None)
        finally:
            engine.close()
        found.add((digest_of(state), state.algorithm.learner.policy.tobytes(), state.steps))
    assert len(found) == 1
