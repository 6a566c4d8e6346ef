"""Whether what the runs of a sweep need is installed, before any of them starts."""

from collections.abc import Mapping

from qdsweep.config.experiment import Experiment
from qdsweep.config.extras import require_packages_of
from qdsweep.errors import BadInput
from qdsweep.planning.outlook import unfinished
from qdsweep.records.sweep_dir import Results


def check_packages(runs: Mapping[str, Experiment], results: Results) -> None:
    """Refuses runs that need a package which is not installed here.

    Nothing is imported, so a dry run says it too. Finished runs need nothing any more.

    Args:
        runs: Run id -> experiment.
        results: The folder results/.

    Raises:
        BadInput: The message names domain or algorithm, the package and the remedy.
    """
    groups: dict[tuple[str, ...], dict[str, Experiment]] = {}
    for run, experiment in runs.items():
        needed = (*experiment.domain.packages, *experiment.algorithm.packages)
        groups.setdefault(needed, {})[run] = experiment
    for alike in groups.values():
        try:
            require_packages_of(next(iter(alike.values())))
        except BadInput:
            for experiment in unfinished(alike, results)[:1]:
                require_packages_of(experiment)
