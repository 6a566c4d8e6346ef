"""A snapshot: the results of an unfinished run, from its newest reload file."""

import shutil
from pathlib import Path

from qdsweep.algorithms import import_plugins
from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.experiment import reload
from qdsweep.experiment.outputs import all_versions, write_results
from qdsweep.records.dependencies import recorded
from qdsweep.records.metrics_file import copy_rows
from qdsweep.records.paths import RunDir
from qdsweep.records.results import Summary
from qdsweep.records.status import read_status
from qdsweep.sweep.ids import Identity, run_id


def snapshot(run_dir: Path) -> Path | None:
    """Writes `state/partial/`, the results of an unfinished run, from its newest reload file.

    Args:
        run_dir: The run's folder. The run may be in progress.

    Returns:
        The folder, or None if no finished iteration of the run has been saved yet.
    """
    files = RunDir(run_dir).state
    if not files.config.exists():
        return None
    experiment = compose(str(files.config))
    domain = make_domain(experiment.domain)
    import_plugins(experiment)
    saved = reload.last_saved(files, experiment.algorithm.plugins)
    if saved is None or not saved.state.iterations:
        return None
    state = saved.state
    target = files.partial
    target.path.mkdir(exist_ok=True)
    target.unseal()
    shutil.copyfile(files.config, target.config)
    copy_rows(files.metrics, target.metrics, state.iterations)
    status = read_status(files)
    about: Summary = {
        "status": "partial",
        "versions": all_versions({}, status.engine),
        "engine": status.engine,
        "workers": status.workers,
        "attempts": status.attempts,
    }
    if status.code:
        about["sources"] = recorded(files)
    # The source of a user's class may have been edited since, but the run keeps its id.
    identity = Identity(status.id or run_id(experiment), saved.header["fingerprint"])
    write_results(target, identity, experiment, domain, state, about)
    target.seal()
    return target.path
