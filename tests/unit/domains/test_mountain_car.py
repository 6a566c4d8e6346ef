"""The example of one's own gymnasium task: its measures and its filmed elites."""

from itertools import pairwise

import numpy as np
from by_gymnasium import play
from in_process import compute_run

from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.domains.plugin import check_rows
from qdsweep.features.rollouts.rollout import rollout
from qdsweep.runs.load import load


def test_it_measures_its_stated_quantities():
    domain = make_domain(compose("mountain_car").domain)
    check_rows(domain, batch=3)
    solution = np.random.default_rng(0).normal(size=domain.solution_dim)
    result = domain.evaluate(solution[None], np.array([7], np.uint32))
    weights, bias = solution[:16].reshape(8, 2), solution[16:24]
    out, last = solution[24:32], solution[32]

    def act(observation):
        x, velocity = observation
        hidden = np.tanh(weights @ [x, velocity / np.float64(0.05)] + bias)
        return np.tanh([out @ hidden + last])

    episode = play("MountainCarContinuous-v0", act, 7)
    turns = sum(a != b for a, b in pairwise(np.sign(episode.observations[1:, 1])))
    np.testing.assert_allclose(result.objective, [episode.total])
    np.testing.assert_allclose(result.measures, [[turns, np.abs(episode.actions).mean()]])


def test_its_elites_replay_and_are_filmed(tmp_path):
    small = {"batch_size": 4, "num_emitters": 1, "iterations": 2, "initial_solutions": 4}
    out = compute_run(compose("mountain_car", small).model_dump(mode="json"), tmp_path / "out")
    run = load(out)
    best = run.best()
    assert run.replay(best).objective[0] == best.objective
    (entry,) = rollout(run.path, tmp_path / "films", ["best"], 0.5)
    assert entry["equal"]
    assert entry["steps"] <= 999
