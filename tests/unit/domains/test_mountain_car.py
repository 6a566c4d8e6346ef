"""The example of a gymnasium task of one's own: what it measures, and its elites, filmed."""

from itertools import pairwise

import gymnasium as gym
import numpy as np
from in_process import compute_run

from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.domains.plugin import check_rows
from qdsweep.elites.rollout import rollout
from qdsweep.experiment.load import load


def test_it_measures_what_it_says():
    domain = make_domain(compose("mountain_car").domain)
    check_rows(domain, batch=3)
    solution = np.random.default_rng(0).normal(size=domain.solution_dim)
    result = domain.evaluate(solution[None], np.array([7], np.uint32))
    env = gym.make("MountainCarContinuous-v0")
    (x, velocity), _ = env.reset(seed=7)
    weights, bias = solution[:16].reshape(8, 2), solution[16:24]
    out, last = solution[24:32], solution[32]
    total, signs, forces, ended = 0.0, [], [], False
    while not ended:
        hidden = np.tanh(weights @ [x, velocity / np.float64(0.05)] + bias)
        force = np.tanh([out @ hidden + last])
        (x, velocity), reward, terminated, truncated, _ = env.step(force)
        total += reward
        signs.append(np.sign(velocity))
        forces.append(abs(force[0]))
        ended = terminated or truncated
    turns = sum(a != b for a, b in pairwise(signs))
    np.testing.assert_allclose(result.objective, [total])
    np.testing.assert_allclose(result.measures, [[turns, np.mean(forces)]])


def test_its_elites_replay_and_are_filmed(tmp_path):
    small = {"batch_size": 4, "num_emitters": 1, "iterations": 2, "initial_solutions": 4}
    run = load(
        compute_run(compose("mountain_car", small).model_dump(mode="json"), tmp_path / "out")
    )
    best = run.best()
    assert run.replay(best).objective[0] == best.objective
    (entry,) = rollout(run.path, tmp_path / "films", ["best"], 0.5)
    assert entry["equal"]
    assert entry["steps"] <= 999
