"""V-trace beside the equation as it is written, and what it is on-policy."""

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
from qdsweep.algorithms.rl.impala import vtrace

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
def test_it_is_the_equation(rho_bar, c_bar):
    steps = unrolls(3)
    rewards, values, following, last, ratios = steps
    targets, advantages = vtrace(*steps, gamma=GAMMA, rho_bar=rho_bar, c_bar=c_bar)
    slow = equation_1(*steps, rho_bar, c_bar)
    np.testing.assert_allclose(targets, slow, rtol=1e-12)
    after = np.where(last, following, np.append(slow[1:], 0.0))
    wanted = np.minimum(ratios, rho_bar) * (rewards + GAMMA * after - values)
    np.testing.assert_allclose(advantages, wanted, rtol=1e-12)
