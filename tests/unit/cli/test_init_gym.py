"""`qdsweep init --gym`: a study of a task by its name."""

import shlex

import numpy as np
import pytest
import yaml
from in_process import qdsweep
from pages import blocks, files
from refusals import names_all
from results import summary
from support import REPO

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


def test_the_task_of_the_page(tmp_path):
    """docs/guide/what_to_sweep.md: its domain, with wrappers, and its command."""
    page = (REPO / "docs/guide/what_to_sweep.md").read_text()
    for name, content in files(page):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(content)
    for line in blocks(page, "console"):
        qdsweep(*shlex.split(line.removeprefix("$ qdsweep ")), cwd=tmp_path)
    assert summary(tmp_path / "results/lake")["iterations"] == 5
