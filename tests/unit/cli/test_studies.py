"""`qdsweep init` writes a study, but only in a new or empty folder."""

import re
import runpy
import subprocess
import sys

import pytest
import yaml
from in_process import qdsweep
from refusals import names_all
from support import REPO

from qdsweep.analysis.statistics import ENOUGH_SEEDS

EVERY = {
    ".gitignore",
    "README.md",
    "Snakefile",
    "config/config.yaml",
    "profiles/default/profile.yaml",
    "profiles/slurm/profile.yaml",
}
EXAMPLE = {"config/plugins/my_domain.py", "config/plugins/test_my_domain.py"}


def files(folder) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("words", [(), ("--minimal",)])
def test_a_study_has_these_files(tmp_path, words):
    (tmp_path / "new/.git").mkdir(parents=True)  # of an existing repository
    qdsweep("init", "new", *words, cwd=tmp_path)
    assert files(tmp_path / "new") == (EVERY if words else EVERY | EXAMPLE)
    qdsweep("init", "not/yet", *words, cwd=tmp_path)
    assert files(tmp_path / "not/yet") == files(tmp_path / "new")
    config = yaml.safe_load((tmp_path / "new/config/config.yaml").read_text())
    assert config["name"] == "new"
    names, *rows = qdsweep("expand", config["sweep"], cwd=tmp_path).splitlines()
    seed = names.split("\t").index("seed")
    assert len({row.split("\t")[seed] for row in rows}) == ENOUGH_SEEDS
    assert "results/sweeps/new/" in (tmp_path / "new/README.md").read_text()
    for name in ("default", "slurm"):
        profile = f"profiles/{name}/profile.yaml"
        assert (tmp_path / "new" / profile).read_bytes() == (REPO / profile).read_bytes()


@pytest.mark.parametrize(("folder", "name"), [("the arm, 2", "the_arm__2"), ("\u00fc", "my_study")])
def test_the_sweep_has_the_folders_name_as_far_as_a_name_can(tmp_path, folder, name):
    qdsweep("init", folder, "--minimal", cwd=tmp_path)
    assert yaml.safe_load((tmp_path / folder / "config/config.yaml").read_text())["name"] == name


def test_it_names_the_commands_that_come_next(tmp_path):
    text = qdsweep("init", "mine", cwd=tmp_path)
    names_all(text, "  cd mine\n  snakemake --cores all\n", "qdsweep watch", "qdsweep status")


@pytest.mark.parametrize("words", [(), ("--minimal",)])
def test_its_texts_are_those_of_a_study_without_a_clone(tmp_path, words):
    qdsweep("init", "mine", *words, cwd=tmp_path)
    folder = tmp_path / "mine"
    for path in files(folder):
        text = (folder / path).read_text()
        assert not re.search(r"\bmake (venv|extras|rl|image|demo)", text), f"{path} has no Makefile"
        cores = re.findall(r"snakemake .*?--cores (\S+?)\b", text)
        assert set(cores) <= {"all", "1"}, path
    names_all((folder / "README.md").read_text(), 'load_sweep("mine")', "qdsweep watch")


def test_the_example_declares_that_seeds_have_no_effect(tmp_path):
    qdsweep("init", "mine", cwd=tmp_path)
    module = runpy.run_path(str(tmp_path / "mine/config/plugins/my_domain.py"))
    assert module["MyDomain"].is_deterministic is True


@pytest.mark.parametrize("name", ["folder", "folder/README.md"])
def test_what_is_there_stays(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/README.md").write_text("mine\n")
    names_all(qdsweep("init", name, cwd=tmp_path, code=2), f"init {name}")
    assert files(tmp_path) == {"folder/README.md"}
    assert (tmp_path / "folder/README.md").read_text() == "mine\n"


def test_the_tests_of_the_example_pass(tmp_path):
    qdsweep("init", "mine", cwd=tmp_path)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "config/plugins"]
    done = subprocess.run(words, cwd=tmp_path / "mine", capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr
