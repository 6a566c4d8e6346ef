"""What no machine has the memory for is refused by its key, and no run begins."""

import pytest
from in_process import qdsweep


@pytest.mark.parametrize(
    ("algorithm", "key", "value"),
    [
        ("sep_cma_es", "domain.policy.hidden", "[1000000, 1000000]"),
        ("td3", "algorithm.learner.replay_size", "1000000000000"),
        ("td3", "algorithm.learner.critic_hidden", "[1000000, 1000000]"),
        ("dqn", "algorithm.buffer_size", "1000000000000"),
        ("ppo", "algorithm.vf_hidden", "[1000000, 1000000]"),
    ],
)
def test_what_cannot_fit_is_refused_with_its_key(tmp_path, algorithm, key, value):
    name = "rl_cartpole" if algorithm in ("dqn", "ppo") else "pendulum"
    if name == "rl_cartpole":
        pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
    sets = [f"algorithm={algorithm}", f"{key}={value}", "batch_size=8", "num_emitters=1"]
    if key.startswith("domain"):
        sets.append("domain.policy.type=mlp")
    words = [word for one in sets for word in ("--set", one)]
    said = qdsweep("run", name, *words, "--out", "out", cwd=tmp_path, code=2).splitlines()[-1]
    # What the config alone tells is refused with the name of the config before the key.
    source = "rl_cartpole with --set: " if name == "rl_cartpole" else ""
    assert said.startswith(f"qdsweep: {source}{key} = {value}: ")
    assert said.endswith("; take a smaller one")
    assert not (tmp_path / "out/state/metrics.csv").exists()
