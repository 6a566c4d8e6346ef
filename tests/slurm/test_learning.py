"""Learners that play their episodes on the nodes of a real Slurm."""

import pytest
from in_process import compute_sweep
from learners import BREAKOUT
from results import digests, summary
from support import REPO, snakemake, write_yaml

TASK = {
    "domain": {"preset": "rl_cartpole", "max_episode_steps": 60},
    "archive": {"dims": [5, 5]},
    "num_emitters": 1,
    "batch_size": 7,
    "iterations": 3,
}
SWEEP = "::: algorithm ppo_unroll dqn"
SCREENS = {
    "domain": {**BREAKOUT, "max_frames": 200},
    "archive": {"dims": [2, 2]},
    "num_emitters": 1,
    "batch_size": 7,
    "iterations": 2,
}
SCREENS_SWEEP = "::: algorithm ppo_atari_unroll impala_atari ::: evaluate_every 1"
NEEDS = {"nodes": 2, "workers_per_node": 2, "mem_mb_main": 1500, "mem_mb_per_worker": 300}


@pytest.mark.parametrize(("task", "swept"), [(TASK, SWEEP), (SCREENS, SCREENS_SWEEP)])
def test_episodes_of_two_nodes_teach_what_those_of_one_process_do(task, swept, tmp_path):
    pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
    pytest.importorskip("ale_py", reason="Atari: `make extras`")
    compute_sweep(tmp_path / "local/results", task, swept)
    folder = tmp_path / "slurm"
    folder.mkdir()
    write_yaml(folder / "two.yaml", {**NEEDS, "runtime_min": 5})
    write_yaml(folder / "task.yaml", task)
    write_yaml(folder / "sweep.yaml", {"name": "t", "experiment": "task.yaml", "sweep": swept})
    words = ("--profile", REPO / "profiles/slurm", "--slurm-init-seconds-before-status-checks", "2")
    words += ("--config", "cluster=two.yaml", "--until", "qd_run")
    snakemake("--configfile", "sweep.yaml", *words, cwd=folder)
    assert len(digests(folder)) == 2
    assert digests(folder) == digests(tmp_path / "local")
    for run in (folder / "results/runs").iterdir():
        assert (summary(run)["engine"], summary(run)["workers"]) == ("dask", 4)
