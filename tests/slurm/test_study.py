"""A study on the real Slurm, by the profile that `qdsweep init` writes."""

import yaml
from results import digests, summary
from support import command, write_yaml


def test_its_slurm_profile_computes_the_sweep(tmp_path):
    command("qdsweep", "init", "mine", cwd=tmp_path)
    folder = tmp_path / "mine"
    config = yaml.safe_load((folder / "config/config.yaml").read_text())
    config["experiment"]["iterations"] = 5
    config["sweep"] = "::: algorithm map_elites ::: seed 1 2"
    write_yaml(folder / "config/config.yaml", config)
    words = ("--profile", "profiles/slurm", "--slurm-init-seconds-before-status-checks", "2")
    command("snakemake", *words, "--until", "qd_run", cwd=folder)
    assert len(digests(folder)) == 2
    for run in (folder / "results/runs").iterdir():
        assert [attempt["slurm_job"] is not None for attempt in summary(run)["attempts"]] == [True]
