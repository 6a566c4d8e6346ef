"""The main table of a sweep: a row for each group, with its statistics over seeds."""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qdsweep.analysis.columns import STATISTICS, column_names
from qdsweep.analysis.noise import LUCKY, as_reported, ranked_scales, tested_scales
from qdsweep.analysis.selection import (
    cells_of,
    compared_metric,
    in_percent,
    per_cell,
    score_scales_of,
)
from qdsweep.analysis.sheet import Cell, Sheet, number_cell, text_cell
from qdsweep.analysis.statistics import (
    ENOUGH_SEEDS,
    MEAN_TEXT,
    MIN_SEEDS,
    SEEDS_RULE,
    half_width,
    interquartile_mean,
    mean_error_count,
)
from qdsweep.analysis.tables.comparisons import WELCH, runs_of, untested_text
from qdsweep.analysis.tables.possible_best import possible_best
from qdsweep.metrics import (
    BY_NAME,
    EXPLORING_RETURN,
    OTHER_CODE,
    RETURN,
    Metric,
    meanings,
    shown_metrics,
)
from qdsweep.records.dependencies import accepted_text
from qdsweep.records.plan import Plan
from qdsweep.sweep.groups import group_labels, label_columns
from qdsweep.text import (
    common_decimals,
    core_time,
    listed,
    mean_and_error,
    number,
    plural,
    with_interval,
)

if TYPE_CHECKING:
    import pandas as pd


MEAN_QD_SCORE = BY_NAME["qd_auc"]

# The groups that may be the best.
MARK = "†"
# The groups with outdated runs.
OUTDATED_MARK = "‡"
# From here on the winsorised standard error has enough degrees of freedom.
_MANY_SEEDS = 10
# Budgets of comparable groups may differ by this share without a warning.
_ALIKE = 0.02
BUDGET_UNITS = {"evaluations": "evaluations", "steps": "environment steps"}
# The share of a budget from which on a first batch is mentioned.
_LARGE = 0.05
ScoreScales = Mapping[str, list[str]]
# Pairs (metric, group), such as the group with the best mean of a metric.
Places = set[tuple[str, str]]
# Swept parameters that are words of the report, too.
_WORDS = ("algorithm", "domain", "experiment", "group", "seed", "sweep")


class Column(NamedTuple):
    """A column of a table; `is_text`: aligned to the left, before all numbers."""

    heading: str
    cells: list[Cell]
    is_text: bool = False


def default_columns(plan: Plan, table: "pd.DataFrame", counts: "pd.Series") -> list[str]:
    """Returns the columns of the table where the sweep file does not choose them.

    Left out are swept parameters that follow from others, metrics that no run has, and the QD
    score where it is shown per cell. So are a constant number of evaluations and the interquartile
    mean of few seeds, which has no interval.

    Args:
        plan: The sweep.
        table: table.csv.
        counts: The seeds of each group.
    """
    values = [rows[0].values for rows in plan.groups.values()]
    # An imported group has no value of a constant budget, which is no column.
    composed = group_labels(plan.group_columns, values, plan.experiment, plan.figures.names)
    named = composed != list(plan.groups)  # the values do not show the label of a whole group
    swept = label_columns(plan.group_columns, values)
    first = [*(["group"] if named or not swept else []), *swept, "n"]
    measured = [m for m in shown_metrics(plan.metrics) if table[f"{m.column}_n"].any()]
    twins = {metric.instead for metric in measured if table[f"{metric.column}_n"].all()}
    used = table["evaluations_mean"]
    same = {"evaluations"} if len(used) > 1 and used.nunique() == 1 else set()
    lucky = {"obj_max"} if LUCKY in plan.noise.values() else set()  # the luckiest evaluation
    left_out = (twins | same | lucky) - {plan.rank.name}
    shown = [metric for metric in measured if metric.name not in left_out]
    iqm = ["iqm"] if (counts >= ENOUGH_SEEDS).any() and plan.rank in measured else []
    results = [metric.name for metric in shown if not metric.cost]
    return [*first, *results, *iqm, *(metric.name for metric in shown if metric.cost)]


