"""Refusals of reinforcement learning, before anything runs and without its libraries."""

import sys

import pytest
from in_process import qdsweep
from refusals import names_all, refused

from qdsweep.config import requirements
from qdsweep.config.compose import compose
from qdsweep.config.own_code import find_source
from qdsweep.errors import BadInput
from qdsweep.planning.checks import check_packages
from qdsweep.planning.outlook import outlook
from qdsweep.records.paths import Results
from qdsweep.sweep.runs import Sweep

NAMES = ("ppo", "a2c", "dqn", "impala", "apex_dqn")


@pytest.fixture
def nothing_installed(monkeypatch):
    def source_of(target):
        if target in ("torch", "stable_baselines3"):
            raise BadInput(target)
        return find_source(target)

    monkeypatch.setattr(requirements, "find_source", source_of)


@pytest.mark.parametrize(
    ("home", "name"), [*(("rl_cartpole", name) for name in NAMES), ("lp_sphere", "dms")]
)
def test_without_the_extra_every_name_is_refused_with_the_command(
    home, name, tmp_path, nothing_installed
):
    with refused(f"algorithm {name}", "torch", "`make rl`"):
        check_packages({"run": compose(home, {"algorithm": name})}, Results(tmp_path))


@pytest.mark.parametrize(
    "words", [("check", "--algorithm", "ppo"), ("run", "rl_cartpole", "--out", "out")]
)
def test_without_the_extra_nothing_is_written(tmp_path, nothing_installed, words):
    text = qdsweep(*words, cwd=tmp_path, code=2)
    assert text.count("algorithm ppo") == 1 and len(text.splitlines()) == 1
    names_all(text, "torch", "`make rl`")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_composing_imports_no_library(name, monkeypatch):
    for library in ("torch", "stable_baselines3"):
        monkeypatch.setitem(sys.modules, library, None)  # its import fails
    assert compose("rl_cartpole", {"algorithm": name}).algorithm.packages


@pytest.mark.parametrize(
    ("changes", "alone"),
    [
        ({"iterations": 10}, True),
        ({"iterations": 11}, False),
        ({"iterations": 10, "evaluate_every": 9}, False),
        ({"steps": 20480}, True),  # an iteration has at least 2,048
        ({"steps": 20481}, False),
        ({"evaluations": 90}, True),  # 10 + 8, then at least 8 per iteration
        ({"evaluations": 91}, False),
        ({"iterations": 10, "algorithm": "cma_me"}, False),
        ({"steps": 9999, "algorithm": "a2c_unroll", "batch_size": 8}, True),  # 250 of 8 x 5
        ({"steps": 10001, "algorithm": "a2c_unroll", "batch_size": 8}, False),
    ],
)
def test_a_return_of_only_the_first_policy_is_reported(changes, alone):
    learner = {"algorithm": "ppo", "n_steps": 2048, "evaluate_every": 10}
    usual = {} if "algorithm" in changes else learner
    made = compose("rl_cartpole", {"steps": None, **usual, **changes})
    assert made.judges_its_first_policy_alone == alone
    sweeps = Sweep((), (), {"ours": made}), Sweep((), (), {})
    warnings = [line for line in outlook("mine", *sweeps, [], {}, None) if "ours" in line]
    assert len(warnings) == alone
    # The numbers of batches and greedy episodes per iteration are unknown.
    counted = "evaluations" in changes or not made.algorithm.explores
    assert made.may_evaluate_more == (not counted)
