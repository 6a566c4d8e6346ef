"""The winners of a sweep, on seeds that did not choose them.

The mean of the best of many groups is partly due to the seeds that chose it. Its mean on held-out
seeds has no such selection bias (Cawley and Talbot 2010, JMLR 11:2079-2107).
"""

import math
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.legend import group_names
from qdsweep.analysis.search_progress import read_search
from qdsweep.analysis.selection import SweepTables, compared_metric, read_tables
from qdsweep.analysis.sheet import Cell, Sheet, number_cell, text_cell, write_sheet
from qdsweep.analysis.statistics import MIN_SEEDS, mean_error_count
from qdsweep.analysis.tables.group_table import decimals_of
from qdsweep.analysis.tables.run_table import read_results
from qdsweep.config.compose import compose
from qdsweep.config.experiment import BUDGETS
from qdsweep.errors import BadInput
from qdsweep.metrics import Metric
from qdsweep.records.paths import RunDir, SweepDir
from qdsweep.records.plan import ConfirmingRow, PlannedRow, read_confirm, read_plan, write_confirm
from qdsweep.records.results import write_configs
from qdsweep.records.sources import find_run, require_own
from qdsweep.text import common_decimals, mean_and_error, plural

if TYPE_CHECKING:
    import pandas as pd

_MIXED = "QD score, divided by the cells where there are some"
_REMEDY = "Run `snakemake` with the key confirm in the sweep file."


def choose_winners(sweep_dir: Path, runs_dir: Path) -> None:
    """Writes `confirm.json`, the runs that confirm a sweep, and the experiment of each of them.

    The winners are the groups with the highest mean of the metric that ranks, of each domain and
    archive.

    Raises:
        BadInput: An earlier stage has not written its files.
    """
    sweep = SweepDir(sweep_dir)
    plan = read_plan(sweep)
    confirm = plan.confirm
    if confirm is None:
        raise BadInput(f"the sweep {plan.name} has no key confirm in its file")
    rows, runs = [], {}
    for group in winners(read_tables(sweep_dir), confirm.top, plan.imported_groups):
        row = plan.groups[group][0]
        budget = {unit: getattr(row, unit) for unit in BUDGETS if getattr(row, unit)}
        for seed in range(confirm.seeds[0], confirm.seeds[1] + 1):
            config = RunDir(runs_dir / row.run).config
            experiment = compose(str(config), {**budget, "seed": seed}, source="confirm")
            run = require_own(find_run(experiment, sweep.results), sweep.results)
            runs[run] = experiment
            rows.append(
                {
                    "group": group,
                    "values": {**row.typed, "seed": seed},
                    "id": run,
                    "like": row.run,
                    **{unit: getattr(row, unit) for unit in BUDGETS},
                }
            )
    write_configs(runs, sweep.results)
    write_confirm(sweep, rows)


def winners(tables: SweepTables, top: int, imported: Collection[str] = ()) -> list[str]:
    """Returns the best groups of each scale, best first, of those that can be run again."""
    means = tables.table.set_index("group")
    chosen: list[str] = []
    for groups in tables.score_scales.values():
        metric = compared_metric(tables.rank, tables.summary, groups)
        own = [group for group in groups if group not in imported]
        score = means.loc[own, f"{metric.column}_mean"]
        chosen += list(score.sort_values(ascending=metric.smaller, kind="stable").index[:top])
    return chosen


