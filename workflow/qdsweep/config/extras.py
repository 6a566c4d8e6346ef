"""Packages that only some experiments need, and how the known ones of them are installed."""

from qdsweep.config.experiment import Experiment
from qdsweep.config.plugin import find_source
from qdsweep.errors import BadInput

# A part of a module's name or of an entry point -> remedy.
_RL = "`make rl` installs it, elsewhere `pip install 'qdsweep[rl]'`"
_REMEDIES = {
    "ale_py": (
        "`make extras` installs it (envs/atari.lock), as does pip install 'qdsweep[atari]' (the "
        "Arcade Learning Environment, under the GPL-2.0); for an image: EXTRAS=atari "
        "containers/build.sh"
    ),
    "stable_baselines3": _RL,
    "torch": _RL,
    "mujoco": "pip install 'qdsweep[mujoco]'",
    "pybullet": (
        "`make extras` installs it for Python 3.11 on x86-64 Linux, elsewhere `pip install "
        "pybullet_envs_gymnasium` compiles it"
    ),
}


def remedy(name: str) -> str:
    """Returns how a package is installed, behind a semicolon; nothing where that is unknown."""
    return next((f"; {words}" for part, words in _REMEDIES.items() if part in name), "")


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


def require_packages(experiment: Experiment) -> None:
    """Refuses an experiment whose domain or algorithm needs a package that is not there.

    Raises:
        BadInput: The message names domain or algorithm, the package and the remedy.
    """
    domain, algorithm = experiment.domain, experiment.algorithm
    needed = dict.fromkeys(domain.packages, f"domain {domain.name or domain.type}")
    needed |= dict.fromkeys(algorithm.packages, f"algorithm {algorithm.name}")
    for target, part in needed.items():
        try:
            require_package(target)
        except BadInput as error:
            raise BadInput(f"{part} needs {error}") from None
