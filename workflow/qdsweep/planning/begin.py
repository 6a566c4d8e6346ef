"""The last step of a start, before its first job: checks, the plan, the warm process."""

from itertools import chain
from pathlib import Path

from qdsweep.analysis.stages import forget
from qdsweep.config.explain import naming_file
from qdsweep.config.memory import require_memory_of
from qdsweep.config.requirements import check_installed, require_libraries
from qdsweep.features import member
from qdsweep.files import time_of, try_to_remove
from qdsweep.planning.checks import check_fit, check_gpus
from qdsweep.planning.slurm_jobs import requeue_lost, require_request
from qdsweep.planning.start import Start
from qdsweep.records.aside import put_back
from qdsweep.search.pbt import with_changes
from qdsweep.warm.launcher import start_warm
from qdsweep.warm.trial import try_algorithms


def begin(
    start: Start,
    cluster: str,
    *,
    command: str,
    is_remote: bool,
    deploys: bool,
    image: str,
    slurm: dict[str, str],
) -> None:
    """Checks, writes and starts what the jobs of a start need, before the first of them.

    Args:
        start: The start.
        cluster: The name of its cluster config.
        command: The function `MODULE:NAME` that runs the words of a job in the warm process.
        is_remote: Whether jobs run on other machines than this one.
        deploys: Whether jobs run in an image or a conda environment, which has its own packages.
        image: The image; empty without one.
        slurm: Account and partition, where they are set.

    Raises:
        BadInput: Jobs cannot run so.
    """
    config = start.clusters[cluster]
    found = start.found
    check_fit(config, cluster, start.sweep.settings)
    if not deploys:
        require_libraries()
        check_installed(config)
        if not is_remote:
            with naming_file(start.sources, "experiment"):
                for experiment in found.unfinished:
                    require_memory_of(experiment)
        # With all that their algorithms may become on the way.
        changed = with_changes(start.settings, found.unfinished)
        try_algorithms(changed, are_here=not is_remote)
    if image:
        member("image.image:prepare_image", "--sdm apptainer")(image)
    if is_remote:
        check_gpus(config, cluster, start.sweep.settings)
        require_request(config, cluster, slurm)
    for folder in (start.results.runs, start.folder.path):
        if folder.exists():
            time_of(folder)  # else Snakemake's error would not name the owner
    for run in found.unsettled:
        put_back(start.results.run(run))
    try_to_remove(chain(start.folder.abandoned(), start.results.abandoned()))
    start.write_plan()
    forget(start.settings, start.folder.path)
    if not (is_remote or deploys):
        log = Path(".snakemake/log/qdsweep-warm.log")
        start_warm(start.runs.values(), found.unfinished, command, log)
    if config.nodes > 1:
        requeue_lost(found.unsettled, start.results)
