"""The stage aggregate: runs.tsv, summary.csv, table.*, curves.csv and tables/ of a sweep."""

import csv
import functools
import math
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.columns import column_names, tabled
from qdsweep.analysis.legend import group_names
from qdsweep.analysis.noise import COLUMN as NOISE
from qdsweep.analysis.noise import most_uncertain, tested_scales, with_noise
from qdsweep.analysis.selection import score_scales_of
from qdsweep.analysis.sheet import write_sheet
from qdsweep.analysis.statistics import OF_SEEDS, mean_of, standard_error
from qdsweep.analysis.tables.comparisons import write_comparisons, write_factors
from qdsweep.analysis.tables.group_table import (
    accepted_note,
    first_batch_note,
    first_policies,
    group_sheet,
    group_table,
)
from qdsweep.analysis.tables.over_tasks import scores_by_task, write_over_tasks
from qdsweep.analysis.tables.run_table import (
    Codes,
    Curve,
    Result,
    common_grid,
    current_code,
    key_of,
    read_results,
    result_index,
)
from qdsweep.analysis.tables.timing_table import write_timing
from qdsweep.config.experiment import BUDGETS
from qdsweep.config.sweep import Reevaluate
from qdsweep.errors import BadInput, QdsweepError
from qdsweep.features import modules
from qdsweep.files import atomic, write_csv
from qdsweep.host.process import die_with_parent
from qdsweep.metrics import (
    OF_REEVALUATION,
    OTHER_CODE,
    PLACES,
    RECORDED,
    RESULTS,
    Metric,
    curves_of,
)
from qdsweep.records.dependencies import ACCEPTED, OUTDATED, WAYS_BACK
from qdsweep.records.paths import RunDir, RunFiles, SweepDir
from qdsweep.records.plan import Plan, PlannedRow, read_plan
from qdsweep.text import plural

if TYPE_CHECKING:
    import pandas as pd


_INTEGERS = (
    *(metric.name for metric in RECORDED if metric.whole),
    *("workers", "total_evaluations", "elites_below_range"),
)
_MISSING = Result({"status": "missing"}, None)

# Number of runs for each process that reads them; such a process takes a second to start.
_SHARE = 500
# Time between two lines on the progress [s].
_QUIET_SECONDS = 10.0

RunRows = tuple[RunFiles, list[PlannedRow]]


def aggregate(sweep_dir: Path, runs_dir: Path, *, partial: bool = False, cores: int = 1) -> None:
    """Writes the tables of a sweep.

    A row of the sweep is reported at its own budget, even if its run went further. A run that
    is missing or has not reached the budget keeps its row, without results, and enters no mean.
    Only runs whose files have changed since the last time are read, by at most `cores` processes.

    Raises:
        BadInput: There is no plan.json, it gives names to what the sweep does not have, or none of
            its runs has any result.
        QdsweepError: A process that reads runs was killed.
    """
    sweep = SweepDir(sweep_dir)
    plan = tabled(read_plan(sweep), sweep.results)
    names = group_names(plan)
    _write_runs(plan, sweep.runs)
    results = read_runs(plan, sweep, runs_dir, partial=partial, cores=cores)
    if plan.compare_at:
        plan = at_common_count(plan, results, plan.compare_at)
        results = read_runs(plan, sweep, runs_dir, partial=partial, cores=cores)
    if not any(result.curve for result in results):
        remedy = (
            f"Outdated: {plural(len(plan.outdated), 'run')}. {WAYS_BACK}"
            if plan.outdated
            else "Run `snakemake` to compute them."
        )
        raise BadInput(
            f"None of the {len(plan.rows)} rows of {sweep.plan} has reached its budget"
            f" in {runs_dir}: nothing to aggregate. {remedy}"
        )
    plan = noisy_plan(plan, results)
    summary = summary_of(plan, results)
    write_csv(summary, sweep.summary)
    curves, by_seed = _curves(plan, results, by_seed=plan.figures.band in OF_SEEDS)
    write_csv(curves, sweep.curves)
    if by_seed is None:
        sweep.seed_curves.unlink(missing_ok=True)
    else:
        write_csv(by_seed, sweep.seed_curves)
    table = group_table(plan, summary)
    table[NOISE] = table["group"].map(_noise_of_groups(plan, results))
    dressed = names.dressed_plan(plan), names.dressed(summary), names.dressed(table)
    sheet = group_sheet(*dressed)
    by_name = names.dressed(curves)
    pairs = zip(plan.rows, results, strict=True)
    note = accepted_note(row.run for row, of in pairs if ACCEPTED in of.record)
    note += first_policies(by_name)
    if plan.counted == "evaluations":
        note += first_batch_note(by_name, dressed[-1])
    sheet = replace(sheet, note=sheet.note + note)
    write_sheet(sweep_dir, sheet, table)
    score_scales = tested_scales(plan, score_scales_of(summary, names.names))
    write_factors(sweep_dir, plan, summary, score_scales, names)
    write_comparisons(sweep_dir, plan, summary, score_scales, names)
    write_over_tasks(
        sweep_dir, scores_by_task(plan, summary, score_scales), names.called, plan.rank
    )


