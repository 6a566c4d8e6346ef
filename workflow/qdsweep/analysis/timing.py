"""The time of a sweep's runs and groups: seconds of each phase."""

import math
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.analysis.selection import SweepTables
from qdsweep.host.machine import BUSY_LOAD
from qdsweep.metrics import COMPILE, PHASES
from qdsweep.records.paths import RunDir
from qdsweep.records.results import read_summary
from qdsweep.text import plural

if TYPE_CHECKING:
    import pandas as pd


OWN = "metrics"  # of the user's
TIME_NAMES = (*PHASES, OWN, "wall", "core_seconds", "compile", "rest", "start_up")


def run_times(tables: SweepTables, runs_dir: Path) -> "pd.DataFrame":
    """Reads the times of each run, up to its row's budget.

    Returns:
        A row for each run in a group: group, id, workers, seconds of each phase and of the user's
        metrics, wall (their sum), core_seconds, compile, rest, start_up and load. `rest` is the
        time between iterations [s]. `start_up` is the mean time from the start of a process to its
        first evaluation, without compilation [s]. `load` is the number of processes per core.
    """
    import pandas as pd

    done = tables.with_results.drop_duplicates(["group", "id"])
    done = done[done["wall_seconds"].notna()]  # unknown for imported runs
    return pd.DataFrame([_run_time(row, runs_dir) for row in done.to_dict("records")])


def _run_time(row: dict[str, Any], runs_dir: Path) -> dict[str, Any]:
    files = RunDir(runs_dir / row["id"]).results
    summary = read_summary(files)
    attempts = summary.get("attempts", [])
    seconds = {phase: float(row[f"seconds_{phase}"]) for phase in PHASES}
    wall = float(row["wall_seconds"])
    own = wall - sum(seconds.values())
    timings = {"compile": 0.0, **summary.get("timings", {})}
    whole = (timings.get("total") or wall + timings["compile"]) - timings["compile"]
    # Of a run that went beyond its row's budget, a share is counted.
    rest = _rest(attempts, whole + timings["compile"]) * (wall / whole if whole else 1.0)
    starts = [a["first_evaluation"] for a in attempts if "first_evaluation" in a]
    return {
        "group": row["group"],
        "id": row["id"],
        "workers": max(1, int(row["workers"])),
        **seconds,
        OWN: own if own > 1e-9 * wall else 0.0,
        "wall": wall,
        "core_seconds": float(row["core_seconds"]),
        "compile": float(row.get(COMPILE, 0.0)),
        "rest": rest,
        "start_up": sum(starts) / len(starts) if starts else math.nan,
        "load": largest_load(attempts),
    }


def largest_load(attempts: list[dict[str, Any]]) -> float:
    """Returns the largest load of attempts; 0 where an earlier version did not look."""
    return max((attempt.get("load", 0.0) for attempt in attempts), default=0.0)


def busy_note(loads: Sequence[float]) -> str:
    """Returns a warning about runs of these loads, for a note; empty if none shared a machine."""
    busy = [load for load in loads if load > BUSY_LOAD]
    if not busy:
        return ""
    return (
        f" Of {plural(len(loads), 'run')}, {len(busy)} shared the machine with other processes, up"
        f" to {max(busy):.1f} per core, so these times are too long."
    )


def _rest(attempts: list[dict[str, Any]], known: float) -> float:
    """Seconds between the iterations: log, metrics, final save; on several nodes also the wait.

    Start and end are stored in whole seconds, so less than one second per attempt counts as 0.
    If an attempt was killed, they are unknown and count as 0.
    """
    if not attempts or not all({"started", "ended"} <= attempt.keys() for attempt in attempts):
        return 0.0
    spans = [
        datetime.fromisoformat(attempt["ended"]) - datetime.fromisoformat(attempt["started"])
        for attempt in attempts
    ]
    rest = sum(span.total_seconds() for span in spans) - known
    return rest if rest >= len(attempts) else 0.0


def group_times(runs: "pd.DataFrame") -> "pd.DataFrame":
    """Returns means of each group over its runs, from `run_times`, and standard errors.

    A row for each group, in the sweep's order: group, runs, workers, NAME_mean and NAME_se of each
    of `TIMES`; metrics only where the user has some.
    """
    grouped = runs.groupby("group", sort=False)
    table = grouped.agg(runs=("id", "size"), workers=("workers", _span))
    for name in (name for name in TIME_NAMES if name != OWN or runs[OWN].any()):
        table[f"{name}_mean"] = grouped[name].mean()
        table[f"{name}_se"] = grouped[name].sem()
    return table.reset_index()


def _span(values: "pd.Series") -> str:
    """Returns `4`, or `1-4` where runs differ."""
    low, high = values.min(), values.max()
    return str(low) if low == high else f"{low}-{high}"
