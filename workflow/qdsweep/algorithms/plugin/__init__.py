"""A user's algorithm, `module:name`: a function that returns a scheduler, or an `Algorithm`."""

from pathlib import Path

from qdsweep.algorithms.base import Algorithm, archive_fields
from qdsweep.algorithms.own import call_own, what_is_given
from qdsweep.config.experiment import Experiment
from qdsweep.config.families import PluginAlgorithm
from qdsweep.domains.base import Domain
from qdsweep.errors import BadInput, raised


def make_own(experiment: Experiment, domain: Domain, shared: Path | None) -> Algorithm:
    """Calls the user's function or class, and returns an `Algorithm`.

    Args:
        experiment: The experiment, whose algorithm is a `PluginAlgorithm`.
        domain: Its domain.
        shared: Not used.

    Raises:
        BadInput: It refuses its arguments, raises, or returns something that cannot run.
    """
    part = experiment.algorithm
    assert isinstance(part, PluginAlgorithm)
    given = {
        **what_is_given(experiment, domain, archive_fields(domain)),
        "x0": domain.x0,
        "step": domain.step,
        "num_emitters": experiment.num_emitters,
        "batch_size": experiment.batch_size,
        # The seed is passed as it is, so the user's script gives the same archive without qdsweep.
        "seed": experiment.seed,
    }
    made = call_own("algorithm", part.type, part.arguments, given)
    if isinstance(made, Algorithm):
        return made
    lacks = [name for name in ("ask", "tell", "archive") if not hasattr(made, name)]
    if lacks:
        raise BadInput(
            f"algorithm: {part.type} returns a {type(made).__name__} without "
            f"{', '.join(lacks)}: it should return a scheduler of pyribs, any object with ask, "
            "tell and an archive, or an `Algorithm` of qdsweep.algorithms.base"
        )
    # A local import, because a user's `Algorithm` may not need pyribs.
    from qdsweep.algorithms.ribs.algorithm import RibsAlgorithm
    from qdsweep.algorithms.ribs.archives import require_archive

    try:
        result = getattr(made, "result_archive", None)
        reported = made.archive if result is None else result
    except Exception as error:
        raise BadInput(f"algorithm: {part.type}: its archive raised {raised(error)}") from error
    require_archive(reported, part.type, domain)
    return RibsAlgorithm(made, groups=0, qd_score_offset=domain.objective_range[0])
