"""Policies: actions in their bounds, and initial weights."""

import gymnasium as gym
import numpy as np

from qdsweep.config.compose import read_domain
from qdsweep.config.domain import MLP
from qdsweep.domains import make_domain
from qdsweep.domains.policies import make_actions, split_layers


def test_actions_stay_in_their_bounds():
    box = gym.spaces.Box(np.array([-1, 2, -np.inf]), np.array([1, 5, 0]), dtype=np.float32)
    actions = make_actions(box, "test", clip=True)
    np.testing.assert_array_equal(actions.choose(np.array([1e9, -1e9, 7.0])), [1, 2, 0])
    np.testing.assert_array_equal(actions.choose(np.zeros(3)), [0, 3.5, 0])
    assert actions.choose(np.zeros(3)).dtype == np.float32
    discrete = make_actions(gym.spaces.Discrete(3, start=-1), "test")
    assert discrete.choose(np.array([0.0, 0.0, 1.0])) == 1
    np.testing.assert_array_equal(discrete.vectors([-1, 1]), [[1, 0, 0], [0, 0, 1]])


def test_xavier_draws_a_network_for_each_seed():
    config = read_domain("cartpole").model_copy(
        update={"policy": MLP(type="mlp", hidden=[128]), "x0": "xavier"}
    )
    domain = make_domain(config, 1)
    x0 = domain.x0
    (first, b1), (second, b2) = split_layers(x0, [(128, 4), (2, 128)], bias=True)
    assert not b1.any() and not b2.any()
    for weights in (first, second):
        bound = np.sqrt(6 / sum(weights.shape))
        assert 0.95 * bound < np.abs(weights).max() <= bound
        assert abs(weights.mean()) < 0.1 * bound
    assert np.array_equal(x0, make_domain(config, 1).x0)
    assert not np.array_equal(x0, make_domain(config, 2).x0)