def column_notes(
    chosen: Collection[str], columns: Mapping[str, Column], iqm: Metric | None, counts: "pd.Series"
) -> str:
    """Returns the explanation of some columns, and the evaluations if they have no column.

    Args:
        chosen: The names of the columns shown.
        columns: All columns, by name.
        iqm: The metric of the interquartile mean, where that is shown.
        counts: The seeds of each group.
    """
    text = ""
    if iqm:
        few = f" (for {ENOUGH_SEEDS} seeds or more)" if (counts < ENOUGH_SEEDS).any() else ""
        text += (
            f" IQM: interquartile mean of the {iqm.phrase} with its pointwise 95 % interval{few}."
        )
        known = [cell.text.endswith("]") for cell in columns["iqm"].cells]
        if not all(known[place] for place in np.flatnonzero(counts >= ENOUGH_SEEDS)):
            text += " It is unknown where the middle half of the runs are equal."
        if (counts >= ENOUGH_SEEDS).any() and counts.max() < _MANY_SEEDS:
            text += f" With fewer than {_MANY_SEEDS} seeds its width is uncertain."
    if "qd_auc" in chosen:
        heading = columns["qd_auc"].heading
        text += f" {heading}: mean over the evaluations of the budget."
    used = {cell.key: cell.text for cell in columns["evaluations"].cells}
    if "evaluations" not in chosen and len(used) == 1:
        text += f" Evaluations: {''.join(used.values())} in every group."
    return text


def group_table(plan: Plan, summary: "pd.DataFrame") -> "pd.DataFrame":
    """Returns table.csv: a row for each group. A run that is in a group twice counts once.

    Each metric has its mean, standard error (`_se`) and number of runs (`_n`). Some also have their
    median and interquartile mean with its 95 % interval (`_iqm_low`, `_iqm_high`).
    """
    import pandas as pd

    names = column_names(plan)
    values = in_percent(summary)
    records = []
    for group, rows in plan.groups.items():
        runs = values[values["group"] == group].drop_duplicates("id")
        record: dict[str, Any] = {"group": group}
        record.update({names[name]: rows[0].values[name] for name in plan.group_columns})
        record["runs"] = len(runs)
        for metric in (shown.column for shown in shown_metrics(plan.metrics)):
            statistics = mean_error_count(runs[metric].to_numpy(float))
            parts = (f"{metric}_{part}" for part in STATISTICS)
            record |= zip(parts, statistics, strict=True)
        for metric in dict.fromkeys(m.column for m in plan.metrics if m.interval or m is plan.rank):
            scores = runs[metric].dropna().astype(float)
            record[f"{metric}_median"] = scores.median()
            record |= interquartile_mean([scores.to_numpy()]).columns(f"{metric}_iqm")
        records.append(record)
    return pd.DataFrame(records)


def group_sheet(plan: Plan, summary: "pd.DataFrame", table: "pd.DataFrame") -> Sheet:
    """Returns the table for a reader: means with intervals, the best of each scale in bold.

    `plan`, `summary` and `table` have the report's names of groups, as `Called` gives them.
    """
    score_scales = score_scales_of(summary, table["group"])
    every = shown_metrics(plan.metrics)
    best, possible = best_and_possible(plan, summary, table, score_scales)
    counts = table[[f"{metric.column}_n" for metric in every]].max(axis=1)
    columns = {
        name: Column(heading_of(plan, name), cells, True)
        for name, cells in _name_cells(plan).items()
    }
    columns["n"] = Column("Seeds", [number_cell(str(count), count) for count in counts])
    cells_of_row = table["group"].map(cells_of(table))
    for metric in every:
        heading, values = metric.heading, table
        if metric is MEAN_QD_SCORE and metric is not plan.rank and cells_of_row.notna().all():
            heading = f"{heading} / cells"
            values = per_cell(table, [metric.column], cells_of_row)
        heading += as_reported(plan, metric)
        cells = _metric_cells(values, metric, best, possible, plan.outdated_groups)
        columns[metric.name] = Column(heading, cells)
    columns["iqm"] = Column("IQM [95 %]", _iqm_cells(table, plan.rank))
    chosen = plan.tables.columns or default_columns(plan, table, counts)
    # A stable sort: columns of text come first.
    shown = sorted((columns[name] for name in chosen), key=lambda column: not column.is_text)
    partial = bool((summary["status"] == "partial").any())
    iqm = plan.rank if "iqm" in chosen else None
    marked = {metric.column for metric in every if metric.name in chosen}
    is_best, is_tested = (any(metric in marked for metric, _ in of) for of in (best, possible))
    note = _note(plan, partial, is_best, is_tested, counts)
    note += untested_text(plan) + outdated_note(plan, summary)
    note += column_notes(chosen, columns, iqm, counts)
    note += meanings(metric for metric in every if metric.name in chosen)
    note += _unrecorded_note(table) if EXPLORING_RETURN.name in chosen else ""
    note += _own_note(plan.own, table, counts, summary)
    if plan.imported_groups:
        note += " Imported: computed elsewhere. Their elites are measured like those of this sweep."
        others = table["group"].isin(plan.imported_groups)
        if "qd_auc" in chosen and not table.loc[others, f"{MEAN_QD_SCORE.column}_n"].all():
            note += f" {columns['qd_auc'].heading}: not known for imported runs without curves."
    note += unequal_budgets(plan, table, score_scales) + elites_below_range(summary)
    if len(score_scales) > len(ranked_scales(plan, score_scales)):
        note += " Groups are not ranked where evaluations depend on their seed."
    return Sheet(
        "table",
        "Results of each group",
        note,
        [column.heading for column in shown],
        sum(column.is_text for column in shown),
        [list(row) for row in zip(*(column.cells for column in shown), strict=True)],
    )


