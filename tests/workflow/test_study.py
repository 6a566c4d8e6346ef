"""A study in an environment without a clone: from nothing to a report in two commands."""

import os
import re
import shlex

import pandas as pd
import pytest
import yaml
from installation import environment, type_in
from refusals import names_all
from results import digests
from starting import jobs
from support import REPO, TINY, write_yaml

PAGE = (REPO / "docs/guide/study.md").read_text()
COMMANDS = [
    line.split("  #")[0].strip() for line in re.findall(r"^\$ (.*)", PAGE, flags=re.MULTILINE)
]

OWN_RULE = """

rule first:
    input:
        "results/sweeps/my_study/summary.csv",
    output:
        "first.txt",
    shell:
        "head -n 2 {input} | tail -n 1 > {output}"
"""


@pytest.fixture(scope="module")
def programs():
    return environment()


@pytest.fixture(scope="module")
def study(tmp_path_factory, programs):
    """A finished study with the files of `init` and a budget of some seconds."""
    init, start, *_ = COMMANDS
    folder = tmp_path_factory.mktemp("study") / "my_study"
    type_in(programs, *init.split(), cwd=folder.parent)
    path = folder / "config/config.yaml"
    config = yaml.safe_load(path.read_text())
    config["experiment"]["iterations"] = 5
    config["sweep"] = "::: algorithm map_elites ::: seed 1 2"
    write_yaml(path, config)
    type_in(programs, *start.removeprefix(f"cd {folder.name} && ").split(), cwd=folder)
    return folder


@pytest.mark.parametrize("line", [line for line in COMMANDS[2:] if "slurm" not in line])
def test_the_pages_other_commands(study, programs, line):
    """tests/slurm runs the study on Slurm."""
    type_in(programs, *shlex.split(line), cwd=study)


def test_it_ends_with_a_report_and_nothing_is_left_to_do(study, programs):
    sweep = study / "results/sweeps/my_study"
    assert "my_study" in (sweep / "report.html").read_text()
    assert list(pd.read_csv(sweep / "summary.csv")["status"]) == ["finished"] * 2
    assert jobs(type_in(programs, "snakemake", "-n", cwd=study).stdout) == {}
    type_in(programs, "snakemake", "--lint", cwd=study)


def test_a_rule_of_ones_own_reads_its_tables(study, programs):
    with (study / "Snakefile").open("a") as file:
        file.write(OWN_RULE)
    type_in(programs, "snakemake", "--cores", 1, "first.txt", cwd=study)
    assert "finished" in (study / "first.txt").read_text()
    assert "qd_run" not in type_in(programs, "snakemake", "-n", cwd=study).stdout


def test_without_the_example_a_preset_is_swept(tmp_path, programs):
    type_in(programs, "qdsweep", "init", "mine", "--minimal", cwd=tmp_path)
    done = type_in(programs, "snakemake", "-n", "--cores", 2, cwd=tmp_path / "mine")
    assert jobs(done.stdout + done.stderr)["qd_run"] == 10
    assert not (tmp_path / "mine/results").exists()


def test_a_file_that_is_given_takes_nothing_from_the_studys_config(tmp_path, programs):
    """The study of `init` has a first batch and more, which would make other runs of it."""
    type_in(programs, "qdsweep", "init", "mine", cwd=tmp_path)
    other = {"name": "other", "experiment": TINY, "sweep": "::: seed 1"}
    write_yaml(tmp_path / "mine/other.yaml", other)
    words = ("--configfile", "other.yaml", "--cores", 1)
    type_in(programs, "snakemake", *words, "--until", "qd_run", cwd=tmp_path / "mine")
    assert len(digests(tmp_path / "mine")) == 1
    done = type_in(programs, "qdsweep", "sweep", "other.yaml", "-n", cwd=tmp_path / "mine")
    assert "qd_run" not in jobs(done.stdout + done.stderr)


def test_a_sweep_needs_no_snakefile(tmp_path, programs, study):
    config = {"name": "t", "experiment": TINY, "sweep": "::: seed 1 2"}
    write_yaml(tmp_path / "tiny.yaml", config)
    type_in(programs, "qdsweep", "sweep", "tiny.yaml", "--until", "qd_run", "-c2", cwd=tmp_path)
    assert len(digests(tmp_path)) == 2
    assert not (tmp_path / "Snakefile").exists()
    done = type_in(programs, "qdsweep", "sweep", "-n", cwd=study)  # config/config.yaml
    assert "my_study" in done.stderr and "qd_run" not in jobs(done.stdout + done.stderr)
    done = type_in(programs, "qdsweep", "sweep", "publishd_cma_mae", cwd=tmp_path, check=2)
    names_all(done.stderr, "publishd_cma_mae", "'published_cma_mae'")


def test_the_output_and_exit_code_of_snakemake_are_passed_on(tmp_path, programs):
    write_yaml(tmp_path / "wrong.yaml", {"name": "t", "experiment": {**TINY, "seeed": 1}})
    done = type_in(programs, "qdsweep", "sweep", "wrong.yaml", cwd=tmp_path, check=1)
    assert "seeed" in done.stderr


@pytest.mark.parametrize("words", [("snakemake", "-n"), ("qdsweep", "sweep", "-n")])
def test_a_config_that_is_no_text_is_named(tmp_path, programs, words):
    """Snakemake's own error is a traceback that does not name the file."""
    type_in(programs, "qdsweep", "init", "mine", "--minimal", cwd=tmp_path)
    config = tmp_path / "mine/config/config.yaml"
    config.write_bytes("# Café\n".encode("latin-1") + config.read_bytes())
    done = type_in(programs, *words, cwd=config.parents[1], check=1)
    names_all(done.stdout + done.stderr, "config/config.yaml, line 1", "0xe9", "UTF-8")
    assert "Traceback" not in done.stdout + done.stderr
    config.unlink()
    os.mkfifo(config)  # Snakemake would wait for ever
    done = type_in(programs, *words, cwd=config.parents[1], check=1)
    names_all(done.stdout + done.stderr, "config/config.yaml", "regular file")


def test_a_missing_extra_is_named_as_pip_installs_it(tmp_path, programs):
    write_yaml(tmp_path / "ray.yaml", {"engine": "ray"})
    words = ("qdsweep", "run", "lp_sphere", "--cluster", "ray.yaml", "--out", "run")
    done = type_in(programs, *words, cwd=tmp_path, check=2)
    names_all(done.stderr, "engine ray", "pip install 'qdsweep[ray]'")
    assert "`make" not in done.stderr
