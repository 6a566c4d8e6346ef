"""Where the Python of a conda environment finds this package."""

import os
from contextlib import suppress
from pathlib import Path

from qdsweep.config.files import HOME

_PACKAGE = Path(__file__).resolve().parents[1]


def package_folder() -> Path:
    """Returns a folder with this package and none of the libraries beside an installed one.

    The environment has libraries of its own, maybe for another Python. For a wheel the folder is
    made in the working directory, with a link to the package.
    """
    if not HOME.is_relative_to(_PACKAGE):
        return _PACKAGE.parent
    link = Path(".snakemake/qdsweep-package/qdsweep").absolute()
    with suppress(OSError):
        if link.readlink() == _PACKAGE:
            return link.parent
    link.parent.mkdir(parents=True, exist_ok=True)
    fresh = link.with_name(f"{os.getpid()}")
    fresh.symlink_to(_PACKAGE)
    fresh.replace(link)
    return link.parent
