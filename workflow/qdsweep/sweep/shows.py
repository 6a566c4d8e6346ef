"""What a sweep's runs can show: how archives filled, elites at their task, what was luck."""

from collections.abc import Mapping

from qdsweep.config.algorithm import CVTArchive, GridArchive
from qdsweep.config.domain import Arm, DomainConfig, Gymnasium, LinearProjection, LunarLander
from qdsweep.config.experiment import Experiment
from qdsweep.errors import BadInput


def has_history(experiment: Experiment) -> bool:
    """Whether a run of it leaves history.npz: the cells of its result archive do not move."""
    algorithm = experiment.algorithm
    return algorithm.result_archive or isinstance(algorithm.archive, GridArchive | CVTArchive)


def check_rollouts(runs: Mapping[str, Experiment]) -> None:
    """Refuses `rollouts:` where a domain has no episodes that could be rendered.

    Raises:
        BadInput: The message names the domain.
    """
    for experiment in runs.values():
        try:
            require_episodes(experiment.domain)
        except BadInput as error:
            raise BadInput(
                f"the sweep file: rollouts: {error}; remove the key rollouts, or sweep it apart"
            ) from None


def check_reevaluate(runs: Mapping[str, Experiment]) -> None:
    """Refuses `reevaluate:` where no evaluation of the sweep depends on its seed.

    Raises:
        BadInput: The message names the domains.
    """
    domains = [experiment.domain for experiment in runs.values()]
    if all(isinstance(domain, LinearProjection | Arm) for domain in domains):
        names = dict.fromkeys(domain.name or domain.type for domain in domains)
        raise BadInput(
            f"the sweep file: reevaluate: an evaluation of {', '.join(names)} gives the same with "
            "every seed, so nothing of its score is luck and the corrected archive is the archive: "
            "remove the key reevaluate"
        )


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
