"""Environments by their ids: found, or refused with what to do."""

import sys

import numpy as np
import pytest

from qdsweep.config.compose import read_domain
from qdsweep.domains import make_domain
from qdsweep.domains.environments import find_spec
from qdsweep.errors import BadInput

PLAIN = """
import gymnasium
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

class Long(CartPoleEnv):
    pass

gymnasium.register("QdsweepLong-v3", entry_point=Long, max_episode_steps=9)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Writes a module of config/plugins/."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "config/plugins").mkdir(parents=True)

    def write(name, text):
        sys.modules.pop(name, None)
        (tmp_path / f"config/plugins/{name}.py").write_text(text)

    return write


def test_a_module_of_the_user_registers_an_environment(own):
    own("my_envs", PLAIN)
    domain = read_domain("cartpole").model_copy(update={"env": "my_envs:QdsweepLong-v3"})
    made = make_domain(domain)
    result = made.evaluate(np.zeros((1, 8)), np.array([1], dtype=np.uint32))
    assert result.objective == 9


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (
            "no_such_module:QdsweepLong-v3",
            ["no_such_module", "there is no module", "config/plugins"],
        ),
        (
            "my_envs:QdsweepLong-v4",
            ["'my_envs:QdsweepLong-v4'", "no such environment", "Near: QdsweepLong-v3"],
        ),
        (
            "torn:QdsweepLong-v3",
            ["'torn:QdsweepLong-v3'", "cannot be imported: RuntimeError: no disk"],
        ),
        ("nobody.else:QdsweepLong-v3", ["there is no module nobody.else"]),
        ("pybullet_of_mine:QdsweepLong-v3", ["there is no module", "`make extras`", "Python 3.11"]),
    ],
)
def test_what_is_not_there_is_refused(own, env, words):
    own("my_envs", PLAIN)
    own("torn", "raise RuntimeError('no disk')")
    with pytest.raises(BadInput) as refused:
        find_spec(env)
    for word in words:
        assert word in str(refused.value)
    assert "domain.env = " in str(refused.value)


def test_without_pybullet_the_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pybullet", None)
    pytest.importorskip("pybullet_envs_gymnasium", reason="PyBullet: `make extras` on Python 3.11")
    with pytest.raises(BadInput, match=r"cannot be imported: .*`make extras` installs it"):
        find_spec("pybullet_envs_gymnasium:HopperBulletEnv-v0")
