"""What a change of the user's code costs: finished runs that are computed anew."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from qdsweep.config.experiment import Experiment
from qdsweep.config.plugin import find_source, read_source
from qdsweep.records.sources import changed, kept_code, replaced
from qdsweep.records.status import read_status
from qdsweep.records.sweep_dir import Results


class Change(NamedTuple):
    """Why a run that has not begun was finished once.

    Attributes:
        before: The finished run, of the code as it was.
        files: What has changed since.
        kept: The folder of the code as it was.
    """

    before: str
    files: tuple[Path, ...]
    kept: Path


def find_changes(runs: Mapping[str, Experiment], results: Results) -> dict[str, Change]:
    """Returns what of some runs was finished with other code of the user's.

    Args:
        runs: Run id -> experiment.
        results: The folder results/.
    """
    code = functools.cache(read_source)
    found = {}
    for run, experiment in runs.items():
        if not experiment.plugins or read_status(results.run(run).state).status:
            continue
        before = replaced(experiment, results, code)
        if before is not None:
            files = _files(tuple(experiment.plugins), before[1])
            found[run] = Change(before[0], files, before[1])
    return found


@functools.lru_cache  # for each run of a sweep
def _files(targets: tuple[str, ...], kept: Path) -> tuple[Path, ...]:
    then = kept_code(kept, targets)
    assert then is not None, "it has found a run"
    return tuple(sorted({find_source(target) for target in changed(targets, read_source, then)}))