def heading_of(plan: Plan, name: str) -> str:
    """Returns the heading of the column of a swept parameter, or of the groups."""
    called = plan.called(name)
    return called.capitalize() if called in _WORDS else called


def _name_cells(plan: Plan) -> dict[str, list[Cell]]:
    """Returns the groups and their swept values."""
    values = {group: rows[0].values for group, rows in plan.groups.items()}
    cells = {"group": [text_cell(group) for group in values]}
    for name in plan.group_columns:
        cells[name] = [text_cell(row[name]) for row in values.values()]
    return cells


def _metric_cells(
    table: "pd.DataFrame",
    metric: Metric,
    best: Places,
    possible: Places,
    outdated: Collection[str],
) -> list[Cell]:
    cells = []
    means = table[f"{metric.column}_mean"]
    for group, text, mean in zip(table["group"], format_metric(table, metric), means, strict=True):
        place = (metric.column, group)
        mark = MARK if place in possible else OUTDATED_MARK if group in outdated else ""
        cells.append(number_cell(text + mark, mean, bold=place in best))
    return cells


def outdated_note(plan: Plan, summary: "pd.DataFrame") -> str:
    """Returns how many runs are outdated, the cost to compute them again, and the ways back."""
    runs = {row.run for row in plan.rows if row.run in plan.outdated}
    if not runs:
        return ""
    spent = summary[summary["id"].isin(runs)].drop_duplicates("id")["core_seconds"]
    cost = f" ({core_time(spent.sum())})" if spent.notna().all() else ""
    return (
        f" {OUTDATED_MARK}: with outdated runs, {len(runs)} of"
        f" {plural(len({row.run for row in plan.computed}), 'run')}. The option --config"
        f" outdated=recompute computes them again{cost}, and --config outdated=accept keeps them"
        " as results of the code as it is now."
    )


def accepted_note(runs: Iterable[str]) -> str:
    """Returns how many runs were taken over for other code."""
    count = len({*runs})
    return f" {accepted_text(count)}." if count else ""


def _unrecorded_note(table: "pd.DataFrame") -> str:
    """Returns how many learners' runs have an exploring return, where some have none."""
    known, runs = (int(table[f"{each.column}_n"].sum()) for each in (EXPLORING_RETURN, RETURN))
    if known >= runs:
        return ""
    return f" {known} of {plural(runs, 'run')} have one: earlier releases did not record it."


def _own_note(
    own: Iterable[Metric], table: "pd.DataFrame", counts: "pd.Series", summary: "pd.DataFrame"
) -> str:
    """Returns for which metrics the smallest is the best, and which runs lack a value."""
    text = "".join(
        f" {metric.label}: the lowest mean is the best." for metric in own if metric.smaller
    )
    runs = int(counts.sum())
    for metric in own:
        others = other_code(metric, summary)
        empty = int(others[metric.name].isna().sum())
        if len(others):
            text += (
                f" {metric.label}: other code than the current {metric.function} measured"
                f" {len(others)} of {plural(runs, 'run')}. {empty} of these cells are empty, and"
                f" {len(others) - empty} have the value of the final archive. To measure them"
                " again, restore that code, or remove the folders of these runs below results/runs"
                f" (column {OTHER_CODE} of summary.csv) and start the sweep again."
            )
        lacking = runs - empty - int(table[f"{metric.column}_n"].sum())
        if lacking > 0:
            text += (
                f" {metric.label} has a value in {runs - empty - lacking} of {runs} runs. Runs that"
                " were finished before the metric was added are not computed again."
            )
    return text


