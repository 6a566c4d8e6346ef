"""The wheel contains a clone's files outside the package; test_commands.py uses it."""

import zipfile
from pathlib import Path

from installation import environment, type_in, wheel
from support import copy_project


def test_its_data_are_the_clones_files(tmp_path):
    clone = copy_project(tmp_path / "clone")
    (clone / ".venv").unlink()
    folders = ("config", "profiles", "workflow/report", "workflow/rules", "workflow/schemas")
    files = {path for folder in folders for path in (clone / folder).rglob("*") if path.is_file()}
    files |= {clone / name for name in ("Snakefile", "workflow/Snakefile", "envs/qdsweep.yaml")}
    files |= {clone / "envs/requirements.lock", *(clone / "containers").iterdir()}
    with zipfile.ZipFile(wheel()) as packed:
        names = [name for name in packed.namelist() if name.startswith("qdsweep/data/")]
        data = {name.removeprefix("qdsweep/data/"): packed.read(name) for name in names}
    assert data == {str(path.relative_to(clone)): path.read_bytes() for path in files}


def test_a_conda_environment_finds_the_package_and_none_of_the_libraries_next_to_it(tmp_path):
    """`--sdm conda` has its own libraries, maybe of another Python."""
    folder_of = "from qdsweep.planning.module import package_folder as f"
    code = f"{folder_of}; print(f()); assert f() == f()"
    folder = type_in(environment(), "python", "-c", code, cwd=tmp_path).stdout.strip()
    words = ("python", "-m", "qdsweep", "expand", "::: seed 1 2")
    there = environment(package=False)
    assert type_in(there, *words, cwd=tmp_path, PYTHONPATH=folder).stdout == "seed\n1\n2\n"
    type_in(there, *words, cwd=tmp_path, check=1)
    assert [path.name for path in Path(folder).iterdir()] == ["qdsweep"]