def write_confirmed(sweep_dir: Path, runs_dir: Path) -> Sheet:
    """Writes `tables/confirmed.*`: the winners on the sweep's seeds and on held-out ones.

    Raises:
        BadInput: An earlier stage has not written its files.
    """
    import pandas as pd

    sweep, tables = SweepDir(sweep_dir), read_tables(sweep_dir)
    confirming = read_confirm(sweep)
    unseen: dict[str, list[dict[str, Any]]] = {}
    for row in confirming:
        unseen.setdefault(row["group"], []).append(_result(tables, row, runs_dir))
    records = []
    for scale, groups in tables.score_scales.items():
        metric = compared_metric(tables.rank, tables.summary, groups)
        for group in (group for group in unseen if group in groups):
            own = tables.with_results
            own = own[own["group"] == group].drop_duplicates("id")
            records.append(
                {"group": group, "scale": scale, "metric": metric.name}
                | _statistics("sweep", metric, own[metric.name])
                | _statistics("unseen", metric, [run[metric.name] for run in unseen[group]])
            )
    data = pd.DataFrame(records)
    data["difference"] = data["unseen_mean"] - data["sweep_mean"]
    data["difference_se"] = np.hypot(data["unseen_se"], data["sweep_se"])
    for seeds in ("sweep", "unseen"):
        scores = data[f"{seeds}_mean"] * [tables.metric(name).sign for name in data["metric"]]
        ranks = scores.groupby(data["scale"]).rank(ascending=False, method="min")
        data[f"{seeds}_rank"] = ranks.astype("Int64")
    numbers = [int(row["values"]["seed"]) for row in confirming]
    plan = tables.plan
    named = group_names(plan).dressed(data)
    metrics = [tables.metric(name) for name in data["metric"].unique()]
    # A search has chosen among more than those that came to its end.
    search = read_search(sweep, plan)
    count = search.count if search else len(tables.table)
    decimals = {metric.name: decimals_of(tables.table, metric) for metric in metrics}
    sheet = _sheet(named, metrics, decimals, count, min(numbers), max(numbers))
    write_sheet(sweep.tables, sheet, data)
    return sheet


def _result(tables: SweepTables, row: ConfirmingRow, runs_dir: Path) -> dict[str, Any]:
    asked = PlannedRow(
        {},
        row["id"],
        row["iterations"],
        row["evaluations"],
        row["group"],
        {},
        steps=row.get("steps"),
    )
    files = RunDir(runs_dir / row["id"])
    (result,) = read_results(files, [asked], partial=False, metrics=tables.metrics)
    return {**{metric.name: math.nan for metric in tables.metrics}, **result.record}


def _statistics(name: str, metric: Metric, values: Iterable[float]) -> dict[str, Any]:
    mean, error, n = mean_error_count(metric.factor * np.array(values, float))
    return {f"{name}_n": n, f"{name}_mean": mean, f"{name}_se": error}


def _sheet(
    data: "pd.DataFrame",
    metrics: list[Metric],
    own_decimals: Mapping[str, int],
    groups: int,
    first: int,
    last: int,
) -> Sheet:
    """Returns the table for a reader; `own_decimals`: those of the metrics in the main table."""
    what = metrics[0].heading if len(metrics) == 1 else _MIXED
    several = data["scale"].nunique() > 1
    ranked = bool(data["scale"].duplicated().any())
    rows = []
    for row in data.to_dict("records"):
        alike = data[data["scale"] == row["scale"]]
        unseen_decimals = common_decimals(alike["unseen_mean"], alike["unseen_se"])
        decimals = {"sweep": own_decimals[row["metric"]], "unseen": unseen_decimals}
        best = row["unseen_rank"] == 1 and row["unseen_n"] >= MIN_SEEDS and len(alike) > 1
        cells = [text_cell(row["group"])]
        for seeds in ("sweep", "unseen"):
            mean, error = row[f"{seeds}_mean"], row[f"{seeds}_se"]
            text = mean_and_error(mean, error, decimals[seeds])
            cells.append(number_cell(text, mean, bold=best and seeds == "unseen"))
            cells.append(Cell(str(row[f"{seeds}_n"]), float(row[f"{seeds}_n"])))
        shown = min(decimals.values())
        text = mean_and_error(row["difference"], row["difference_se"], shown)
        cells.append(number_cell(text, row["difference"]))
        if ranked:
            text = f"{row['sweep_rank']} / {row['unseen_rank']}"
            cells.append(Cell(text, float(row["unseen_rank"])))
        rows.append(cells)
    columns = [
        "Group",
        "Mean, own seeds",
        "Own seeds",
        "Mean, held-out seeds",
        "Held-out seeds",
        "Difference",
    ]
    note = (
        f"{what}, mean ± standard error over seeds. The sweep's own seeds selected these from"
        f" {plural(groups, 'group')}, so their mean is too high on average (selection bias, Cawley"
        f" and Talbot 2010). Report the mean on the held-out seeds {first} to {last}."
        " Difference: held-out minus own, ± its standard error (that of Welch's t-test)."
    )
    if ranked:
        columns.append("Rank")
        note += " Rank: among the winners, on own / on held-out seeds"
        note += ", of the same domain and archive." if several else "."
    return Sheet("confirmed", "Winners on held-out seeds", note, columns, 1, rows)
