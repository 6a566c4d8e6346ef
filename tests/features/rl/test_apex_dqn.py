"""Synchronous Ape-X DQN: an epsilon for each row, priorities, and double Q-learning."""

import pickle

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
import torch
from learners import episode, made
from torch.nn import functional

from qdsweep.features.rl.learners import internals
from qdsweep.features.rl.learners.dqn import Priorities

GAMMA = 0.9


def apex(**settings):
    return made("apex_dqn", gamma=GAMMA, **settings)


def values_and_targets(learner, count: int):
    """Those of the first transitions of its replay buffer."""
    drawn = internals.transitions(learner.replay.buffer, np.arange(count))
    return learner._values_and_targets(drawn, slice(count))


def test_row_i_explores_with_eps_to_the_power_1_plus_alpha_i_of_n_minus_1():
    exploration = apex().exploration(8)
    expected = [0.4 ** (1 + 7 * i / 7) for i in range(8)]
    assert exploration.kind == "epsilon"
    np.testing.assert_allclose(exploration.scale[:, 0], expected)
    np.testing.assert_allclose(apex(eps=0.3).exploration(1).scale, [[0.3]])


def test_what_is_new_has_the_priority_of_its_error_and_so_has_what_was_trained_on():
    learner = apex(n_steps=1, learning_starts=1000)
    record = episode(12)
    learner.learn([record])
    network, target = learner.model.q_net, learner.model.q_net_target
    with torch.no_grad():
        values = network(torch.tensor(record.observations)).numpy()
        later = target(torch.tensor(record.observations[1:])).numpy()
    best = values[1:].argmax(axis=1)
    rows = np.arange(12)
    not_over = np.append(np.ones(11), 0.0)
    targets = record.rewards + GAMMA * not_over * later[rows, best]
    errors = np.abs(targets - values[rows, record.actions.argmax(axis=1)])
    np.testing.assert_allclose(learner.priorities[rows], (errors + 1e-6) ** 0.6, rtol=1e-5)
    before = learner.priorities[rows].copy()
    with learner._generators.used():
        learner._train(20)
    assert (learner.priorities[rows] != before).any()


def test_the_network_chooses_what_the_target_network_values():
    learner = apex(n_steps=1, learning_starts=1000)
    learner.learn([episode(5)])
    with torch.no_grad():
        for layer, sign in ((learner.model.q_net, 1.0), (learner.model.q_net_target, -1.0)):
            for parameter in layer.parameters():
                parameter.zero_()
            layer.q_net[-1].bias.copy_(torch.tensor([0.0, 10.0 * sign]))
    _, targets = values_and_targets(learner, 5)
    rewards = episode(5).rewards
    # The network prefers the second action, to which the target network gives a low value.
    np.testing.assert_allclose(targets[:4].numpy(), rewards[:4] - 10 * GAMMA, rtol=1e-5)
    assert targets[4] == rewards[4]


def test_what_is_drawn_more_often_weighs_less(monkeypatch):
    learner = apex(n_steps=1, learning_starts=1000, importance_exponent=1.0)
    learner.learn([episode(2)])
    learner.priorities[np.arange(2)] = np.array([1.0, 4.0])
    monkeypatch.setattr(learner.priorities, "draw", lambda uniform: np.array([0, 1]))
    values, targets = values_and_targets(learner, 2)
    first, second = functional.smooth_l1_loss(values, targets, reduction="none")
    bias = learner.model.q_net.q_net[-1].bias
    expected = torch.autograd.grad((first + second / 4) / 2, bias)[0].numpy()
    gradients = []
    monkeypatch.setattr(
        learner.model.policy.optimizer, "step", lambda: gradients.append(bias.grad.numpy().copy())
    )
    with learner._generators.used():
        learner._train(1)
    np.testing.assert_allclose(gradients[0], expected, rtol=1e-5)


@pytest.mark.parametrize("capacity", [1, 2, 5, 64, 100])
def test_slots_are_drawn_in_proportion_to_their_priorities(capacity):
    rng = np.random.default_rng(1)
    priorities, wanted = Priorities(capacity), rng.random(capacity)
    wanted[::3] = 0.0
    wanted[-1] = 2.0
    priorities[np.arange(capacity)] = wanted
    np.testing.assert_array_equal(priorities[np.arange(capacity)], wanted)
    count = 20_000
    drawn = np.bincount(priorities.draw(rng.random(count)), minlength=capacity)
    # One draw from each of `count` equal parts: a slot has its share, up to one draw at each end.
    assert np.abs(drawn - count * wanted / wanted.sum()).max() <= 2
    assert (drawn[wanted == 0] == 0).all()


def test_the_extreme_draws_hit_slots_that_have_a_priority():
    priorities = Priorities(7)
    priorities[np.array([2, 5])] = np.array([0.1, 0.3])
    most = np.nextafter(1.0, 0.0)
    assert list(priorities.draw(np.array([0.0]))) == [2]
    assert list(priorities.draw(np.array([most, most]))) == [5, 5]


def test_sums_depend_only_on_the_priorities_not_on_their_history():
    rng = np.random.default_rng(2)
    changed, fresh = Priorities(50), Priorities(50)
    for _ in range(100):
        slots = rng.integers(0, 50, 20)  # some of them twice
        changed[slots] = rng.random(20) * 10.0 ** rng.integers(-8, 8)
    every = np.arange(50)
    fresh[every] = changed[every]
    again = pickle.loads(pickle.dumps(changed))
    changed[every[:0]] = np.empty(0)
    for other in (fresh, again):
        np.testing.assert_array_equal(changed._sums, other._sums)
