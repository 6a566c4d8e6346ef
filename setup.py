"""Presets, profiles and workflow go into the wheel as qdsweep/data; all else is in pyproject.toml.

They stay where a clone and Snakemake's catalogue have them, and are copied when it is built.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HOME = Path(__file__).parent
DATA = (
    *("Snakefile", "config", "profiles", "envs/qdsweep.yaml"),
    *("envs/requirements.lock", "containers/Dockerfile", "containers/qdsweep.def"),
    *("containers/build.sh", "containers/install.sh"),
    *("workflow/Snakefile", "workflow/report", "workflow/rules", "workflow/schemas"),
)


def files() -> list[str]:
    """Every file of the data, as a path from the project's folder."""
    found = [
        path
        for name in DATA
        for path in ((HOME / name).rglob("*") if (HOME / name).is_dir() else [HOME / name])
    ]
    return sorted(
        str(path.relative_to(HOME))
        for path in found
        if path.is_file() and "__pycache__" not in path.parts
    )


class BuildWithData(build_py):
    """Also copies the data; an editable install reads the clone's."""

    def run(self) -> None:
        """Copies modules and data."""
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib, "qdsweep/data")
        shutil.rmtree(target, ignore_errors=True)  # an earlier build's may have more files
        for file in files():
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(HOME / file, target / file)

    def get_source_files(self) -> list[str]:
        """Returns what an archive of the sources has, so that a wheel can be made of it."""
        return [*super().get_source_files(), *files()]


setup(cmdclass={"build_py": BuildWithData})
