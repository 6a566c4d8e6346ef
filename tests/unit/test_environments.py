"""One lock file is the source of the venv, the image and the conda environment."""

import importlib.util
import re
import tomllib

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support import REPO, locked

LOCK = (REPO / "envs/requirements.lock").read_text()


def test_the_lock_file_has_what_pyproject_asks_for():
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    versions = locked()
    for line in project["dependencies"]:
        wanted = Requirement(line)
        assert wanted.specifier.contains(versions[canonicalize_name(wanted.name)]), line
    assert all("--hash=sha256:" in line for line in LOCK.replace(" \\\n", " ").splitlines())
    assert "://" not in LOCK


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


def test_the_site_adds_to_what_is_installed_and_changes_none_of_it():
    added = locked("docs.lock")
    wanted = (REPO / "envs/docs.in").read_text().splitlines()
    assert {line for line in wanted if line and line[0] not in "#-"} <= set(added)
    for file in ("requirements.lock", "dev.lock", *(f"{name}.lock" for name in ("ray", "search"))):
        there = locked(file)
        for name in set(added) & set(there):
            assert added[name] == there[name], f"{name} in docs.lock and in {file}"
    assert "://" not in (REPO / "envs/docs.lock").read_text()


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


def test_venv_and_images_take_the_lock_file():
    install = "--require-hashes -r"
    assert f"{install} envs/requirements.lock" in (REPO / "Makefile").read_text()
    script = (REPO / "containers/install.sh").read_text()
    assert f"{install} $home/envs/requirements.lock" in script
    dockerfile = (REPO / "containers/Dockerfile").read_text()
    definition = (REPO / "containers/qdsweep.def").read_text()
    for text in (dockerfile, definition):
        assert "install.sh libraries" in text
        assert "EXTRAS" in text
        assert "install.sh project" in text
        assert "python:3.11-slim-bookworm" in text
    (version,) = re.findall(r'requires-python = ">=(.*)"', (REPO / "pyproject.toml").read_text())
    assert version == "3.11", "the version of the images"


def test_the_rules_find_the_package_in_any_environment():
    """`--sdm conda` has the libraries but not the package, which PYTHONPATH gives."""
    for file in (REPO / "workflow/rules").glob("*.smk"):
        text = file.read_text()
        assert '"qdsweep ' not in text, file
