"""The MuJoCo tasks of DQD-RL: feet on the ground."""

import json

import gymnasium as gym
import numpy as np
import pytest
from by_gymnasium import play
from refusals import refused

from qdsweep.config.compose import compose, read_domain
from qdsweep.domains import make_domain
from qdsweep.domains.policies import split_layers

pytest.importorskip("mujoco", reason="MuJoCo: `pip install 'qdsweep[mujoco]'`, up to Python 3.13")

DOMAINS = ("qd_ant", "qd_half_cheetah", "qd_hopper", "qd_walker")


def by_gymnasium(config, solution, seed):
    """Returns the same with gymnasium's and MuJoCo's own functions."""
    env = gym.make(config.env)
    layers = [(128, env.observation_space.shape[0]), (128, 128), (env.action_space.shape[0], 128)]
    layers = split_layers(solution, layers, bias=True)
    low, high = env.action_space.low.astype(float), env.action_space.high.astype(float)

    def act(x):
        for weights, bias in layers:
            x = np.tanh(weights @ x + bias)
        return ((low + high) / 2 + (high - low) / 2 * x).astype(np.float32)

    def touch(env):
        data, model = env.unwrapped.data, env.unwrapped.model
        pairs = [{model.geom(c.geom1).name, model.geom(c.geom2).name} for c in data.contact]
        return [{"floor", measure.geom} in pairs for measure in config.measures]

    episode = play(env, act, seed, touch)
    env.close()
    return [episode.total, *np.mean(episode.seen, axis=0)]


@pytest.mark.parametrize("name", DOMAINS)
def test_it_equals_gymnasium_bit_for_bit(name):
    config = read_domain(name)
    domain = make_domain(config)
    assert len(config.measures) == {"qd_ant": 4, "qd_hopper": 1}.get(name, 2)
    solutions = 0.1 * np.random.default_rng(3).normal(size=(3, domain.solution_dim))
    seeds = np.array([1, 2, 3], dtype=np.uint32)
    result = domain.evaluate(solutions, seeds)
    for row in range(3):
        expected = by_gymnasium(config, solutions[row], int(seeds[row]))
        assert [result.objective[row], *result.measures[row]] == expected
    assert np.ptp(result.measures) > 0
    assert compose(name).domain.name == name


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"env": "CartPole-v1"}, ("contact", "CartPole-v1")),
        ({"measures": [{"measure": "contact", "geom": "toe", "range": [0, 1]}]}, ("toe", "floor")),
    ],
)
def test_what_cannot_be_measured_is_refused(change, names):
    config = read_domain("qd_half_cheetah")
    data = {**config.model_dump(), **change}
    with refused("domain.measures", *names):
        make_domain(type(config).model_validate_json(json.dumps(data)))


def test_contact_needs_a_geom():
    with refused("contact", "geom"):
        compose("qd_hopper", {"domain.measures.0.geom": None})
