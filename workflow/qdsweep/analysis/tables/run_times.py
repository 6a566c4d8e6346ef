"""Where the time of a sweep's runs went, and what more workers would bring."""

import csv
import itertools
import math
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.files import read_json
from qdsweep.analysis.partial import results_of
from qdsweep.analysis.selection import Tables
from qdsweep.scaling.amdahl import efficiency, recommended_workers, speedup

if TYPE_CHECKING:
    import pandas as pd

PHASES = ("ask", "evaluate", "tell", "reload")
TIMES = (*PHASES, "wall", "core_seconds", "rest", "start_up")
# Of a shorter run, the second that its stamps leave open is a tenth and more [s].
SHORTEST = 10.0


def run_times(tables: Tables, runs_dir: Path) -> "pd.DataFrame":
    """Reads where the time of each run went, up to its row's budget.

    Args:
        tables: The sweep's tables.
        runs_dir: `results/runs`.

    Returns:
        A row a run and group: group, id, workers, batch (solutions an iteration), seconds of each
        phase, wall (their sum), core_seconds, rest (seconds between the iterations) and start_up
        (mean seconds from the start of a process to its first evaluation). `serial` are seconds
        that workers cannot share, at most (a rest of 0 may be a second of each attempt), `work`
        seconds of evaluation with one worker, both after the first iteration, which also starts
        workers and compiles.
    """
    import pandas as pd

    done = tables.with_results.drop_duplicates(["group", "id"])
    return pd.DataFrame([_run_time(row, runs_dir) for row in done.to_dict("records")])


def _run_time(row: dict[str, Any], runs_dir: Path) -> dict[str, Any]:
    folder = results_of(runs_dir / row["id"])
    summary = read_json(folder / "summary.json", "Run `snakemake` again to make it.")
    attempts = summary.get("attempts", [])
    seconds = {phase: float(row[f"seconds_{phase}"]) for phase in PHASES}
    wall = sum(seconds.values())
    whole = summary.get("timings", {}).get("total") or wall
    # A run that went further than its row's budget: in proportion.
    rest = _rest(attempts, whole) * (wall / whole if whole else 1.0)
    first, batch = _beginning(folder / "metrics.csv")
    if row["iteration"] == 1:  # there is nothing else
        first = dict.fromkeys(PHASES, 0.0)
    steady = {phase: seconds[phase] - first[phase] for phase in PHASES}
    workers = max(1, int(row["workers"]))
    starts = [a["first_evaluation"] for a in attempts if "first_evaluation" in a]
    return {
        "group": row["group"],
        "id": row["id"],
        "workers": workers,
        "batch": batch,
        **seconds,
        "wall": wall,
        "core_seconds": float(row["core_seconds"]),
        "rest": rest,
        "start_up": sum(starts) / len(starts) if starts else math.nan,
        "serial": steady["ask"]
        + steady["tell"]
        + steady["reload"]
        + (rest or max(1, len(attempts))),
        "work": steady["evaluate"] * workers,
    }


def _rest(attempts: list[dict[str, Any]], in_iterations: float) -> float:
    """Seconds between the iterations: log, metrics, last save; on several nodes also the wait.

    Attempts are stamped in whole seconds, so less than one for each is not told from nothing.
    Where an attempt ended without a word, nothing is known.
    """
    if not attempts or not all({"started", "ended"} <= attempt.keys() for attempt in attempts):
        return 0.0
    spans = [
        datetime.fromisoformat(attempt["ended"]) - datetime.fromisoformat(attempt["started"])
        for attempt in attempts
    ]
    rest = sum(span.total_seconds() for span in spans) - in_iterations
    return rest if rest >= len(attempts) else 0.0


def _beginning(metrics: Path) -> tuple[dict[str, float], int]:
    """Seconds of each phase of the first iteration, and the solutions of the second.

    The first may have others: the initial solutions of MAP-Elites.
    """
    with metrics.open(encoding="utf-8", newline="") as file:
        first, *more = itertools.islice(csv.DictReader(file), 2)
    batch = int(first["evaluations"])
    if more:
        batch = int(more[0]["evaluations"]) - batch
    return {phase: float(first[f"seconds_{phase}"]) for phase in PHASES}, batch


def group_times(runs: "pd.DataFrame") -> "pd.DataFrame":
    """Means of each group over its runs, and standard errors.

    Args:
        runs: From `run_times`.

    Returns:
        A row a group, in the sweep's order: group, runs, workers, and NAME_mean and NAME_se of
        each of `TIMES`.
    """
    grouped = runs.groupby("group", sort=False)
    table = grouped.agg(runs=("id", "size"), workers=("workers", _span))
    for name in TIMES:
        table[f"{name}_mean"] = grouped[name].mean()
        table[f"{name}_se"] = grouped[name].sem()
    return table.reset_index()


def worker_table(runs: "pd.DataFrame", cores: int) -> "pd.DataFrame":
    """What more workers would bring to each group, by Amdahl's law.

    Args:
        runs: From `run_times`.
        cores: Cores of a node.

    Returns:
        A row a group: group, runs, workers, serial (fraction of the time with one worker),
        efficiency at that number of workers, batch (solutions an iteration), recommended
        (workers), and for that number speedup, seconds of a run, node_hours of all runs; these are
        nan where the runs are shorter than `SHORTEST`.
    """
    import pandas as pd

    rows = []
    for group, members in runs.groupby("group", sort=False):
        serial = members["serial"].sum() / (members["serial"] + members["work"]).sum()
        batch = int(members["batch"].min())
        told = members["wall"].mean() >= SHORTEST
        recommended = recommended_workers(serial, batch) if told else math.nan
        evaluate = members["evaluate"]
        one_worker = members["wall"] - evaluate + members["rest"] + evaluate * members["workers"]
        seconds = one_worker / speedup(serial, recommended)
        rows.append(
            {
                "group": group,
                "runs": len(members),
                "workers": _span(members["workers"]),
                "serial": serial,
                "efficiency": np.mean(efficiency(serial, members["workers"].to_numpy(float))),
                "batch": batch,
                "recommended": recommended,
                "speedup": speedup(serial, recommended),
                "seconds": seconds.mean(),
                "node_hours": seconds.sum(skipna=False) * recommended / cores / 3600,
            }
        )
    return pd.DataFrame(rows)


def _span(values: "pd.Series") -> str:
    """`4`, or `1-4` where runs differ."""
    low, high = values.min(), values.max()
    return str(low) if low == high else f"{low}-{high}"
