"""Environments are found by their ids, or refused with a remedy."""

import sys

import numpy as np
import pytest
from domain_makers import LENGTH, make, task
from refusals import refused

from qdsweep.config.compose import read_domain
from qdsweep.domains import make_domain
from qdsweep.domains.environments import find_spec

PLAIN = """
import gymnasium
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

class Long(CartPoleEnv):
    pass

gymnasium.register("QdsweepLong-v3", entry_point=Long, max_episode_steps=9)
"""


def test_a_module_of_the_user_registers_an_environment(plugins):
    plugins("my_envs", PLAIN)
    domain = read_domain("cartpole").model_copy(update={"env": "my_envs:QdsweepLong-v3"})
    result = make_domain(domain).evaluate(np.zeros((1, 8)), np.array([1], dtype=np.uint32))
    assert result.objective == 9


@pytest.mark.parametrize(
    ("env", "names"),
    [
        ("CartPole-v7", ("'CartPole-v7'", "CartPole-v1")),
        ("CartPoll-v1", ("CartPole-v1",)),
        ("CartPole", ("CartPole-v1",)),
        ("not an id!", ("not an id!",)),
        ("no_such_module:QdsweepLong-v3", ("no_such_module", "config/plugins")),
        ("my_envs:QdsweepLong-v4", ("'my_envs:QdsweepLong-v4'", "QdsweepLong-v3")),
        ("torn:QdsweepLong-v3", ("'torn:QdsweepLong-v3'", "RuntimeError: no disk")),
        ("nobody.else:QdsweepLong-v3", ("nobody.else",)),
        ("pybullet_of_mine:QdsweepLong-v3", ("`make extras`", "Python 3.11")),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_not_there_is_refused(plugins, env, names):
    plugins("my_envs", PLAIN)
    plugins("torn", "raise RuntimeError('no disk')")
    with refused("domain.env = ", *names):
        make(**task(env, LENGTH))


def test_without_pybullet_the_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pybullet", None)
    pytest.importorskip("pybullet_envs_gymnasium", reason="PyBullet: `make extras` on Python 3.11")
    with refused("pybullet", "`make extras`"):
        find_spec("pybullet_envs_gymnasium:HopperBulletEnv-v0")
