"""Sources and wheel of a release build and pass twine, and have the same version everywhere."""

import json
import tomllib
import zipfile

import yaml
from installation import wheel
from support import REPO, command, copy_project

import qdsweep


def test_sources_and_wheel_are_built_and_pass_twine(tmp_path):
    """The wheel built from the sources has the files of the wheel built from the clone."""
    clone = copy_project(tmp_path / "clone")
    (clone / ".venv").unlink()
    command("python", "-m", "build", "--no-isolation", "--outdir", tmp_path / "dist", clone)
    sources, built = sorted((tmp_path / "dist").iterdir(), key=lambda path: path.suffix)
    assert sources.name == f"qdsweep-{qdsweep.__version__}.tar.gz"
    assert built.name == f"qdsweep-{qdsweep.__version__}-py3-none-any.whl"
    command("twine", "check", "--strict", sources, built)
    with zipfile.ZipFile(built) as ours, zipfile.ZipFile(wheel()) as theirs:
        assert sorted(ours.namelist()) == sorted(theirs.namelist())


def test_version_authors_and_place_are_the_same_everywhere():
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((REPO / "CITATION.cff").read_text())
    meta = json.loads((REPO / "codemeta.json").read_text())
    assert {citation["version"], meta["version"]} == {qdsweep.__version__}
    assert (
        (REPO / "CHANGELOG.md").read_text().startswith(f"# Changelog\n\n## {qdsweep.__version__} ")
    )
    names = [author["name"] for author in project["authors"]]
    assert [author["name"] for author in citation["authors"]] == names
    assert [author["name"] for author in meta["author"]] == names
    assert citation["repository-code"] == meta["codeRepository"]
    assert str(citation["date-released"]) == meta["dateModified"]
    assert meta["description"] == project["description"]
    assert meta["license"].endswith(f"/{citation['license']}")
    assert citation["license"] == project["license"]
