"""Policies: parameters, layers, actions in their bounds."""

import gymnasium as gym
import numpy as np

from qdsweep.config.compose import read_domain
from qdsweep.config.domain import MLP, Linear
from qdsweep.domains import make_domain
from qdsweep.domains.policies import Policy, make_actions, split_layers


def test_policies_have_the_right_number_of_parameters_and_layers():
    assert Policy(Linear(type="linear"), 8, 4).solution_dim == 32
    mlp = Policy(MLP(type="mlp", hidden=[3, 2]), 4, 1)
    assert mlp.solution_dim == (4 * 3 + 3) + (3 * 2 + 2) + (2 * 1 + 1)
    x = np.arange(mlp.solution_dim) / 10
    observation = np.array([0.1, -0.2, 0.3, 0.4])
    hidden = np.tanh(x[:12].reshape(3, 4) @ observation + x[12:15])
    hidden = np.tanh(x[15:21].reshape(2, 3) @ hidden + x[21:23])
    np.testing.assert_array_equal(
        mlp.network(x)(observation), x[23:25].reshape(1, 2) @ hidden + x[25:]
    )


def test_actions_stay_in_their_bounds():
    box = gym.spaces.Box(np.array([-1, 2, -np.inf]), np.array([1, 5, 0]), dtype=np.float32)
    actions = make_actions(box, "test")
    np.testing.assert_array_equal(actions.choose(np.array([1e9, -1e9, 7.0])), [1, 2, 7])
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
