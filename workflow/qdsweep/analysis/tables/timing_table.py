"""The table of time: seconds of each phase."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from qdsweep.analysis.legend import group_names
from qdsweep.analysis.selection import read_tables
from qdsweep.analysis.sheet import Sheet, number_cell, text_cell, write_sheet
from qdsweep.analysis.statistics import MEAN_TEXT, half_width
from qdsweep.analysis.timing import OWN, TIME_NAMES, busy_note, group_times, run_times
from qdsweep.metrics import PHASES
from qdsweep.records.paths import SweepDir
from qdsweep.text import common_decimals, mean_and_error

if TYPE_CHECKING:
    import pandas as pd

_TITLES = {
    **{phase: f"{phase.capitalize()} (s)" for phase in PHASES},
    OWN: "Own metrics (s)",
    "wall": "Wall time (s)",
    "core_seconds": "Core-seconds",
    "compile": "Compilation (s)",
    "reload": "Reload files (s)",
    "rest": "Other (s)",
    "start_up": "Start-up (s)",
}


def write_timing(sweep_dir: Path, runs_dir: Path) -> None:
    """Writes tables/timing: seconds of each phase."""
    sweep = SweepDir(sweep_dir)
    tables = read_tables(sweep_dir)
    runs = run_times(tables, runs_dir)
    groups = group_times(runs)
    called = group_names(tables.plan)
    sheet = timing_sheet(called.dressed(groups), list(runs["load"]))
    write_sheet(sweep.tables, sheet, groups)
    for old in sweep.tables.glob("workers.*"):  # written by an earlier version
        old.unlink(missing_ok=True)


def timing_sheet(groups: "pd.DataFrame", loads: Sequence[float]) -> Sheet:
    """Seconds of each phase, from `group_times`, and whether the runs had the machine."""
    texts = {}
    names = [name for name in TIME_NAMES if f"{name}_mean" in groups]
    for name in names:
        means = groups[f"{name}_mean"]
        errors = groups["wall_se"] if name == "wall" else np.full(len(means), math.nan)
        decimals = min(common_decimals(means, errors), 3)
        halves = half_width(errors, groups["runs"])
        texts[name] = [mean_and_error(m, h, decimals) for m, h in zip(means, halves, strict=True)]
    rows = [
        [
            text_cell(row["group"]),
            number_cell(str(row["runs"]), row["runs"]),
            number_cell(row["workers"].replace("-", "\u2013"), float(row["workers"].split("-")[0])),
            *(number_cell(texts[name][i], row[f"{name}_mean"]) for name in names),
        ]
        for i, row in enumerate(groups.to_dict("records"))
    ]
    return Sheet(
        name="timing",
        title="Seconds of each phase",
        note=(
            f"Mean seconds of a run, up to its budget. Wall time ({MEAN_TEXT}): all iterations, the"
            " sum of ask, evaluate, tell"
            f"{', reload files and own metrics' if OWN in names else ' and reload files'}."
            " Core-seconds: wall time times workers. Compilation: by numba, in the first iteration"
            " of a process that does not share the sweep's start-up. In runs of earlier releases it"
            " is part of ask and tell. Other: time between iterations (metrics, log, final save; on"
            " several nodes also waiting for workers). It can be 0, because start and end are"
            " stored in whole seconds. Start-up: from the start of the process to its first"
            f" evaluation, without compilation.{busy_note(loads)}"
        ),
        columns=["Group", "Seeds", "Workers", *(_TITLES[name] for name in names)],
        text=1,
        rows=rows,
    )
