"""What reinforcement learning refuses, before anything runs and without its libraries."""

import sys

import pytest
from in_process import qdsweep

from qdsweep.config import requirements
from qdsweep.config.compose import compose
from qdsweep.config.plugin import find_source
from qdsweep.errors import BadInput
from qdsweep.planning.checks import check_packages
from qdsweep.planning.outlook import outlook
from qdsweep.records.paths import Results
from qdsweep.sweep.runs import Sweep

NAMES = ("ppo", "a2c", "dqn", "impala", "apex_dqn")


@pytest.fixture
def nothing_installed(monkeypatch):
    def found(target):
        if target in ("torch", "stable_baselines3"):
            raise BadInput(f"there is no module {target}")
        return find_source(target)

    monkeypatch.setattr(requirements, "find_source", found)


@pytest.mark.parametrize("name", NAMES)
def test_without_the_extra_every_name_is_refused_with_the_command(
    name, tmp_path, nothing_installed
):
    words = rf"algorithm {name} needs torch.*`make rl`.*pip install 'qdsweep\[rl\]'"
    with pytest.raises(BadInput, match=words):  # a dry run's
        check_packages({"run": compose("rl_cartpole", {"algorithm": name})}, Results(tmp_path))


def test_without_the_extra_a_check_is_refused_too(tmp_path, nothing_installed):
    said = qdsweep("check", "--algorithm", "ppo", cwd=tmp_path, code=2)
    assert "algorithm ppo needs torch" in said and "`make rl`" in said
    assert "Traceback" not in said


def test_without_the_extra_a_run_is_refused_before_it_has_a_folder(tmp_path, nothing_installed):
    said = qdsweep("run", "rl_cartpole", "--out", "out", cwd=tmp_path, code=2)
    assert said.count("algorithm ppo needs torch") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", NAMES)
def test_composing_imports_no_library(name, monkeypatch):
    for library in ("torch", "stable_baselines3"):
        monkeypatch.setitem(sys.modules, library, None)  # an import of it fails
    assert compose("rl_cartpole", {"algorithm": name}).algorithm.packages


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"evaluation_seed": "fixed"}, r"evaluation_seed = fixed: algorithm ppo.*: solution"),
        ({"evaluation_seed": 3}, "evaluation_seed = 3"),
        ({"num_emitters": 2}, "num_emitters = 2: algorithm ppo is one emitter"),
        ({"minibatch": 1}, "minibatch"),
        ({"gae_lambda": 1.5}, "gae_lambda"),
        ({"domain": "lp_sphere"}, "algorithm ppo learns from the steps.*function"),
        ({"normalize_observations": True}, "normalize_observations"),
    ],
)
def test_what_cannot_work_is_refused_with_the_reason(changes, words):
    start = {"domain": "cartpole", "archive": {"dims": [5, 5]}, "iterations": 2, "num_emitters": 1}
    with pytest.raises(BadInput, match=f"(?s){words}"):
        compose({**start, "algorithm": "ppo"}, changes)


@pytest.mark.parametrize(
    ("changes", "alone"),
    [
        ({"iterations": 10}, True),
        ({"iterations": 11}, False),
        ({"iterations": 10, "evaluate_every": 9}, False),
        ({"steps": 20480}, True),  # an iteration has 2,048 at least
        ({"steps": 20481}, False),
        ({"evaluations": 90}, True),  # 10 + 8, then 8 an iteration at least
        ({"evaluations": 91}, False),
        ({"iterations": 10, "algorithm": "cma_me"}, False),
    ],
)
def test_a_return_of_the_first_policy_alone_is_told(changes, alone):
    learner = {"algorithm": "ppo", "n_steps": 2048, "evaluate_every": 10}
    usual = {} if "algorithm" in changes else learner
    made = compose("rl_cartpole", {"steps": None, **usual, **changes})
    assert made.judges_its_first_policy_alone == alone
    lines = list(outlook("mine", Sweep((), (), {"a": made}), Sweep((), (), {}), [], {}, None))
    assert any("such as a, the budget ends before the second" in line for line in lines) == alone
    # How many batches and greedy episodes an iteration has, nobody knows.
    counted = "evaluations" in changes or "algorithm" in changes
    assert made.may_evaluate_more == (not counted)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("PPO", "did you mean 'ppo'"),
        ("CMA-ME", "did you mean 'cma_me'"),
        ("SAC", "take td3 or ppo"),
        ("trpo", "take ppo"),
        ("R2D2", "take apex_dqn"),
    ],
)
def test_a_name_as_papers_write_it(name, words):
    with pytest.raises(BadInput, match=words):
        compose("rl_cartpole", {"algorithm": name})
