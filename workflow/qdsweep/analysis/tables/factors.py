"""The table of what each swept name does alone: groups that differ in it and in nothing else."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qdsweep.analysis.labels import Called
from qdsweep.analysis.tables.comparisons import SHOWN_GROUPS, tasks, tests_text
from qdsweep.analysis.tables.pair_rows import (
    DATA,
    HEADINGS,
    Records,
    few_text,
    pair_cells,
    pair_records,
)
from qdsweep.analysis.tables.pairs import Runs, compare
from qdsweep.analysis.tables.sheet import Cell, Sheet, remove_sheet, text_cell, write_sheet
from qdsweep.records.plan import Plan
from qdsweep.records.sweep_dir import SweepDir
from qdsweep.sweep.groups import group_labels, label_columns

if TYPE_CHECKING:
    import pandas as pd

NAME = "factors"
# More pairs of a factor than these, and the table shows those within the best of the rest.
SHOWN_PAIRS = SHOWN_GROUPS * (SHOWN_GROUPS - 1) // 2


class Factor(NamedTuple):
    """A swept name within one scale.

    Attributes:
        name: As it was swept.
        values: Group -> its value.
        within: Group -> the other swept values, in words.
    """

    name: str
    values: dict[str, str]
    within: dict[str, str]

    def alone(self, first: str, second: str) -> bool:
        """Returns whether two groups differ in nothing else."""
        return self.within[first] == self.within[second]


def write_factors(
    sweep_dir: Path,
    plan: Plan,
    summary: "pd.DataFrame",
    score_scales: Mapping[str, list[str]],
    called: Called,
) -> None:
    """Writes `tables/factors`, where two swept names and more tell groups apart.

    Files of an earlier start are removed if there is nothing to write.
    """
    import pandas as pd

    records: Records = []
    rows: list[list[Cell]] = []
    most, left_out = 0, False
    for scale, task, metric, groups in tasks(plan.rank, summary, score_scales):
        start = [text_cell(called.scale(task))] if task else []
        for factor in factors_of(plan, list(groups)):
            pairs = compare(groups, metric.sign, factor.alone)
            order = [factor.within[pairs.groups[position]] for position in pairs.first]
            shown = _shown(order, groups, factor, metric.sign)
            listed = pair_records(groups, pairs.keep(np.isin(order, shown)), metric.sign)
            listed.sort(key=lambda record: shown.index(factor.within[record["higher"]]))
            most, left_out = max(most, len(order)), left_out or len(listed) < len(order)
            values = {group: called.value(value) for group, value in factor.values.items()}
            cells = pair_cells(listed, values.__getitem__)
            for record, tested in zip(listed, cells, strict=True):
                within = factor.within[record["higher"]]
                what = [text_cell(plan.called(factor.name)), text_cell(called.called(within))]
                rows.append([*start, *what, *tested])
                where = {"scale": scale, "metric": metric.column}
                records.append(where | {"factor": factor.name, "within": within} | record)
    folder = SweepDir(sweep_dir).tables
    if not rows:
        remove_sheet(folder, NAME)
        return
    heads = [*(["Task"] if len(score_scales) > 1 else []), "Factor", "Within"]
    note = _note(plan, left_out) + few_text(records, most)
    sheet = Sheet(NAME, "Differences by factor", note, [*heads, *HEADINGS], len(heads) + 2, rows)
    data = pd.DataFrame(records, columns=["scale", "metric", "factor", "within", *DATA])
    write_sheet(folder, sheet, data)


def factors_of(plan: Plan, groups: list[str]) -> list[Factor]:
    """Returns the swept names that tell groups apart; none where that is one name alone."""
    values = [plan.groups[group][0].values for group in groups]
    names = label_columns(plan.columns, values)
    if len(names) < 2:
        return []
    found = []
    for name in names:
        others = group_labels([one for one in names if one != name], values, "")
        own = [row[name] for row in values]
        found.append(Factor(name, *(dict(zip(groups, of, strict=True)) for of in (own, others))))
    return found


def _shown(order: list[str], groups: Mapping[str, Runs], factor: Factor, sign: int) -> list[str]:
    """Returns the settings of the other names that the table shows, in the sweep's order.

    `order`: those of each pair.
    """
    best: dict[str, float] = {}
    for group, runs in groups.items():
        mean, within = sign * float(runs.scores.mean()), factor.within[group]
        best[within] = max(best.get(within, mean), mean)
    kept, count = set[str](), 0
    for within in sorted(best, key=lambda within: -best[within]):
        count += order.count(within)
        if count > SHOWN_PAIRS and kept:
            break
        kept.add(within)
    return [within for within in best if within in kept]


def _note(plan: Plan, left_out: bool) -> str:
    text = (
        "Pairs of groups that differ in one swept name alone, within one setting of the others,"
        f" {tests_text(plan.rank, 'all such pairs of the name')}"
    )
    if left_out:
        text += (
            f" Shown: within the settings with the {plan.rank.extreme} means; all are corrected"
            " for."
        )
    return text
