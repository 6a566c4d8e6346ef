"""One lock file is the source of the venv, the image and the conda environment."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from refusals import names_all
from support import REPO, locked, requirements_of

LOCK = (REPO / "envs/requirements.lock").read_text()


def test_the_lock_file_has_what_pyproject_asks_for():
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    versions = locked()
    for line in project["dependencies"]:
        wanted = Requirement(line)
        assert wanted.specifier.contains(versions[canonicalize_name(wanted.name)]), line
    assert all("--hash=sha256:" in line for line in LOCK.replace(" \\\n", " ").splitlines())
    assert "://" not in LOCK


def test_all_pythons_have_one_version_of_each_library():
    """A run that was begun under one Python is resumed under another: its versions are compared."""
    decisive = {"numpy", "scipy", "ribs", "numba", "gymnasium", "ufal-pybox2d", "pandas", "torch"}
    versions: dict[str, set[str]] = {}
    for file in sorted((REPO / "envs").glob("*.lock")):
        for line in requirements_of(file.name):
            versions.setdefault(canonicalize_name(line.name), set()).add(str(line.specifier))
            if line.name in decisive and file.name != "dev.lock":
                assert line.marker is None, f"{line} in {file.name}"
    assert {name: several for name, several in versions.items() if len(several) > 1} == {}
    assert versions.keys() > decisive


def test_the_interpreter_is_the_first_that_will_do(tmp_path):
    """An old python3 is passed over; where there is no other, one line says what to do."""
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    for program in ("make", "sh", "bash", "sed"):
        (tmp_path / program).symlink_to(shutil.which(program))
    shutil.copytree(REPO / "envs", tmp_path / "envs")
    shutil.copy(REPO / "pyproject.toml", tmp_path)
    words = ["make", "--dry-run", "--file", REPO / "Makefile", "venv"]
    env = {"PATH": str(tmp_path)}
    (tmp_path / "python3.12").symlink_to(sys.executable)
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert '"python3.12" -m venv --clear .venv' in done.stdout, done.stderr
    (tmp_path / "python3.12").unlink()
    words = ["make", "--file", REPO / "Makefile", "demo"]
    for chosen, python in ((), ""), (("PYTHON=/usr/bin/no",), "/usr/bin/no"):
        done = subprocess.run(
            [*words, *chosen], cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode != 0
        (line,) = (line for line in done.stderr.splitlines() if not line.startswith("make:"))
        names_all(line, "3.11", "3.14", python, "make demo PYTHON=/path/to/python3")
        assert not (tmp_path / ".venv").exists()


def test_without_a_package_index_one_line_names_the_remedy(tmp_path):
    """A hash that is wrong is not taken for it: then an index answers, here a folder."""
    shutil.copytree(REPO / "envs", tmp_path / "envs")
    shutil.copy(REPO / "pyproject.toml", tmp_path)
    index = tmp_path / "index/immutables"
    index.mkdir(parents=True)
    (index / "immutables-0.21.tar.gz").write_text("no archive")
    (index / "index.html").write_text('<a href="immutables-0.21.tar.gz">immutables</a>')
    pip = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_RETRIES": "0"}
    words = ["make", "--file", REPO / "Makefile", f"PYTHON={sys.executable}", "demo"]
    for place, named in (("http://127.0.0.1:9/simple", 1), (index.parent.as_uri(), 0)):
        env = {**os.environ, **pip, "PIP_INDEX_URL": place}
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode != 0
        lines = [line for line in done.stderr.splitlines() if "PIP_INDEX_URL" in line]
        assert len(lines) == named, done.stderr
        assert all("HTTPS_PROXY" in line and line.endswith("make demo") for line in lines)


def test_the_lock_of_an_extra_has_what_it_adds():
    extras = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    for extra, lines in extras["optional-dependencies"].items():
        if extra == "mujoco":  # requirements.lock has it
            continue
        added = locked(f"{extra}.lock")
        assert not set(added) & set(locked()), "two versions of one library"
        for line in lines:
            wanted = Requirement(line)
            if wanted.marker is None or wanted.marker.evaluate():
                assert wanted.specifier.contains(added[canonicalize_name(wanted.name)]), line
        text = (REPO / f"envs/{extra}.lock").read_text()
        assert all("--hash=sha256:" in line for line in text.replace(" \\\n", " ").splitlines())
        assert "://" not in text
        assert f"envs/{extra}.lock" in (REPO / "Makefile").read_text(), "tests need it"


def test_torch_can_be_installed_from_any_index():
    """Where pip finds the build for CPUs, it is taken: rl.sh takes the first hash for its."""
    text = (REPO / "envs/rl.lock").read_text()
    hashes = re.search(r"^torch==2\.13\.0((?: \\\n +--hash=sha256:\w{64})+)$", text, re.MULTILINE)[
        1
    ]
    assert hashes.split()[1].endswith(
        "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b"
    )
    assert hashes.count("--hash") > 20, "the builds of an index, for all Pythons"
    libraries = locked("cuda.lock")
    assert {"triton", "nvidia-cudnn-cu13"} <= set(libraries)
    assert not set(libraries) & {*locked(), *locked("rl.lock")}


@pytest.mark.parametrize("name", ["docs", "mutants"])
def test_what_is_added_changes_nothing_that_is_installed(name):
    added = locked(f"{name}.lock")
    wanted = (REPO / f"envs/{name}.in").read_text().splitlines()
    assert {line for line in wanted if line and line[0] not in "#-"} <= set(added)
    for file in ("requirements.lock", "dev.lock", *(f"{name}.lock" for name in ("ray", "search"))):
        there = locked(file)
        for library in set(added) & set(there):
            assert added[library] == there[library], f"{library} in {name}.lock and in {file}"
    assert "://" not in (REPO / f"envs/{name}.lock").read_text()


def test_the_conda_environment_is_the_lock_file():
    spec = importlib.util.spec_from_file_location("conda", REPO / "envs/conda.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (REPO / "envs/qdsweep.yaml").read_text()
    assert text == module.environment(LOCK), "run envs/lock.sh"
    *conda, last = yaml.safe_load(text)["dependencies"]
    assert conda == ["python =3.11", "pip"]
    assert [line.split(" ") for line in last["pip"]] == [
        line.split() for line in LOCK.replace(" \\\n", " ").splitlines()
    ]


def test_the_rules_find_the_package_in_any_environment():
    """`--sdm conda` has the libraries but not the package, which PYTHONPATH gives."""
    for file in (REPO / "workflow/rules").glob("*.smk"):
        text = file.read_text()
        assert '"qdsweep ' not in text, file
