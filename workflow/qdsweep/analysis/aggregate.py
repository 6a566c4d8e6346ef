"""Run directories -> tables: runs.tsv, summary.csv, table.csv, table.md and curves.csv."""

import csv
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.files import read_json
from qdsweep.analysis.metrics import (
    CURVES,
    SECONDS,
    STATE,
    Curve,
    budget_row,
    common_grid,
    read_metrics,
    thin_curve,
)
from qdsweep.analysis.partial import results_of
from qdsweep.analysis.plan import BUDGETS, Plan, Row, read_plan
from qdsweep.analysis.scale import scale_of
from qdsweep.analysis.text import common_decimals, mean_and_error
from qdsweep.errors import BadInput
from qdsweep.files import atomic, write_text

if TYPE_CHECKING:
    import pandas as pd

# Metric of table.csv -> its heading in table.md and in the report.
METRICS = {
    "norm_qd_score": "Normalised QD score",
    "coverage_percent": "Coverage (%)",
    "obj_max": "Best objective",
    "qd_score": "QD score",
    "evaluations": "Evaluations",
    "core_seconds": "Core-seconds",
}
_OWN = ("id", "status", *STATE, *SECONDS, "core_seconds", "engine", "workers")
_INTEGERS = ("iteration", "evaluations", "num_elites", "restarts", "workers", "total_evaluations")
_LAST = ("total_evaluations", "group", "scale")


def aggregate(sweep_dir: Path, runs_dir: Path, *, partial: bool = False) -> None:
    """Writes the tables of a sweep.

    A row of the sweep is reported at its own budget, even if its run went further. A run that
    is missing or has not reached the budget keeps its row, without results, and enters no mean.

    Args:
        sweep_dir: `results/sweeps/NAME`, with the plan.json that the workflow wrote.
        runs_dir: `results/runs`.
        partial: Take a run that has not reached its budget at where it is.

    Raises:
        BadInput: There is no plan.json, or none of its runs has any result.
    """
    import pandas as pd

    plan = read_plan(sweep_dir)
    _write_runs(plan, sweep_dir / "runs.tsv")
    records, curves = _read_runs(plan, runs_dir, partial)
    if not any(curve is not None for curve in curves):
        raise BadInput(
            f"None of the {len(plan.rows)} rows of {sweep_dir / 'plan.json'} has reached its budget"
            f" in {runs_dir}: nothing to aggregate. Run `snakemake` to compute them."
        )
    # Nullable integers: a row without results must not turn its column into floats.
    summary = pd.DataFrame(records).astype(dict.fromkeys(_INTEGERS, "Int64"))
    _write_csv(summary, sweep_dir / "summary.csv")
    table = _table(plan, summary)
    _write_csv(table, sweep_dir / "table.csv")
    write_text(
        sweep_dir / "table.md",
        _markdown(plan, table, partial=(summary["status"] == "partial").any()),
    )
    _write_csv(_curves(plan, curves), sweep_dir / "curves.csv")


def column_names(plan: Plan) -> dict[str, str]:
    """Returns the swept names as columns of summary.csv: one that is taken gets `swept_`."""
    taken = {*_OWN, *_LAST}
    return {name: f"swept_{name}" if name in taken else name for name in plan.columns}


def _write_runs(plan: Plan, path: Path) -> None:
    budgets = [name for name in BUDGETS if name not in plan.columns]
    with atomic(path, "w") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow([*plan.columns, "id", *budgets])
        for row in plan.rows:
            budget = [getattr(row, name) for name in budgets]
            writer.writerow([*row.values.values(), row.run, *budget])


def _read_runs(
    plan: Plan, runs_dir: Path, partial: bool
) -> tuple[list[dict[str, Any]], list[Curve | None]]:
    """Returns a record and a thinned curve of every row, each run's files being read once."""
    names = column_names(plan)
    positions: dict[str, list[int]] = {}
    for position, row in enumerate(plan.rows):
        positions.setdefault(row.run, []).append(position)
    records: list[dict[str, Any]] = [{} for _ in plan.rows]
    curves: list[Curve | None] = [None for _ in plan.rows]
    for run, rows_of_run in positions.items():
        folder = results_of(runs_dir / run)
        results = _results(folder, [plan.rows[p] for p in rows_of_run], partial)
        for position, (result, curve) in zip(rows_of_run, results, strict=True):
            row = plan.rows[position]
            swept = {names[name]: value for name, value in row.values.items()}
            records[position] = {**swept, "id": run, **result, "group": row.group}
            curves[position] = curve
    # The columns of the first row are those of all, also if that row has no results.
    columns = [*names.values(), *_OWN, *_LAST]
    return [{name: record.get(name) for name in columns} for record in records], curves


def _results(
    run_dir: Path, rows: list[Row], partial: bool
) -> list[tuple[dict[str, Any], Curve | None]]:
    """Returns the results and the curve of one run at the budget of each of `rows`."""
    if not (run_dir / "summary.json").exists():
        return [({"status": "missing"}, None) for _ in rows]
    summary = read_json(run_dir / "summary.json", "Run `snakemake` again to make it.")
    metrics = read_metrics(run_dir, summary["archive"]["type"])
    about = {
        "status": summary["status"],
        "engine": summary["engine"],
        "workers": summary["workers"],
        "total_evaluations": summary["evaluations"],
        "scale": scale_of(run_dir, summary),
    }
    return [_result(metrics, row, about, partial) for row in rows]


