"""The runs that need no job, as they are finished and published, and the budget of the others.

A large sweep leaves them out. A job costs Snakemake milliseconds and kilobytes, which was most of a
start with 100,000 finished runs.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from qdsweep.config.experiment import Experiment
from qdsweep.records.paths import RunDir, SweepDir
from qdsweep.records.status import Status, read_status

_RUN = RunDir(Path())
_STALE = -1.0
"""In place of the time of a run's summary: a published file has another size."""
_TICK = 2_000_000_000
"""Two changes of a folder within this time may have the same time [ns]."""
_SAME = tuple(path.name for path in (_RUN.metrics, _RUN.archive, _RUN.summary))


class Settled(NamedTuple):
    """The finished runs of a sweep that need no job, and those that need one.

    Attributes:
        whole: The runs whose published files are those in `state/` -> time of their summary [s].
        stale: The runs with a published file of another size, which is published again.
    """

    whole: Mapping[str, float] = MappingProxyType({})
    stale: frozenset[str] = frozenset()


def settled(
    runs: Mapping[str, Experiment], finished: Mapping[str, Status], sweep: SweepDir
) -> Settled:
    """Compares the published files of runs that have reached their budget with those in `state/`.

    A run without one of them, or with one that is older than its source, is in neither of
    them: it has a job, and Snakemake decides.

    Args:
        runs: Run id -> experiment.
        finished: The finished runs, from `read_finished`.
        sweep: The sweep's folder.
    """
    folder = str(sweep.results.runs)
    reached = [
        run
        for run, experiment in runs.items()
        if run in finished and finished[run].has_reached(experiment.budget)
    ]
    if not reached:
        return Settled()
    from qdsweep.records.index import Index

    seen: dict[str, float | None] = {}
    before = time.time_ns() - _TICK

    def read(run: str) -> float | None:
        changed = _changes(f"{folder}/{run}")
        seen[run], is_linked = _published(f"{folder}/{run}")
        return seen[run] if is_linked and changed and max(changed[:2]) < before else None

    index = Index[float](sweep.published, [1], lambda when: when, lambda when, _: when)
    times = (
        index.update(reached, lambda run: _changes(f"{folder}/{run}"), lambda new: map(read, new))
        | seen
    )
    stale = frozenset(run for run, when in times.items() if when == _STALE)
    whole = {run: when for run, when in times.items() if when is not None and when >= 0}
    return Settled(whole, stale)


def _changes(run: str) -> list[int] | None:
    """Returns the times of the last change of a run's folders and summary; None without one."""
    stat = os.stat
    try:
        folders = [stat(folder).st_ctime_ns for folder in (run, f"{run}/state")]
        return [*folders, stat(f"{run}/{_RUN.summary.name}").st_mtime_ns]
    except OSError:
        return None


def _published(run: str) -> tuple[float | None, bool]:
    """Returns the time of a run's summary, if all published files are those of `state/` [s].

    A hard link has the inode of its file, which a listing contains: no file is opened.

    Returns:
        The time, `_STALE` if a file has another size, None where that is unknown. Whether all
        are hard links, so that it holds until a name in the folders changes.
    """
    try:
        here, state = ({file.name: file for file in os.scandir(at)} for at in (run, f"{run}/state"))
        pairs = [(here[name], state[name]) for name in _SAME]
        newest = max(name for name in state if name.startswith("reload-"))
        pairs.append((here[_RUN.reload.name], state[newest]))
        copies = [
            (file.stat(), other.stat()) for file, other in pairs if file.inode() != other.inode()
        ]
        # A changed list of metrics rewrites the one in state/, and the published one stays.
        config = here[_RUN.config.name]
        is_linked = config.inode() == state[config.name].inode()
        if not is_linked and not config.stat().st_size:
            return _STALE, False
        when = here[_RUN.summary.name].stat().st_mtime
    except (OSError, KeyError, ValueError):  # a file is missing
        return None, False
    if any(file.st_size != other.st_size for file, other in copies):
        return _STALE, False
    if any(file.st_mtime < other.st_mtime for file, other in copies):
        return None, False
    return when, is_linked and not copies


def launch_budget(budget: Mapping[str, int], run_dir: RunDir) -> str:
    """Returns the budget of a run as `launch` takes it: a larger one extends the run.

    If a run has finished with a larger budget, for another sweep or an earlier version of this
    one, it keeps that budget, so that nothing has changed for Snakemake.

    Args:
        budget: Of the sweep, as `Experiment.budget` has it.
        run_dir: The run's folder.
    """
    ((unit, amount),) = budget.items()
    status = read_status(run_dir.state)
    if status.status == "finished":
        amount = max(amount, status.budget.get(unit, 0))
    return f"{unit}={amount}"
