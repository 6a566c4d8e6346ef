"""`qdsweep init --gym` makes a study of a task from its name."""

import shutil

import numpy as np
import pytest
import yaml
from in_process import qdsweep
from refusals import names_all

from qdsweep.config.compose import compose
from qdsweep.domains import make_domain

STILL = """
import gymnasium


class Still(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (1,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        return self.observation_space.low, {}

    def step(self, action):
        return self.observation_space.low, 0.0, True, False, {}


gymnasium.register("QdsweepStill-v0", Still)
"""


CERTAIN = """
import gymnasium
import numpy as np


class Certain(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-2, 2, (2,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        self.at = np.ones(2, dtype=np.float32)
        return self.at, {}

    def step(self, action):
        self.at = self.at * 0.9 + 0.1 * float(action[0]) * np.array([1, -1], dtype=np.float32)
        return self.at, float(self.at[0]), abs(self.at[0]) < 0.5, False, {}


gymnasium.register("QdsweepCertain-v0", Certain, max_episode_steps=9)
"""


def test_a_stochastic_task_has_the_keys_against_luck(tmp_path):
    folder = tmp_path / "config/plugins"
    folder.mkdir(parents=True)
    (folder / "certain.py").write_text(CERTAIN)
    for env, is_stochastic in (("CartPole-v1", True), ("certain:QdsweepCertain-v0", False)):
        printed = qdsweep("init", "study", "--gym", env, cwd=tmp_path)
        config = yaml.safe_load((tmp_path / "study/config/config.yaml").read_text())
        (preset,) = (tmp_path / "study/config/domains").iterdir()
        named = "reevaluate" in config, "episodes" in yaml.safe_load(preset.read_text())
        assert (*named, "docs/tutorials/noise.md" in printed) == (is_stochastic,) * 3
        shutil.rmtree(tmp_path / "study")


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1", "Blackjack-v1"])
def test_random_policies_differ_in_both_measures(env, tmp_path, monkeypatch):
    names_all(qdsweep("init", "study", "--gym", env, cwd=tmp_path), env, "random policies")
    monkeypatch.chdir(tmp_path / "study")
    config = yaml.safe_load((tmp_path / "study/config/config.yaml").read_text())
    experiment = compose(
        config["experiment"] | {"iterations": 1}, {"algorithm": "cma_me"}, source=""
    )
    assert experiment.domain.env == env
    domain = make_domain(experiment.domain)
    solutions = np.random.default_rng(1).normal(size=(16, domain.solution_dim))
    measures = domain.evaluate(solutions, np.arange(16, dtype=np.uint32)).measures
    for column, (low, high) in zip(measures.T, domain.measures.values(), strict=True):
        assert len(set(column)) > 1
        assert np.mean((low <= column) & (column <= high)) > 0.5


def test_what_cannot_be_proposed_leaves_no_folder(tmp_path):
    folder = tmp_path / "config/plugins"
    folder.mkdir(parents=True)
    (folder / "still.py").write_text(STILL)
    for env in ("CartPoll-v1", "nowhere:Task-v0", "still:QdsweepStill-v0"):
        names_all(qdsweep("init", "study", "--gym", env, cwd=tmp_path, code=2), env)
        assert not (tmp_path / "study").exists()