def other_code(metric: Metric, summary: "pd.DataFrame") -> "pd.DataFrame":
    """Returns the runs of summary.csv of which other code has measured one of the user's metrics.

    A run that is listed twice counts once.
    """
    if OTHER_CODE not in summary:
        return summary[:0]
    named = summary[OTHER_CODE].fillna("").str.split()
    return summary[named.map(lambda names: metric.name in names)].drop_duplicates(["group", "id"])


def budget_ranges(plan: Plan, table: "pd.DataFrame", score_scales: ScoreScales) -> dict[str, str]:
    """Returns the range of budgets in each scale whose budgets differ by more than 2 %.

    They are compared in evaluations, or in environment steps where all budgets are in these.
    """
    used = table.set_index("group")[f"{plan.counted}_mean"]
    ranges = {}
    for scale, groups in score_scales.items():
        low, high = used.loc[groups].min(), used.loc[groups].max()
        if high > (1 + _ALIKE) * low:
            ranges[scale] = f"from {number(low)} to {number(high)}"
    return ranges


def unequal_budgets(plan: Plan, table: "pd.DataFrame", score_scales: ScoreScales) -> str:
    """Returns a warning where `budget_ranges` finds any."""
    differ: dict[str, list[str]] = {}
    for scale, text in budget_ranges(plan, table, score_scales).items():
        differ.setdefault(text, []).append(scale.partition(";")[0])
    if not differ:
        return ""
    unit, remedy = (
        (BUDGET_UNITS["steps"], "A run ends with the first iteration that reaches its budget.")
        if plan.counted == "steps"
        else (
            BUDGET_UNITS["evaluations"],
            "Give the budget in evaluations instead of iterations, or set compare_at: evaluations."
            " Check the sizes of batches and of first batches.",
        )
    )
    ranges = [
        text + f" ({listed(list(dict.fromkeys(tasks)), most=3)})" * (len(score_scales) > 1)
        for text, tasks in differ.items()
    ]
    return (
        f" Budgets differ between groups that are compared here: {listed(ranges, most=3)} {unit}."
        f" {remedy}"
    )


def elites_below_range(summary: "pd.DataFrame") -> str:
    """Returns a warning if 1 % of the elites of summary.csv are below their objective range."""
    if "elites_below_range" not in summary:  # the table of an earlier release
        return ""
    runs = summary.drop_duplicates("id")
    below = runs["elites_below_range"].fillna(0)
    if below.sum() < max(0.01 * runs["num_elites"].sum(), 1):
        return ""
    return (
        f" {plural(int(below.sum()), 'elite')} in {(below > 0).sum()} of {plural(len(runs), 'run')}"
        " have an objective below objective_range. They count as negative in the QD score. A lower"
        " end that includes them prevents this."
    )


def first_batch_note(curves: "pd.DataFrame", table: "pd.DataFrame") -> str:
    """Returns a sentence on groups that spent 5 % of their budget and more on a larger first batch.

    That is mostly due to `initial_solutions` of MAP-Elites. Imported runs may have no curve, only
    their end.
    """
    used = table.set_index("group")["evaluations_mean"]
    large = []
    for group, curve in curves.groupby("group", sort=False):
        first, *later = curve["evaluations"].head(2)
        if later and first >= _LARGE * used[group] and later[0] - first < first:
            large.append(f"{number(first)} of {number(used[group])} evaluations of {group}")
    if not large:
        return ""
    return f" The first batch counts towards the budget: {listed(large, most=3)}."


def first_policies(curves: "pd.DataFrame") -> str:
    """Returns a sentence on groups whose greedy return is still that of their first iteration.

    Their greedy episodes may have been run only once, before anything was learned.
    """
    column = f"{RETURN.name}_mean"
    if column not in curves:
        return ""
    returns = curves.groupby("group", sort=False)[column]
    same = [group for group, values in returns if values.count() > 1 and values.nunique() == 1]
    if not same:
        return ""
    return (
        f" The {RETURN.phrase} of {listed(same, most=3)} is still that of the first iteration."
        " Either nothing was learned, or the greedy episodes ran only once. In the second case give"
        " a smaller evaluate_every."
    )


