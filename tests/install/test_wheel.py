"""The wheel has what a clone has beside the package; test_commands.py uses it."""

import zipfile

from installation import wheel
from support import copy_project


def test_its_data_are_the_clones_files(tmp_path):
    clone = copy_project(tmp_path / "clone")
    (clone / ".venv").unlink()
    folders = ("config", "profiles", "workflow/report", "workflow/rules", "workflow/schemas")
    files = {path for folder in folders for path in (clone / folder).rglob("*") if path.is_file()}
    files |= {clone / name for name in ("Snakefile", "workflow/Snakefile", "envs/qdsweep.yaml")}
    with zipfile.ZipFile(wheel()) as packed:
        names = [name for name in packed.namelist() if name.startswith("qdsweep/data/")]
        data = {name.removeprefix("qdsweep/data/"): packed.read(name) for name in names}
    assert data == {str(path.relative_to(clone)): path.read_bytes() for path in files}
