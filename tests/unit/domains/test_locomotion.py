"""The MuJoCo tasks of DQD-RL: feet on the ground."""

import json
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest

from qdsweep.config.compose import compose, read_domain
from qdsweep.domains import make_domain
from qdsweep.errors import BadInput

pytest.importorskip("mujoco", reason="MuJoCo: `pip install 'qdsweep[mujoco]'`, up to Python 3.13")

DOMAINS = ("qd_ant", "qd_half_cheetah", "qd_hopper", "qd_walker")


def by_gymnasium(env_id, feet, solution, seed):
    """The same with gymnasium's and MuJoCo's own means."""
    env = gym.make(env_id)
    sizes = [env.observation_space.shape[0], 128, 128, env.action_space.shape[0]]
    layers, start = [], 0
    for before, after in pairwise(sizes):
        weights = solution[start : start + before * after].reshape(after, before)
        start += before * after
        layers.append((weights, solution[start : start + after]))
        start += after
    space = env.action_space
    low, high = space.low.astype(float), space.high.astype(float)
    x, _ = env.reset(seed=seed)
    total, steps, touched, done = 0.0, 0, np.zeros(len(feet)), False
    while not done:
        for index, (weights, bias) in enumerate(layers):
            x = weights @ x + bias
            x = np.tanh(x) if index < 2 else x
        action = ((low + high) / 2 + (high - low) / 2 * np.tanh(x)).astype(np.float32)
        x, reward, terminated, truncated, _ = env.step(action)
        total += float(reward)
        steps += 1
        done = terminated or truncated
        data, model = env.unwrapped.data, env.unwrapped.model
        pairs = [
            {model.geom(contact.geom1).name, model.geom(contact.geom2).name}
            for contact in data.contact
        ]
        touched += [{"floor", foot} in pairs for foot in feet]
    env.close()
    return [total, *(touched / steps).tolist()]


@pytest.mark.parametrize("name", DOMAINS)
def test_it_equals_gymnasium_bit_for_bit(name):
    config = read_domain(name)
    domain = make_domain(config)
    feet = [measure.geom for measure in config.measures]
    assert len(feet) == {"qd_ant": 4, "qd_hopper": 1}.get(name, 2)
    solutions = 0.1 * np.random.default_rng(3).normal(size=(3, domain.solution_dim))
    seeds = np.array([1, 2, 3], dtype=np.uint32)
    found = domain.evaluate(solutions, seeds)
    for row in range(3):
        expected = by_gymnasium(config.env, feet, solutions[row], int(seeds[row]))
        assert [found.objective[row], *found.measures[row]] == expected
    assert np.ptp(found.measures) > 0


@pytest.mark.parametrize("name", DOMAINS)
def test_its_experiment_composes(name):
    assert compose(name).domain.name == name


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"env": "CartPole-v1"}, "only known in MuJoCo"),
        (
            {"measures": [{"measure": "contact", "geom": "toe", "range": [0, 1]}]},
            "its geoms: floor",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(change, words):
    config = read_domain("qd_half_cheetah")
    data = {**config.model_dump(), **change}
    with pytest.raises(BadInput, match=words):
        make_domain(type(config).model_validate_json(json.dumps(data)))


def test_contact_needs_a_geom():
    with pytest.raises(BadInput, match="contact needs a geom"):
        compose("qd_hopper", {"domain.measures.0.geom": None})
