"""Packages that only some runs need, and how the known ones are installed."""

import os
import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.config.cluster import LIBRARIES, Cluster
from qdsweep.config.files import HOME
from qdsweep.config.own_code import find_source
from qdsweep.errors import BadInput
from qdsweep.host.process import RANKS, which

if TYPE_CHECKING:
    from qdsweep.config.experiment import Experiment

# The beginning of a part of a module's name -> the extra of qdsweep that has it, and a note.
_EXTRAS = {
    "ale_py": ("atari", " (the Arcade Learning Environment, under the GPL-2.0)"),
    "stable_baselines3": ("rl", ""),
    "torch": ("rl", ""),
    "ray": ("ray", ""),
    "mpi4py": ("mpi", ""),
    "optuna": ("search", ""),
    "tensorboard": ("tensorboard", ""),
    "mujoco": ("mujoco", " under Python 3.11 to 3.13: it has no wheel for 3.14"),
    "pybullet": (
        "pybullet",
        " for Python 3.11 on x86-64 Linux, elsewhere `pip install pybullet_envs_gymnasium` "
        "compiles it",
    ),
}


# Every run imports these. A clone on a machine with only Snakemake can plan runs without them.
_LIBRARIES = ("numpy", "scipy", "pandas", "ribs", "matplotlib", "gymnasium")


def require_libraries() -> None:
    """Refuses a machine without the libraries of every run; nothing is imported.

    Raises:
        BadInput: The message names the missing libraries and the ways to install them.
    """
    if missing := [name for name in _LIBRARIES if find_spec(name) is None]:
        is_clone = (HOME / "Makefile").exists()
        command = "make venv && . .venv/bin/activate" if is_clone else "pip install qdsweep-*.whl"
        raise BadInput(
            f"qdsweep needs {', '.join(missing)}, which {sys.executable} does not have. "
            f"`{command}` installs them. Or add an option to this command: --sdm conda (jobs run "
            "in an environment that conda creates) or --sdm apptainer (jobs run in the image that "
            "containers/build.sh has built)"
        )


def install(extra: str) -> str:
    """Returns the command that installs an extra: of make in a clone, else of pip."""
    if extra == "mujoco" or not (HOME / "Makefile").exists():
        return f"`pip install 'qdsweep[{extra}]'`"
    return "`make rl`" if extra == "rl" else "`make extras`"


def remedy(name: str) -> str:
    """Returns how a package is installed, behind a semicolon; nothing where that is unknown."""
    for part, (extra, note) in _EXTRAS.items():
        if re.search(rf"(^|[.:]){part}([.:_]|$)", name):
            image = f"; for an image: EXTRAS={extra} containers/build.sh"
            command = install(extra)
            return f"; {command} installs it{note}{image * command.startswith('`make')}"
    return ""


def require_package(target: str) -> None:
    """Refuses a module that is not there; nothing is imported.

    Args:
        target: The module, also as `module:name`.

    Raises:
        BadInput: The message has the remedy, or where the module was looked for.
    """
    try:
        find_source(target)
    except BadInput:
        module = target.partition(":")[0]
        if not (known := remedy(module)):
            raise
        raise BadInput(f"{target}: there is no module {module}{known}") from None


def require_packages(part: str, *targets: str) -> None:
    """Refuses a part that needs a missing package; nothing is imported.

    Args:
        part: What needs them, such as "engine ray".
        targets: The modules, also as `module:name`.

    Raises:
        BadInput: The message names the part, the package and the remedy.
    """
    for target in targets:
        try:
            require_package(target)
        except BadInput as error:
            raise BadInput(f"{part} needs {error}") from None


def require_packages_of(experiment: "Experiment") -> None:
    """Refuses an experiment whose domain or algorithm needs a missing package.

    Raises:
        BadInput: The message names domain or algorithm, the package and the remedy.
    """
    domain, algorithm = experiment.domain, experiment.algorithm
    require_packages(f"domain {domain.name or domain.type}", *domain.packages)
    require_packages(f"algorithm {algorithm.name}", *algorithm.packages)


def check_installed(cluster: Cluster) -> None:
    """Refuses an engine whose library, or a program or file for it, is missing here.

    Raises:
        BadInput: The library (a separate extra), a program or a file is missing.
    """
    engine = cluster.engine
    if engine in LIBRARIES:
        require_packages(f"engine {engine}", LIBRARIES[engine])
    file = cluster.dask.scheduler_file
    if file is not None and not Path(file).exists():
        raise BadInput(f"cluster: dask: scheduler_file = {file!r}: there is no such file")
    # A rank has been started, perhaps into an image that has no launcher.
    launcher = None if RANKS in os.environ else cluster.mpi.launcher
    program = shlex.split(launcher or "")[:1]
    if program and which(program[0]) is None:
        raise BadInput(f"cluster: mpi: launcher: {program[0]!r} is not a program on the PATH")
