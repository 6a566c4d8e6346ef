"""Synchronous IMPALA: the playing policy, its lag, unrolls and V-trace."""

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
import torch
from learners import episode, made

from qdsweep.domains.base import CUT, TERMINATED, Actor
from qdsweep.features.rl.learners.impala import shuffled_unrolls, vtrace


@pytest.mark.parametrize("lag", [1, 3])
def test_actors_play_the_policy_of_lag_batches_ago(lag):
    learner = made("impala", lag=lag)
    newest, acting, corrected = [], [], []
    evaluate = learner._evaluate

    def noted(*given):
        if not torch.is_grad_enabled():  # with the weights of the policy that played
            corrected.append(learner._weights(learner.model.policy.mlp_extractor.policy_net))
        return evaluate(*given)

    learner._evaluate = noted
    for batch in range(6):
        acting.append(learner.policy)
        newest.append(learner._weights([*learner.model.policy.mlp_extractor.policy_net,
                                        learner.model.policy.action_net]))  # fmt: skip
        learner.learn([episode(30, batch)] if batch else [])
    assert len({policy.tobytes() for policy in newest}) == 5
    for batch in range(6):
        np.testing.assert_array_equal(acting[batch], newest[max(batch - lag + 1, 0)])
        if batch:  # it learns from the previous batch
            hidden = len(corrected[0])
            np.testing.assert_array_equal(corrected[batch - 1], acting[batch - 1][:hidden])


def test_ratios_of_the_policy_that_has_played_are_1(monkeypatch):
    import qdsweep.features.rl.learners.impala as module

    seen = []

    def noted(*given, **settings):
        seen.append(given)
        return vtrace(*given, **settings)

    monkeypatch.setattr(module, "vtrace", noted)
    learner = made("impala", n_steps=4, minibatch=100)
    learner.learn([episode(10, 1, TERMINATED), episode(6, 2, CUT)])
    learner.learn([episode(10, 3)])
    (rewards, values, following, last, ratios), (*_, second) = seen
    np.testing.assert_allclose(ratios, 1, rtol=1e-6)
    # The first policy also plays the second batch, because that was asked for earlier.
    assert (np.abs(second - 1) > 1e-5).any()
    assert len(rewards) == 16 and last.sum() == 3 + 2
    inside = ~last
    np.testing.assert_allclose(following[inside], values[np.flatnonzero(inside) + 1])
    assert (following == 0).sum() == 1, "after a time limit there is a value"


def test_unrolls_end_with_the_episode_and_each_is_used_once():
    last = np.isin(np.arange(10), [1, 3, 4, 5, 7, 9])
    parts = list(shuffled_unrolls(last, 4))
    assert sorted(np.concatenate(parts)) == list(range(10))
    starts = {0: [0, 1], 2: [2, 3], 4: [4], 5: [5], 6: [6, 7], 8: [8, 9]}
    for rows in parts:
        while len(rows):
            own = starts[rows[0]]
            assert rows[: len(own)].tolist() == own
            rows = rows[len(own) :]
    assert [last[rows].sum() for rows in parts] == [4, 2]


def test_vectors_too():
    bounds = -np.ones(2), np.ones(2)
    learner = made("impala", actor=Actor(((8, 4), (2, 8)), True, "tanh", *bounds))
    before = learner.exploration(3)
    assert before.kind == "gaussian" and before.scale.shape == (3, 2)
    for batch in range(3):
        learner.learn([episode(30, batch)])
    assert (learner.exploration(3).scale != before.scale).all()


GAMMA = 0.9


def unrolls(seed):
    """Some unrolls of 1 to 6 steps: rewards, values, following, last, and log ratios."""
    rng, lengths = np.random.default_rng(seed), (6, 1, 4, 3)
    last = np.concatenate([[0] * (n - 1) + [1] for n in lengths]).astype(bool)
    rewards, values, ratios = rng.normal(size=(3, len(last)))
    following = np.append(values[1:], 0.0)
    following[last] = rng.normal(size=len(lengths))
    following[-1] = 0.0  # the episode has ended there
    return rewards, values, following, last, np.exp(ratios)


def equation_1(rewards, values, following, last, ratios, rho_bar, c_bar):
    """v_s = V(x_s) + sum_t gamma^(t-s) (prod_{i<t} c_i) rho_t (r_t + gamma V(x_t+1) - V(x_t))."""
    targets = []
    for s in range(len(rewards)):
        v, t = values[s], s
        while True:
            product = np.prod([min(c_bar, ratio) for ratio in ratios[s:t]])
            difference = rewards[t] + GAMMA * following[t] - values[t]
            v += GAMMA ** (t - s) * product * min(rho_bar, ratios[t]) * difference
            if last[t]:
                break
            t += 1
        targets.append(v)
    return np.array(targets)


@pytest.mark.parametrize(("rho_bar", "c_bar"), [(1.0, 1.0), (2.0, 0.5), (100.0, 100.0)])
def test_v_trace_is_equation_1_of_the_paper(rho_bar, c_bar):
    steps = unrolls(3)
    rewards, values, following, last, ratios = steps
    targets, advantages = vtrace(*steps, gamma=GAMMA, rho_bar=rho_bar, c_bar=c_bar)
    slow = equation_1(*steps, rho_bar, c_bar)
    np.testing.assert_allclose(targets, slow, rtol=1e-12)
    after = np.where(last, following, np.append(slow[1:], 0.0))
    wanted = np.minimum(ratios, rho_bar) * (rewards + GAMMA * after - values)
    np.testing.assert_allclose(advantages, wanted, rtol=1e-12)
