"""The files of a search that a start rebuilds: edited, truncated, or of other runs or code."""

import json
import pathlib
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from qdsweep.errors import BadInput
from qdsweep.records.paths import Results
from qdsweep.records.search_files import decision_path, is_whole, markers_in, read_sealed
from qdsweep.records.status import is_too_short
from qdsweep.search.search_plan import Candidate, SearchPlan

_EDITED = "it was edited or truncated"


def spoiled(
    name: str,
    plan: SearchPlan,
    results: Results,
    code: Mapping[str, str] = MappingProxyType({}),
    again: Collection[str] = (),
) -> dict[str, str]:
    """Returns the files of a search that must be rebuilt, and the reasons.

    Args:
        name: The sweep's name.
        plan: The plan of the search.
        results: The folder results/.
        code: The current code of the user's metrics; see `sources_of`.
        again: Runs that are computed again.

    Returns:
        Path -> reason.
    """
    sweep = results.sweep(name)
    reasons = {}
    for level in plan.levels:
        for block in range(level.blocks):
            path = decision_path(sweep, level.name, block)
            if path.exists() and not is_whole(path):
                reasons[str(path)] = _EDITED
        for place, path in markers_in(sweep, level):
            is_known = level.kind == "known"
            candidate = plan.candidates[level.first + place] if is_known else None
            if reason := _spoiled_by(path, candidate, results, code, again):
                reasons[str(path)] = reason
    return reasons


def _is_of(marker: Mapping[str, Any], candidate: Candidate) -> bool:
    """Returns whether a marker has the values and runs of a candidate; .nan equals itself."""
    known, values = marker["values"], candidate.values
    return marker["runs"] == candidate.runs and (
        known == values or json.dumps(known, sort_keys=True) == json.dumps(values, sort_keys=True)
    )


def _spoiled_by(
    path: pathlib.Path,
    candidate: Candidate | None,
    results: Results,
    code: Mapping[str, str],
    again: Collection[str],
) -> str:
    """Returns the reason why a marker must be rebuilt; empty if it is valid.

    Args:
        path: The marker.
        candidate: The candidate of its place, if it is known before the search starts.
        results: The folder results/.
        code: The current code of the user's metrics.
        again: Runs that are computed again.
    """
    try:
        marker = read_sealed(path)
    except BadInput:
        return _EDITED
    if candidate is not None and not _is_of(marker, candidate):
        return "the sweep now has other values, seeds or code"
    if marker.get("sources", code) != code:
        return f"the code of {marker['metric']} has changed"
    run = results.run(str(marker["run"]))
    if run.name in again:
        return f"its run {run.name} is computed again"
    budget = {str(marker["unit"]): int(marker["budget"])}
    gone = not run.summary.exists() or is_too_short(run, budget)
    return f"its run {run.name} was removed or damaged" if marker["failed"] is None and gone else ""
