"""Algorithms ask for solutions and learn from their evaluations; `make_algorithm` makes them."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.config.experiment import Experiment
from qdsweep.config.own_code import load_plugin
from qdsweep.config.requirements import require_packages_of
from qdsweep.errors import BadInput, raised

if TYPE_CHECKING:  # the libraries are imported with the family that needs them
    from qdsweep.algorithms.base import Algorithm
    from qdsweep.domains.base import Domain


def make_algorithm(experiment: Experiment, domain: "Domain", shared: Path | None) -> "Algorithm":
    """Makes the algorithm of an experiment, seeded from the first child of its seed.

    Args:
        experiment: The experiment.
        domain: Its domain.
        shared: A folder for files that many runs share, such as centroids. None for a check, which
            uses arbitrary centroids.

    Raises:
        BadInput: The algorithm does not fit the domain, or needs a package that is missing, or the
            domain is for runs of earlier releases only.
    """
    from qdsweep.algorithms.base import require_actor

    require_packages_of(experiment)
    if why := getattr(domain, "why_not_new", ""):
        raise BadInput(why)
    code = experiment.resampling.code or experiment.algorithm.code
    module, name = code.split(":")
    made: Algorithm = getattr(import_module(module), name)(experiment, domain, shared)
    if made.needs_jacobian and not hasattr(domain, "jacobian"):
        raise BadInput(
            f"algorithm {experiment.algorithm.name} needs gradients, but the domain "
            f"{experiment.domain.name} has no jacobian method"
        )
    if made.needs_experience:
        require_actor(experiment, domain)
    return made


def try_changes(experiment: Experiment, domain: "Domain", shared: Path | None) -> None:
    """Tries the changes of a schedule on a new algorithm, before a run depends on them.

    Args:
        experiment: The experiment.
        domain: Its domain.
        shared: See `make_algorithm`.

    Raises:
        BadInput: The algorithm refuses one of the changes.
    """
    if not experiment.schedule:
        return
    made = make_algorithm(experiment, domain, shared)
    for change in experiment.schedule:
        for key, value in change.set.items():
            try:
                made.change(key, value)
            except BadInput as error:
                raise BadInput(f"schedule, at {change.at}: {error}") from None
            except Exception as error:
                where = f"schedule, at {change.at}: {key} = {value!r}"
                raise BadInput(f"{where}: `change` raised {raised(error)}") from error


def import_plugins(experiment: Experiment) -> None:
    """Imports the user's parts of an algorithm, because a reload file has only their names."""
    for plugin in experiment.algorithm.plugins:
        load_plugin(plugin)