def _result(
    metrics: "pd.DataFrame", row: Row, about: dict[str, Any], partial: bool
) -> tuple[dict[str, Any], Curve | None]:
    position, status = budget_row(metrics, row), "finished"
    if position is None:
        if not partial or metrics.empty:
            return {**about, "status": "unfinished"}, None
        position, status = len(metrics) - 1, "partial"
    seconds = metrics.loc[:position, list(SECONDS)].sum()
    cores = max(int(about["workers"] or 1), 1)
    result = {
        **about,
        "status": status,
        **{name: metrics[name].iat[position] for name in STATE},
        **seconds.to_dict(),
        "core_seconds": seconds.sum() * cores,
    }
    return result, thin_curve(metrics, position)


def mean_error_count(values: np.ndarray) -> tuple[float, float, int]:
    """Returns mean, standard error and number of the values that are there.

    The standard error of fewer than two values is unknown (nan), not 0.
    """
    values = values[np.isfinite(values)]
    n = len(values)
    if n == 0:
        return math.nan, math.nan, 0
    error = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return float(np.mean(values)), error, n


def _table(plan: Plan, summary: "pd.DataFrame") -> "pd.DataFrame":
    """Returns a row a group. A run that stands in a group twice counts once."""
    import pandas as pd

    names = column_names(plan)
    values = summary.assign(coverage_percent=summary["coverage"] * 100)
    records = []
    for group, rows in plan.groups.items():
        runs = values[values["group"] == group].drop_duplicates("id")
        record: dict[str, Any] = {"group": group}
        record.update({names[name]: rows[0].values[name] for name in plan.group_columns})
        record["runs"] = len(runs)
        for metric in METRICS:
            statistics = mean_error_count(runs[metric].to_numpy(float))
            for part, value in zip(("mean", "se", "n"), statistics, strict=True):
                record[f"{metric}_{part}"] = value
        records.append(record)
    return pd.DataFrame(records)


def _curves(plan: Plan, curves: list[Curve | None]) -> "pd.DataFrame":
    """Returns mean and standard error of each group on its own grid of evaluations."""
    import pandas as pd

    names = column_names(plan)
    by_group: dict[str, dict[str, Curve]] = {}
    for row, curve in zip(plan.rows, curves, strict=True):
        if curve is not None:
            by_group.setdefault(row.group, {}).setdefault(row.run, curve)
    tables = []
    for group, rows in plan.groups.items():
        members = list(by_group.get(group, {}).values())
        if not members:
            continue
        grid = common_grid(members)
        columns: dict[str, Any] = {"group": group}
        columns.update({names[name]: rows[0].values[name] for name in plan.group_columns})
        columns.update({"evaluations": grid, "n": len(members)})
        for name in CURVES:
            values = np.stack([curve.at(grid, name) for curve in members])
            columns[f"{name}_mean"] = values.mean(axis=0)
            spread = values.std(axis=0, ddof=1) if len(members) > 1 else np.full(len(grid), np.nan)
            columns[f"{name}_se"] = spread / math.sqrt(len(members))
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def _markdown(plan: Plan, table: "pd.DataFrame", *, partial: bool) -> str:
    """Returns the table of the groups as Markdown, mean ± standard error."""
    names = column_names(plan)
    groups = {name: names[name] for name in plan.group_columns} or {"group": "group"}
    shown = {metric: head for metric, head in METRICS.items() if table[f"{metric}_n"].any()}
    lines = [
        "| " + " | ".join([*groups, "n", *shown.values()]) + " |",
        "|" + "---|" * len(groups) + "---:|" * (1 + len(shown)),
    ]
    cells = {metric: format_metric(table, metric) for metric in shown}
    counts = table[[f"{metric}_n" for metric in METRICS]].max(axis=1)
    for position, row in enumerate(table.to_dict("records")):
        texts = [str(row[name]).replace("|", "\\|") for name in groups.values()]
        texts.append(str(counts.iat[position]))
        texts += [cells[metric][position] for metric in shown]
        lines.append("| " + " | ".join(texts) + " |")
    lines += ["", "Mean ± standard error over n runs (seeds), each at its own budget."]
    if partial:
        lines[-1] = "Mean ± standard error over n runs (seeds); unfinished runs as far as they are."
    return "\n".join(lines) + "\n"


def format_metric(table: "pd.DataFrame", metric: str) -> list[str]:
    """Returns a metric's column of table.csv as texts with the same number of decimals."""
    means, errors = table[f"{metric}_mean"], table[f"{metric}_se"]
    if metric == "evaluations":  # The budget: the same for every seed, or nearly.
        errors, decimals = errors.mask(errors == 0), 0
    else:
        decimals = common_decimals(means, errors)
    return [mean_and_error(m, e, decimals) for m, e in zip(means, errors, strict=True)]


def _write_csv(table: "pd.DataFrame", path: Path) -> None:
    with atomic(path, "w") as file:
        table.to_csv(file, index=False, lineterminator="\n")