def at_common_count(plan: Plan, results: list[Result], unit: str) -> Plan:
    """Returns a plan whose rows have the largest budget that all runs of their scale have reached.

    As with any budget, a run is taken at its first iteration that reaches it. External runs keep
    their only result.

    Args:
        plan: The plan.
        results: Those of its rows, at their own budgets.
        unit: evaluations or steps.

    Raises:
        BadInput: A run has not counted its environment steps.
    """
    reached: dict[str, float] = {}
    for row, result in zip(plan.rows, results, strict=True):
        if result.curve is not None and not row.imported:
            scale, last = result.record["scale"], float(result.curve.along(unit)[-1])
            if math.isnan(last):
                raise BadInput(
                    f"compare_at = {unit}: {row.run} has no number of environment steps. Set"
                    " compare_at: evaluations, or remove the key"
                )
            reached[scale] = min(reached.get(scale, last), last)
    rows = []
    for row, result in zip(plan.rows, results, strict=True):
        if result.curve is not None and not row.imported:
            count = int(reached[result.record["scale"]])
            budget: dict[str, Any] = dict.fromkeys(BUDGETS) | {unit: count}
            row = replace(row, **budget)
        rows.append(row)
    return replace(plan, rows=rows)


def _write_runs(plan: Plan, path: Path) -> None:
    used = {name for name in BUDGETS for row in plan.rows if getattr(row, name)}
    always = {"iterations", "evaluations"}  # readers of earlier releases' files expect them
    budgets = [name for name in BUDGETS if name in used | always and name not in plan.columns]
    with atomic(path, "w") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow([*plan.columns, "id", *budgets])
        for row in plan.rows:
            budget = [getattr(row, name) for name in budgets]
            writer.writerow([*row.values.values(), row.run, *budget])


def read_runs(
    plan: Plan, sweep: SweepDir, runs_dir: Path, *, partial: bool = False, cores: int = 1
) -> list[Result]:
    """Returns the result of every row; a run is read once, and only if its files have changed."""
    rows_of: dict[str, list[PlannedRow]] = {}
    for row in plan.rows:
        rows_of.setdefault(row.run, []).append(row)
    files = {run: RunDir(runs_dir / run).results for run in rows_of}
    codes = current_code(plan.own)
    results = result_index(sweep, plan.metrics).update(
        (run for run in rows_of if files[run].summary.exists()),
        lambda run: key_of(
            files[run], rows_of[run], partial=partial, codes=codes, again=plan.reevaluate
        ),
        lambda runs: _read_all(
            [(files[run], rows_of[run]) for run in runs], plan, partial, codes, cores
        ),
    )
    waiting = {run: iter(results_of_run) for run, results_of_run in results.items()}
    return [next(waiting[row.run]) if row.run in waiting else _MISSING for row in plan.rows]


