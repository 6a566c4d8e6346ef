"""What a search has found: the rows of the ordinary tables, of runs that used the whole budget."""

from pathlib import Path
from typing import Any

from qdsweep.config.experiment import BUDGETS
from qdsweep.config.values import typed
from qdsweep.errors import BadInput
from qdsweep.records.plan import read_plan
from qdsweep.records.search import marker_path, read_sealed, write_search_rows
from qdsweep.records.sweep_dir import SweepDir
from qdsweep.strategies.costs import whole_budget
from qdsweep.sweep.groups import CHANGES, MEMBER


def write_rows(sweep_dir: Path, runs_dir: Path) -> None:
    """Writes search.json: the runs of the last levels alone, as others stopped before.

    Raises:
        BadInput: A marker is missing or damaged, or all runs of the last levels failed.
    """
    sweep = SweepDir(sweep_dir)
    plan = read_plan(sweep)
    most = whole_budget(plan.levels)
    rows: dict[str, dict[str, Any]] = {}
    failures: dict[str, str] = {}
    for level in plan.levels:
        for place in range(level.places if level.budget == most else 0):
            for seed in level.seeds:
                marker = read_sealed(marker_path(sweep, level.name, place, seed))
                values = {**marker["values"], **({"seed": typed(seed)} if seed else {})}
                if level.kind == "exploited":
                    values = {MEMBER: marker["setting"], CHANGES: "", **values}
                budget = {unit: most if unit == plan.unit else None for unit in BUDGETS}
                rows[marker["run"]] = {"values": values, "id": marker["run"], **budget}
                if marker["failed"] is not None:
                    failures[marker["run"]] = marker["failed"]
    if len(failures) == len(rows):
        run, why = next(iter(failures.items()))
        raise BadInput(
            f"search: no run came to its end: {run}: {why} (all about it: "
            f"{sweep.results.run(run).state.failure}); with that mended, remove {sweep.search} to "
            "try all settings again"
        )
    write_search_rows(sweep, list(rows.values()))
