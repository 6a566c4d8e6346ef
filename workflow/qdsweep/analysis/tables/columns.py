"""Which columns the table of groups has, where the sweep file does not choose them."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from qdsweep.analysis.tables.sheet import Cell
from qdsweep.analysis.tables.statistics import ENOUGH_SEEDS
from qdsweep.metrics import Metric, shown_metrics
from qdsweep.records.plan import Plan
from qdsweep.sweep.groups import group_labels, label_columns

if TYPE_CHECKING:
    import pandas as pd


class Column(NamedTuple):
    """A column of a table; `is_text`: aligned to the left, before all numbers."""

    heading: str
    cells: list[Cell]
    is_text: bool = False


def telling_columns(plan: Plan, table: "pd.DataFrame", counts: "pd.Series") -> list[str]:
    """Returns the columns that say something of their own.

    Left out: swept names that follow from others, metrics that no run has, the QD score beside its
    normalised twin, a number of evaluations that is the same everywhere, and the interquartile mean
    of few seeds, which has no interval.

    Args:
        plan: The sweep.
        table: table.csv.
        counts: The seeds of each group.
    """
    values = [rows[0].values for rows in plan.groups.values()]
    composed = group_labels(plan.columns, values, plan.experiment, plan.figures.names)
    named = composed != list(plan.groups)  # the values do not show the label of a whole group
    swept = label_columns(plan.columns, values)
    first = [*(["group"] if named or not swept else []), *swept, "n"]
    measured = [one for one in shown_metrics(plan.metrics) if table[f"{one.column}_n"].any()]
    twins = {one.instead for one in measured if table[f"{one.column}_n"].all()}
    used = table["evaluations_mean"]
    same = {"evaluations"} if len(used) > 1 and used.nunique() == 1 else set()
    left_out = (twins | same) - {plan.rank.name}
    kept = [one for one in measured if one.name not in left_out]
    iqm = ["iqm"] if (counts >= ENOUGH_SEEDS).any() and plan.rank in measured else []
    results = [one.name for one in kept if not one.cost]
    return [*first, *results, *iqm, *(one.name for one in kept if one.cost)]


def column_notes(
    chosen: Collection[str], columns: Mapping[str, Column], iqm: Metric | None, counts: "pd.Series"
) -> str:
    """Returns what a reader must know of some columns, and of the evaluations if they have none.

    Args:
        chosen: The names of those shown.
        columns: All there are, by name.
        iqm: The metric of the interquartile mean, where that is shown.
        counts: The seeds of each group.
    """
    text = ""
    if iqm:
        few = f" (from {ENOUGH_SEEDS} seeds on)" if (counts < ENOUGH_SEEDS).any() else ""
        text += f" IQM: interquartile mean of the {iqm.phrase} with its 95 % interval{few}."
    if "qd_auc" in chosen:
        text += " QD-AUC: mean QD score over the evaluations of the budget."
    used = {cell.text for cell in columns["evaluations"].cells}
    if "evaluations" not in chosen and len(used) == 1:
        text += f" Evaluations: {used.pop()} in every group."
    return text
