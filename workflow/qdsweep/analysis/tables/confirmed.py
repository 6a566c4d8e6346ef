"""The winners of a sweep, on seeds that did not choose them.

The mean of the best of many groups is partly due to the seeds that chose it (selection bias, Cawley
and Talbot 2010, JMLR 11:2079-2107). Held-out seeds have no part in that choice. So the mean to
report is that of the winner on the sweep's own seeds, which is fixed before its held-out runs. The
best of several held-out means is chosen again: of three equal winners with ten seeds it is 0.27
standard deviations of a run too high on average.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.legend import group_names
from qdsweep.analysis.noise import is_lucky
from qdsweep.analysis.search_progress import read_search
from qdsweep.analysis.selection import SweepTables, compared_metric, read_tables
from qdsweep.analysis.sheet import Cell, Sheet, number_cell, text_cell, write_sheet
from qdsweep.analysis.statistics import (
    ALPHA,
    MEAN_TEXT,
    SEEDS_RULE,
    Estimate,
    half_width,
    mean_error_count,
    welch,
)
from qdsweep.analysis.tables.comparisons import runs_of
from qdsweep.analysis.tables.group_table import MARK, decimals_of
from qdsweep.analysis.tables.possible_best import possible_best
from qdsweep.analysis.tables.run_table import read_results
from qdsweep.config.compose import compose
from qdsweep.config.experiment import BUDGETS
from qdsweep.errors import BadInput
from qdsweep.metrics import Metric
from qdsweep.records.paths import RunDir, SweepDir
from qdsweep.records.plan import ConfirmingRow, planned_row, read_confirm, read_plan, write_confirm
from qdsweep.records.results import write_configs
from qdsweep.records.sources import find_run, require_own
from qdsweep.text import common_decimals, listed, mean_and_error, plural, with_interval

if TYPE_CHECKING:
    import pandas as pd

_MIXED = "QD score, divided by the cells where there are some"
MARKED = "unseen_may_be_best"
CHOICE = (
    "Ten held-out seeds suffice for one winner. They name a lead of one standard deviation among"
    " three in 31 %, and twenty in 72 %."
)


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
    """Returns the best groups of each scale, best first, of those that can be run again.

    Groups with outdated runs come last: they win only where the others are fewer than `top`.
    """
    means = tables.table.set_index("group")
    chosen: list[str] = []
    for groups in tables.score_scales.values():
        metric = compared_metric(tables.rank, tables.summary, groups)
        own = [group for group in groups if group not in imported]
        score = means.loc[own, f"{metric.column}_mean"]
        best = list(score.sort_values(ascending=metric.smaller, kind="stable").index)
        chosen += sorted(best, key=tables.plan.outdated_groups.__contains__)[:top]
    return chosen


def write_confirmed(sweep_dir: Path, runs_dir: Path) -> Sheet:
    """Writes `tables/confirmed.*`: the winners on the sweep's seeds and on held-out ones.

    Rows are in the order of confirm.json: the first one of each scale is its winner.

    Raises:
        BadInput: An earlier stage has not written its files.
    """
    import pandas as pd

    sweep, tables = SweepDir(sweep_dir), read_tables(sweep_dir)
    confirming = read_confirm(sweep)
    outdated = {row["group"] for row in confirming if row["id"] in tables.plan.outdated}
    unseen: dict[str, list[dict[str, Any]]] = {}
    for row in confirming:
        result = {"id": row["id"], "seed": str(row["values"]["seed"])}
        unseen.setdefault(row["group"], []).append(result | _result(tables, row, runs_dir))
    records, tasks = [], []
    for scale, groups in tables.score_scales.items():
        metric = compared_metric(tables.rank, tables.summary, groups)
        chosen = [group for group in unseen if group in groups]
        for group in chosen:
            own = tables.with_results
            own = own[own["group"] == group].drop_duplicates("id")
            records.append(
                {"group": group, "scale": scale, "metric": metric.name}
                | _statistics("sweep", metric, own[metric.name])
                | _statistics("unseen", metric, [run[metric.name] for run in unseen[group]])
            )
        current = [group for group in chosen if group not in outdated]
        runs = pd.DataFrame([{**run, "group": group} for group in current for run in unseen[group]])
        sure = current and not is_lucky(tables.plan, scale, metric)
        tasks.append((runs_of(tables.plan, runs, metric.name) if sure else {}, metric.sign))
    data = pd.DataFrame(records)
    data["difference"] = data["unseen_mean"] - data["sweep_mean"]
    data["difference_se"] = np.hypot(data["unseen_se"], data["sweep_se"])
    for seeds in ("sweep", "unseen"):
        scores = data[f"{seeds}_mean"] * [tables.metric(name).sign for name in data["metric"]]
        ranks = scores.groupby(data["scale"]).rank(ascending=False, method="min")
        data[f"{seeds}_rank"] = ranks.astype("Int64")
    verdicts = possible_best(tasks, tables.plan.tests)
    marked = {group: group in of.marked for of in verdicts for group in of.tested}
    data[MARKED] = data["group"].map(marked).astype("boolean")
    named = group_names(tables.plan).dressed(data).sort_index()  # the winner first
    sheet = _sheet(tables, named, _chosen_from(sweep, tables), confirming)
    if late := [group for group in unseen if group in outdated | tables.plan.outdated_groups]:
        labels = map(group_names(tables.plan).label, late)
        text = f" Outdated, and not tested: {listed(list(labels), most=5)}."
        sheet = replace(sheet, note=sheet.note + text)
    write_sheet(sweep.tables, sheet, data)
    return sheet


def overestimation(row: Mapping[str, Any]) -> Estimate:
    """Returns a winner's mean on the sweep's own seeds minus that on held-out ones.

    The interval is Welch's at 95 %, pointwise; nan where either has one seed.
    """
    own, unseen = (
        np.array([row[f"{seeds}_mean"], row[f"{seeds}_se"] * math.sqrt(n), n])
        for seeds in ("sweep", "unseen")
        for n in [row[f"{seeds}_n"]]
    )
    if min(own[2], unseen[2]) < 2:
        return Estimate(own[0] - unseen[0], math.nan, math.nan)
    return welch(own[None], unseen[None]).estimate(0, ALPHA)


def _chosen_from(sweep: SweepDir, tables: SweepTables) -> str:
    """Returns from how many groups each winner was selected."""
    # A search has chosen among more than those that came to its end.
    search = read_search(sweep, tables.plan)
    if search:
        return plural(search.count, "setting")
    counts = sorted({len(groups) for groups in tables.score_scales.values()})
    text = plural(counts[-1], "group")
    if len(counts) > 1:
        text = f"{counts[0]} to {text}"
    return f"{text} of each task" if len(tables.score_scales) > 1 else text


def _result(tables: SweepTables, row: ConfirmingRow, runs_dir: Path) -> dict[str, Any]:
    if row["id"] in tables.plan.outdated and not RunDir(runs_dir / row["id"]).summary.exists():
        return {metric.name: math.nan for metric in tables.metrics}
    (result,) = read_results(
        RunDir(runs_dir / row["id"]),
        [planned_row(row)],
        partial=False,
        metrics=tables.metrics,
        again=tables.plan.reevaluate,
    )
    return {**{metric.name: math.nan for metric in tables.metrics}, **result.record}


def _statistics(name: str, metric: Metric, values: Iterable[float]) -> dict[str, Any]:
    mean, error, n = mean_error_count(metric.factor * np.array(values, float))
    return {f"{name}_n": n, f"{name}_mean": mean, f"{name}_se": error}


def _sheet(
    tables: SweepTables, data: "pd.DataFrame", chosen_from: str, confirming: list[ConfirmingRow]
) -> Sheet:
    """Returns the table for a reader."""
    metrics = [tables.metric(name) for name in data["metric"].unique()]
    own_decimals = {metric.name: decimals_of(tables.table, metric) for metric in metrics}
    rows = []
    for row in data.to_dict("records"):
        alike = data[data["scale"] == row["scale"]]
        decimals = {
            "sweep": own_decimals[row["metric"]],
            "unseen": common_decimals(alike["unseen_mean"], alike["unseen_se"]),
        }
        cells = [text_cell(row["group"])]
        for seeds in ("sweep", "unseen"):
            mean, n = row[f"{seeds}_mean"], row[f"{seeds}_n"]
            text = mean_and_error(mean, half_width(row[f"{seeds}_se"], n), decimals[seeds])
            is_marked = seeds == "unseen" and row[MARKED] is True and len(alike) > 1
            cells.append(number_cell(text + MARK * is_marked, mean))
            cells.append(Cell(str(n), float(n)))
        lost = overestimation(row)
        text = with_interval(lost.value, lost.low, lost.high, min(decimals.values()))
        rows.append([*cells, number_cell(text, lost.value)])
    what = metrics[0].heading if len(metrics) == 1 else _MIXED
    columns = [
        *("Group", "Mean, own seeds", "Own seeds", "Mean, held-out seeds", "Held-out seeds"),
        "Own minus held-out [95 %]",
    ]
    note = f"{what}, {MEAN_TEXT}.{_note(data, chosen_from, confirming)}"
    return Sheet("confirmed", "Winners on held-out seeds", note, columns, 1, rows)


def _note(data: "pd.DataFrame", chosen_from: str, confirming: list[ConfirmingRow]) -> str:
    numbers = [int(row["values"]["seed"]) for row in confirming]
    which = "the first group of each task" if data["scale"].nunique() > 1 else "the first group"
    if len(data) == 1:
        which = "this group"
    text = (
        f" Selected from {chosen_from}. Selection tends to make means on the sweep's own seeds too"
        f" high (Cawley and Talbot 2010). Report {which} on the held-out seeds {min(numbers)} to"
        f" {max(numbers)}: it was the best before these runs. Own minus held-out: with Welch's"
        " pointwise interval."
    )
    if not data["scale"].duplicated().any():
        return text
    if data[MARKED].notna().any():
        text += (
            f" {MARK}: the best of the winners is among the marked ones (95 %, one-sided tests)."
        )
    else:
        text += f" The winners are not tested. {SEEDS_RULE}"
    return f"{text} {CHOICE}"
