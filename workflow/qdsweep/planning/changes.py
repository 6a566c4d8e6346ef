"""What a change of the user's code costs: finished runs that are computed anew."""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.config.plugin import find_source, read_source
from qdsweep.errors import BadInput
from qdsweep.records.plan import read_plan
from qdsweep.records.sources import changed, kept_code, replaced
from qdsweep.records.status import read_status
from qdsweep.records.sweep_dir import Results
from qdsweep.sweep.ids import decisive
from qdsweep.sweep.runs import Sweep


class Change(NamedTuple):
    """Why a run that has not begun was finished once.

    Attributes:
        files: What has changed since.
        kept: The folder of the code as it was; None for runs of before 0.2, of which nobody kept
            it.
    """

    files: tuple[Path, ...]
    kept: Path | None


def find_changes(name: str, sweep: Sweep, confirming: Sweep, results: Results) -> dict[str, Change]:
    """Returns what of some runs was finished with other code of the user's.

    Args:
        name: The sweep's name.
        sweep: Its runs.
        confirming: The runs that confirm it.
        results: The folder results/.
    """
    code = functools.cache(read_source)
    found = {}
    before: dict[str, str] | None = None
    for run, experiment in (sweep.runs | confirming.runs).items():
        targets = tuple(experiment.plugins)
        if not targets or read_status(results.run(run).state).status:
            continue
        kept = replaced(experiment, results, code)
        if kept is not None:
            found[run] = Change(_files(targets, kept), kept)
            continue
        before = _before(name, sweep, results) if before is None else before
        if run in before and _was_finished(before[run], experiment, results):
            found[run] = Change(_files(targets, None), None)
    return found


@functools.lru_cache  # for each run of a sweep
def _files(targets: tuple[str, ...], kept: Path | None) -> tuple[Path, ...]:
    """Returns the files whose code has changed since; all of them where nobody knows."""
    then = kept_code(kept, targets) if kept else None
    others = changed(targets, read_source, then) if then else targets
    return tuple(sorted({find_source(target) for target in others}))


def _before(name: str, sweep: Sweep, results: Results) -> dict[str, str]:
    """Returns run id -> the id that a row of the same values had at the last start."""
    try:
        rows = read_plan(results.sweep(name)).computed
    except BadInput:
        return {}
    ids = {_key(row.typed): row.run for row in rows}
    now = {row.id: ids.get(_key(row.values), row.id) for row in sweep.rows}
    return {run: before for run, before in now.items() if before != run}


def _key(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True)


def _was_finished(run: str, experiment: Experiment, results: Results) -> bool:
    """Returns whether a run is finished, and was of this experiment but for the user's code."""
    folder = results.run(run)
    if read_status(folder.state).status != "finished":
        return False
    try:
        other = compose(str(folder.state.config))
    except BadInput:
        return False
    return decisive(other, lambda _: "") == decisive(experiment, lambda _: "")
