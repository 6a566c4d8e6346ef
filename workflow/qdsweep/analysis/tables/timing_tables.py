"""The tables of time: seconds of each phase, and how many workers a run can use."""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.analysis.labels import read_called
from qdsweep.analysis.plan import read_plan
from qdsweep.analysis.selection import read_tables
from qdsweep.analysis.tables.run_times import (
    PHASES,
    SHORTEST,
    TIMES,
    group_times,
    run_times,
    worker_table,
)
from qdsweep.analysis.tables.sheet import Cell, Sheet, number_cell, text_cell, write_sheet
from qdsweep.analysis.text import common_decimals, mean_and_error, number, short
from qdsweep.scaling.amdahl import WORTHWHILE

if TYPE_CHECKING:
    import pandas as pd

_TITLES = {
    **{phase: f"{phase.capitalize()} (s)" for phase in PHASES},
    "wall": "Wall time (s)",
    "core_seconds": "Core-seconds",
    "rest": "Rest (s)",
    "start_up": "Start-up (s)",
}


def write_timing(sweep_dir: Path, runs_dir: Path) -> None:
    """Writes tables/timing (seconds of each phase) and tables/workers (what more would bring).

    Args:
        sweep_dir: `results/sweeps/NAME`, with the tables of `aggregate`.
        runs_dir: `results/runs`.
    """
    runs = run_times(read_tables(sweep_dir), runs_dir)
    groups, workers = group_times(runs), worker_table(runs, node_cores())
    called = read_called(sweep_dir, read_plan(sweep_dir))
    sheet = workers_sheet(called.dressed(workers), node_cores())
    write_sheet(sweep_dir / "tables", timing_sheet(called.dressed(groups)), groups)
    write_sheet(sweep_dir / "tables", sheet, workers)


def node_cores() -> int:
    """The cores of a node, for node-hours: those of this machine."""
    return os.cpu_count() or 1


def timing_sheet(groups: "pd.DataFrame") -> Sheet:
    """Seconds of each phase, from `group_times`."""
    texts = {}
    for name in TIMES:
        means = groups[f"{name}_mean"]
        errors = groups["wall_se"] if name == "wall" else [math.nan] * len(means)
        decimals = min(common_decimals(means, errors), 3)
        texts[name] = [mean_and_error(m, e, decimals) for m, e in zip(means, errors, strict=True)]
    rows = [
        [text_cell(row["group"]), number_cell(str(row["runs"]), row["runs"]), _workers_cell(row)]
        + [number_cell(texts[name][i], row[f"{name}_mean"]) for name in TIMES]
        for i, row in enumerate(groups.to_dict("records"))
    ]
    return Sheet(
        name="timing",
        title="Where the time goes",
        note=(
            "Means over the n runs of a group, up to their budget; wall time ± standard error."
            " Wall time: all iterations, the sum of ask, evaluate, tell and reload files."
            " Core-seconds: wall time times workers. Rest: what a run does between its iterations"
            " (metrics, log, last save; on several nodes also waiting for workers), 0 where it is"
            " below the whole seconds that start and end are stamped with. Start-up: from the"
            " start of the process to its first evaluation."
        ),
        columns=["group", "n", "Workers", *(_TITLES[name] for name in TIMES)],
        text=1,
        rows=rows,
    )


def workers_sheet(table: "pd.DataFrame", cores: int) -> Sheet:
    """How many workers a run can use, from `worker_table`."""
    return Sheet(
        name="workers",
        title="How many workers a run can use",
        note=(
            "Serial: what workers cannot share (ask, tell, reload files, rest), as a part of the"
            " time with one worker, from the second iteration on; at most, as a rest that is below"
            " the whole seconds of its stamps counts as one. Efficiency: speed-up over one"
            " worker, divided by the number of workers, at the number that the runs had; above one"
            " worker it is an upper bound that takes all workers to be busy while solutions are"
            " evaluated (`qdsweep scale` measures it). Recommended: the largest number of workers"
            f" with an efficiency of at least {WORTHWHILE:.0%} by Amdahl's law, at most one for"
            f" each solution of an iteration{_untold(table)}. Speed-up, wall time of a run and"
            " node-hours of all runs are what Amdahl's law says of that number"
            + (
                f": {short(table['node_hours'].sum(), 3)} node-hours in all, on nodes of {cores}"
                " cores."
                if table["node_hours"].notna().all()
                else f", on nodes of {cores} cores."
            )
        ),
        columns=[
            "group", "Workers", "Serial (%)", "Efficiency (%)",
            "Recommended workers", "Speed-up", "Wall time (s)", "Node-hours",
        ],
        text=1,
        rows=[_workers_row(row) for row in table.to_dict("records")],
    )  # fmt: skip


def _untold(table: "pd.DataFrame") -> str:
    if table["recommended"].notna().all():
        return ""
    return f"; it cannot be told (\u2013) from runs of less than {SHORTEST:g} s"


def _workers_row(row: dict[str, Any]) -> list[Cell]:
    return [
        text_cell(row["group"]),
        _workers_cell(row),
        number_cell(short(100 * row["serial"], 3), row["serial"]),
        number_cell(number(100 * row["efficiency"], 1), row["efficiency"]),
        number_cell(number(row["recommended"]), row["recommended"]),
        number_cell(number(row["speedup"], 1), row["speedup"]),
        number_cell(short(row["seconds"], 3), row["seconds"]),
        number_cell(short(row["node_hours"], 3), row["node_hours"]),
    ]


def _workers_cell(row: dict[str, Any]) -> Cell:
    return number_cell(row["workers"].replace("-", "\u2013"), float(row["workers"].split("-")[0]))
