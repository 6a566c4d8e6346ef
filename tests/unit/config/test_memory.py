"""Values that do not fit into memory are refused by their key, but nothing that has run."""

import pytest
from in_process import qdsweep
from refusals import names_all, refused
from small_runs import experiment
from support import TINY

from qdsweep.config.compose import compose
from qdsweep.config.memory import require_memory_of


def test_what_another_machine_may_hold():
    large = experiment(**{"archive.dims": [10**5, 10**6]})  # 8 TB
    with refused("archive.dims = [100000, 1000000]", "GiB"):
        require_memory_of(large)
    require_memory_of(large, anywhere=True)


def test_facts_that_only_the_domain_knows():
    with refused(f"{10**12:,}", "GiB"):
        require_memory_of(experiment(), solution_dim=10**12)


@pytest.mark.parametrize(
    ("algorithm", "key", "value"),
    [
        ("sep_cma_es", "domain.policy.hidden", "[1000000, 1000000]"),
        ("td3", "algorithm.learner.replay_size", "1000000000000"),
        ("td3", "algorithm.learner.critic_hidden", "[1000000, 1000000]"),
    ],
)
def test_faults_of_the_made_domain_are_refused_before_an_evaluation(
    tmp_path, algorithm, key, value
):
    keys = [f"algorithm={algorithm}", f"{key}={value}", "batch_size=8", "num_emitters=1"]
    keys += ["domain.policy.type=mlp"] if key.startswith("domain") else []
    words = [word for setting in keys for word in ("--set", setting)]
    text = qdsweep("run", "pendulum", *words, "--out", "out", cwd=tmp_path, code=2)
    names_all(text.splitlines()[-1], f"{key} = {value}", "GiB")
    assert not (tmp_path / "out/state/metrics.csv").exists()


@pytest.mark.parametrize("name", ["impala", "dqn", "apex_dqn"])
def test_a_return_may_be_longer_than_any_episode(name):
    require_memory_of(compose("rl_cartpole", {"algorithm": name, "n_steps": 10**13}))


def test_cells_of_a_user_s_own_archive_are_their_own_affair():
    emitters = [{"type": "gaussian"}]
    own = {"archive": {"type": "lab:Mine"}, "emitters": emitters}
    require_memory_of(compose({**TINY, "algorithm": own, "archive": {"dims": [10**9, 10**9]}}))