def _read_all(
    sources: Sequence[RunRows],
    plan: Plan,
    partial: bool,
    codes: Codes,
    cores: int,
) -> Iterator[list[Result]]:
    """Yields the results of each run, and prints the progress to the terminal.

    The processes are no forks, because the lock of the stage has a thread.
    """
    read = functools.partial(_read, partial, plan.metrics, codes, plan.reevaluate)
    processes = min(cores, len(sources) // _SHARE)
    if processes < 2:
        yield from _announced(map(read, sources), len(sources))
        return
    context = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(processes, context, _begin, (os.getpid(),)) as pool:
            yield from _announced(pool.map(read, sources, chunksize=100), len(sources))
    except BrokenProcessPool:
        raise QdsweepError(
            "a process that reads runs was killed, perhaps because the memory was full; repeat the"
            " same command"
        ) from None


def _begin(parent: int) -> None:
    """Leaves Ctrl-C to the process of the stage, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(signal.SIGKILL, parent)


def _read(
    partial: bool,
    metrics: tuple[Metric, ...],
    codes: Codes,
    again: Reevaluate | None,
    source: RunRows,
) -> list[Result]:
    return read_results(*source, partial=partial, metrics=metrics, codes=codes, again=again)


def _announced(results: Iterator[list[Result]], total: int) -> Iterator[list[Result]]:
    printed = time.monotonic()
    for number, result in enumerate(results, 1):
        yield result
        if time.monotonic() - printed >= _QUIET_SECONDS:
            printed = time.monotonic()
            print(f"qdsweep: {number:,} of {total:,} runs are read", flush=True)


def summary_of(plan: Plan, results: list[Result]) -> "pd.DataFrame":
    """Returns summary.csv: a row for each row of the plan, with its result."""
    import pandas as pd

    names = column_names(plan)
    # Every row has all columns, even one without results.
    own = (metric.name for metric in plan.own)
    other = [OTHER_CODE] if any(OTHER_CODE in result.record for result in results) else []
    again = OF_REEVALUATION if plan.reevaluate else ()
    columns = [*names.values(), "id", *RESULTS, *again, *own, *other, "group"]
    records = []
    for row, result in zip(plan.rows, results, strict=True):
        swept = {names[name]: value for name, value in row.values.items()}
        record = {**swept, "id": row.run, **result.record, "group": row.group}
        if row.run in plan.outdated:
            record["status"] = OUTDATED
        records.append({name: record.get(name) for name in columns})
    # Nullable integers: otherwise a row without results turns its column into floats.
    return pd.DataFrame(records).astype(dict.fromkeys(_INTEGERS, "Int64"))


def noisy_plan(plan: Plan, results: list[Result]) -> Plan:
    """Returns the plan that ranks by what is known of the noise of its runs."""
    records = [result.record for result in results if NOISE in result.record]
    return with_noise(plan, [(record["scale"], record[NOISE]) for record in records])


def _noise_of_groups(plan: Plan, results: list[Result]) -> dict[str, str]:
    words: dict[str, list[str]] = {}
    for row, result in zip(plan.rows, results, strict=True):
        if NOISE in result.record:
            words.setdefault(row.group, []).append(result.record[NOISE])
    return {group: most_uncertain(several) for group, several in words.items()}


def _curves(
    plan: Plan, results: list[Result], *, by_seed: bool
) -> tuple["pd.DataFrame", "pd.DataFrame | None"]:
    """Returns mean and standard error of each group on its own grid; where `by_seed`, its runs.

    The grid counts the unit of the budget, evaluations or environment steps, so runs are compared
    at equal cost. The table has the mean of the other count.
    A row of the second table is a run there; a run that is in a group twice counts once.
    """
    import pandas as pd

    names = column_names(plan)
    by_group: dict[str, dict[str, Curve]] = {}
    for row, result in zip(plan.rows, results, strict=True):
        if result.curve is not None:
            by_group.setdefault(row.group, {}).setdefault(row.run, result.curve)
    tables: list[pd.DataFrame] = []
    runs: list[pd.DataFrame] = []
    over = plan.counted
    for group, rows in plan.groups.items():
        members = list(by_group.get(group, {}).values())
        if not members:
            continue
        grid = common_grid(members, over)
        drawn = [metric.name for metric in curves_of(plan.metrics)]
        own = {
            run: curve.at(grid, over, ("evaluations", *drawn, *PLACES)) | {over: grid}
            for run, curve in by_group[group].items()
        }
        of_all = {name: np.stack([run[name] for run in own.values()]) for name in (*drawn, *PLACES)}
        columns: dict[str, Any] = {"group": group}
        columns.update({names[name]: rows[0].values[name] for name in plan.group_columns})
        columns["evaluations"] = grid
        if over != "evaluations":
            columns["evaluations"] = mean_of(np.array([run["evaluations"] for run in own.values()]))
        columns["n"] = len(members)
        for name in drawn:
            columns[f"{name}_mean"] = mean_of(of_all[name])
            columns[f"{name}_se"] = standard_error(of_all[name])
        # Wall time since the start, without pauses between attempts [s].
        for name in PLACES:
            columns[f"{name}_mean"] = mean_of(of_all[name])
        if by_seed:
            seeds = [{"group": group, "id": run, **values} for run, values in own.items()]
            runs += map(pd.DataFrame, seeds)
        tables.append(pd.DataFrame(columns))
    every = pd.concat(runs, ignore_index=True) if by_seed else None
    return pd.concat(tables, ignore_index=True), every


def write_tables(sweep_dir: Path, runs_dir: Path, *, partial: bool = False, cores: int = 1) -> None:
    """Collects the runs of a sweep into tables.

    Args:
        sweep_dir: The sweep's folder.
        runs_dir: The folder of all runs.
        partial: Also of those that are not finished.
        cores: How many processes may read the runs of a large sweep.

    Raises:
        BadInput: A file is missing or damaged, or there is no run.
        QdsweepError: A process that reads runs was killed.
    """
    if partial:
        _take_snapshots(sweep_dir, runs_dir)
    aggregate(sweep_dir, runs_dir, partial=partial, cores=cores)
    write_timing(sweep_dir, runs_dir)
    for feature in modules("tables"):
        feature.write_tables(sweep_dir)


def _take_snapshots(sweep_dir: Path, runs_dir: Path) -> None:
    """Takes a snapshot of each unfinished run of a sweep and prints those without results."""
    from qdsweep.runs.snapshot import snapshot

    for run in dict.fromkeys(row.run for row in read_plan(SweepDir(sweep_dir)).rows):
        folder = RunDir(runs_dir / run)
        if folder.summary.exists():
            continue
        taken = snapshot(folder.path)
        print(f"{run}: {'not finished, taken as it is' if taken else 'missing, nothing saved yet'}")
