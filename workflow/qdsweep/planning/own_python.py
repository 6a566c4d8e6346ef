"""The Python of shell commands, which is this one, or finds this package in another environment."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from qdsweep.config.files import HOME
from qdsweep.files import temporary_name

_PACKAGE = Path(__file__).resolve().parents[1]


def find_own_python() -> None:
    """Makes `python` in a shell command this one, with or without an active environment.

    In a conda environment of `--sdm conda`, `python` remains the environment's, and finds this
    package.
    """
    first = {"PATH": Path(sys.executable).parent, "PYTHONPATH": package_folder()}
    for name, folder in first.items():
        os.environ[name] = os.pathsep.join([str(folder), *filter(None, [os.environ.get(name)])])


def package_folder() -> Path:
    """Returns a folder with this package and none of the libraries next to an installed one.

    The environment has its own libraries, maybe for another Python. For a wheel the folder is
    made in the working directory, with a link to the package.
    """
    if not HOME.is_relative_to(_PACKAGE):
        return _PACKAGE.parent
    link = Path(".snakemake/qdsweep-package/qdsweep").absolute()
    with suppress(OSError):
        if link.readlink() == _PACKAGE:
            return link.parent
    link.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(link)
    temporary.symlink_to(_PACKAGE)
    temporary.replace(link)
    return link.parent
