"""What a sweep's runs can show: how archives filled, elites at their task."""

from qdsweep.config.algorithm import CVTArchive, GridArchive
from qdsweep.config.domain import DomainConfig, Gymnasium, LunarLander
from qdsweep.config.experiment import Experiment
from qdsweep.errors import BadInput


def has_history(experiment: Experiment) -> bool:
    """Whether a run of it leaves history.npz: the cells of its result archive do not move."""
    algorithm = experiment.algorithm
    return algorithm.result_archive or isinstance(algorithm.archive, GridArchive | CVTArchive)


def require_episodes(domain: DomainConfig) -> None:
    """Refuses a domain that is not of gymnasium.

    Raises:
        BadInput: The message names the domain.
    """
    if not isinstance(domain, Gymnasium | LunarLander):
        raise BadInput(
            f"the domain {domain.name or domain.type} (type {domain.type}) has no episodes that "
            "could be rendered; the types gymnasium and lunar_lander do"
        )