def best_and_possible(
    plan: Plan, summary: "pd.DataFrame", table: "pd.DataFrame", score_scales: ScoreScales
) -> tuple[Places, Places]:
    """Returns the places of the best means of each scale, and of the groups that may be the best.

    Best: the highest mean of the ranking metric and of each main one, or the lowest where smaller
    is better. Means that are shown as the same number are equally good: all of them are marked, or
    none where all groups have that number. A mean of fewer than `MIN_SEEDS` seeds is never marked.
    An archive without cells has the QD score instead of the one per cell. Which groups may be the
    best holds for all scales of a metric together.
    """
    best: Places = set()
    possible: Places = set()
    means, summary = table.set_index("group"), in_percent(summary)
    main = (metric for metric in plan.metrics if metric.main)
    several = {
        scale: [group for group in groups if group not in plan.untested]
        for scale, groups in score_scales.items()
    }
    several = {scale: groups for scale, groups in several.items() if len(groups) > 1}
    known: Places = set()
    for wanted in dict.fromkeys((plan.rank, *main)):
        shown = ranked_scales(plan, several, wanted)
        scales, sure = list(shown.values()), tested_scales(plan, shown, wanted)
        compared = [compared_metric(wanted, summary, groups) for groups in scales]
        runs = {metric: runs_of(plan, summary, metric.column) for metric in dict.fromkeys(compared)}
        tasks = [
            (
                {group: runs[metric][group] for group in groups if group in runs[metric]}
                if scale in sure
                else {},
                metric.sign,
            )
            for (scale, groups), metric in zip(shown.items(), compared, strict=True)
        ]
        verdicts = possible_best(tasks, plan.tests)
        for groups, metric, verdict in zip(scales, compared, verdicts, strict=True):
            column = metric.column
            if (column, groups[0]) in known:  # it ranks in place of another one
                continue
            known.add((column, groups[0]))
            values = metric.sign * means.loc[groups, f"{column}_mean"].dropna()
            decimals = decimals_of(table, metric)
            texts = values.map(lambda value, decimals=decimals: number(value, decimals))
            if texts.nunique() < 2:
                continue
            enough = means[f"{column}_n"] >= MIN_SEEDS
            highest = values.index[texts == texts[values.idxmax()]]
            best |= {(column, group) for group in highest if enough[group]}
            possible |= {(column, group) for group in verdict.marked}
    return best, possible


def format_metric(table: "pd.DataFrame", metric: Metric) -> list[str]:
    """Returns a metric's column of table.csv as texts with the same number of decimals."""
    means, errors = table[f"{metric.column}_mean"], table[f"{metric.column}_se"]
    if metric.whole and metric.cost:  # The budget: the same for every seed, or nearly.
        errors = errors.mask(errors == 0)
    decimals, halves = decimals_of(table, metric), half_width(errors, table[f"{metric.column}_n"])
    return [mean_and_error(m, half, decimals) for m, half in zip(means, halves, strict=True)]


def decimals_of(table: "pd.DataFrame", metric: Metric) -> int:
    """Returns how many decimals means of table.csv have in every table and text."""
    if metric.whole and metric.cost:
        return 0
    return common_decimals(table[f"{metric.column}_mean"], table[f"{metric.column}_se"])


def _iqm_cells(table: "pd.DataFrame", rank: Metric) -> list[Cell]:
    decimals, metric = decimals_of(table, rank), rank.column
    columns = [table[f"{metric}_iqm{end}"] for end in ("", "_low", "_high")]
    enough = table[f"{metric}_n"] >= ENOUGH_SEEDS  # too uncertain with fewer seeds
    columns[1:] = [end.where(enough) for end in columns[1:]]
    return [
        number_cell(with_interval(value, low, high, decimals), value)
        for value, low, high in zip(*columns, strict=True)
    ]


def _note(plan: Plan, partial: bool, best: bool, tested: bool, counts: "pd.Series") -> str:
    text = "One seed" if counts.max() == 1 else "Mean over seeds"
    if counts.max() >= MIN_SEEDS:
        text = f"{MEAN_TEXT[0].upper()}{MEAN_TEXT[1:]}, over seeds"
    if partial:
        text += ". Unfinished runs have their current values."
    elif plan.compare_at:
        unit = BUDGET_UNITS[plan.compare_at]
        text += f", at the largest number of {unit} that all runs of a task have reached."
    else:
        text += ", each run at its own budget."
    if best:
        text += (
            " Bold: highest mean among comparable groups (same domain, archive and QD-score"
            " offset)."
        )
    if tested:
        test = "Welch's t-tests" if plan.tests == WELCH else "t-tests of runs of one seed"
        text += (
            f" {MARK}: the best of these groups is among the marked ones of a column (95 %,"
            f" one-sided {test} at 5 % divided by the number of groups). Columns without {MARK} are"
            " not tested."
        )
    if best and (counts < ENOUGH_SEEDS).any():
        text += f" {SEEDS_RULE} Groups with fewer are not tested."
    return text
