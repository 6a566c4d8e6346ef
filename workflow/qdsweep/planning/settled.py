"""Runs of a large sweep that need no job of Snakemake's: finished, and published as they are.

A job takes Snakemake milliseconds, and kilobytes, to find out that nothing is to be done. With
100,000 finished runs that was most of a start.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from qdsweep.config.experiment import Experiment
from qdsweep.records.run_dir import RunDir
from qdsweep.records.status import Status
from qdsweep.records.sweep_dir import Results

# Why Snakemake may run a job again so that a settled run's would not be.
_TRIGGERS = {"MTIME", "PARAMS", "INPUT"}

_RUN = RunDir(Path())
_SAME = tuple(path.name for path in (_RUN.metrics, _RUN.archive, _RUN.summary))


class Settled(NamedTuple):
    """What of a sweep's finished runs needs no job, and what needs one.

    Attributes:
        whole: The runs whose published files are those in `state/`.
        torn: Those with a published file of another size: it is to be published again.
    """

    whole: frozenset[str] = frozenset()
    torn: frozenset[str] = frozenset()


def settled(
    runs: Mapping[str, Experiment], finished: Mapping[str, Status], results: Results
) -> Settled:
    """Compares the published files of runs that have reached their budget with those in `state/`.

    A run that lacks one, or has one that is older than what it is of, is neither whole nor torn:
    it has a job, and Snakemake decides.

    Args:
        runs: Run id -> experiment.
        finished: What is known of finished runs, from `read_finished`.
        results: The folder results/.
    """
    found: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for run, experiment in runs.items():
        status = finished.get(run)
        if status is not None and status.has_reached(experiment.budget):
            found[_is_whole(f"{results.runs}/{run}")].append(run)
    return Settled(frozenset(found[True]), frozenset(found[False]))


def _is_whole(run: str) -> bool | None:
    """Returns whether all that a run publishes is as in `state/`; None where nobody can say.

    A second name of a file has its inode, which a listing tells: no file needs to be looked at.
    """
    try:
        here, state = ({one.name: one for one in os.scandir(at)} for at in (run, f"{run}/state"))
        pairs = [(here[name], state[name]) for name in _SAME]
        newest = max(name for name in state if name.startswith("reload-"))
        pairs.append((here[_RUN.reload.name], state[newest]))
        copies = [
            (one.stat(), other.stat()) for one, other in pairs if one.inode() != other.inode()
        ]
        # A changed list of metrics writes that in state/ anew, and the published one stays.
        config = here[_RUN.config.name]
        if config.inode() != state[config.name].inode() and not config.stat().st_size:
            return False
    except (OSError, KeyError, ValueError):  # one is missing
        return None
    if any(one.st_size != other.st_size for one, other in copies):
        return False
    return True if all(one.st_mtime >= other.st_mtime for one, other in copies) else None


def may_leave_out(workflow: Any, results: Results) -> bool:
    """Returns whether runs that are settled may be left out of Snakemake's DAG, once it is made.

    Not where the user asks for jobs by name or by force, and not for what only looks at jobs
    (`--summary`, `--report`, `--delete-all-output`, `--archive`), or touches their files.

    Args:
        workflow: Snakemake's.
        results: The folder results/.
    """
    asked = workflow.dag_settings
    if asked is None or workflow.executor_plugin is None or workflow.touch:
        return False
    chosen = (
        *(asked.forceall, asked.forcetargets, asked.forcerun, asked.until, asked.omit_from),
        *(asked.target_jobs, asked.allowed_rules, asked.batch),
        any(str(target).startswith(str(results.runs)) for target in asked.targets),
    )
    triggers = {trigger.name for trigger in asked.rerun_triggers}
    return not any(chosen) and triggers <= _TRIGGERS
