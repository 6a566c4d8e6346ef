"""What a sweep varied within one scale: combinations of swept values and their mean scores."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qdsweep.analysis.selection import Tables, compared_metric
from qdsweep.analysis.text import plural
from qdsweep.metrics import Metric
from qdsweep.records.plan import Plan
from qdsweep.sweep.groups import MEMBER, label_columns

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Axis:
    """The values of a swept name on a line.

    Attributes:
        name: As it was swept.
        values: Its values as text; numbers ascending, others in the sweep's order.
        numbers: ``(k,)`` the values as numbers; None where one is none.
        log: Whether they are positive and span two decades or more.
        label: What a reader calls it.
    """

    name: str
    values: list[str]
    numbers: np.ndarray | None
    log: bool
    label: str

    def places(self, texts: Iterable[str]) -> np.ndarray:
        """Returns where values stand on the axis, 0 to 1: numbers to scale, categories evenly.

        A value that was not drawn, an empty text, stands nowhere (nan).
        """
        if self.numbers is None:
            steps = max(len(self.values) - 1, 1)
            return np.array([self.values.index(t) / steps if t else math.nan for t in texts])
        return self.share(np.array([float(text) if text else math.nan for text in texts]))

    def share(self, numbers: np.ndarray) -> np.ndarray:
        """Returns where numbers stand on the axis, 0 to 1."""
        assert self.numbers is not None, "categories have no numbers"
        low, high = self.numbers[0], self.numbers[-1]
        if self.log:
            numbers, low, high = np.log(numbers), np.log(low), np.log(high)
        return (numbers - low) / (high - low)


@dataclass(frozen=True)
class Combinations:
    """All combinations of swept values whose scores compare.

    Attributes:
        scale: What they share, in words.
        axes: The names that vary, without the seed, in the sweep's order.
        score: The metric that ranks.
        table: A row for each combination: the values as text under their names, mean, se
            (standard error over seeds) and n of the score, and `group`.
    """

    scale: str
    axes: list[Axis]
    score: Metric
    table: "pd.DataFrame"

    @property
    def names(self) -> list[str]:
        """The names that vary."""
        return [axis.name for axis in self.axes]


def combinations(plan: Plan, tables: Tables) -> list[Combinations]:
    """Returns the combinations of each scale that has more than one: its groups."""
    import pandas as pd

    found = []
    table = tables.table.set_index("group")
    for scale, groups in tables.score_scales.items():
        groups = [group for group in groups if group not in plan.imported_groups]
        if not groups:
            continue
        values = {group: plan.groups[group][0].values for group in groups}
        rows = pd.DataFrame([values[group] for group in groups], dtype=str)
        told = label_columns(plan.columns, [values[group] for group in groups])
        names = [name for name in told if name != MEMBER and rows[name].nunique() > 1]
        if not names:
            continue
        score = compared_metric(tables.rank, tables.summary, groups)
        statistics = table.loc[groups, [f"{score.column}_{part}" for part in ("mean", "se", "n")]]
        statistics.columns = ["mean", "se", "n"]
        combined = pd.concat([rows[names], statistics.reset_index()], axis=1)
        axes = [
            axis_of(name, list(dict.fromkeys(rows[name])), plan.figures.names.get(name))
            for name in names
        ]
        found.append(Combinations(scale, axes, score, combined))
    return found


def axis_of(
    name: str, values: list[str], label: str | None = None, *, logged: bool = False
) -> Axis:
    """Returns the axis of a swept name, from its distinct values in the order of the sweep.

    `label`: what a reader calls it; None: by the last part of the name. `logged`: whether the
    values are drawn on a logarithmic scale; those that span a factor of 100 are shown on one.
    """
    label = label or name.split(".")[-1]
    values = [value for value in values if value]  # an empty one was not drawn
    try:
        numbers = sorted((float(value), value) for value in values)
    except ValueError:
        return Axis(name, values, None, False, label)
    if len(numbers) < 2 or not all(math.isfinite(number) for number, _ in numbers):
        return Axis(name, values, None, False, label)
    array = np.array([number for number, _ in numbers])
    log = bool(array[0] > 0 and (logged or array[-1] / array[0] >= 100))
    return Axis(name, [value for _, value in numbers], array, log, label)


def seeds_text(counts: "pd.Series", noun: str = "seed") -> str:
    """Returns over how many seeds means are: `5 seeds`, or `3 to 5 seeds`."""
    low, high = int(counts.min()), int(counts.max())
    return plural(low, noun) if low == high else f"{low} to {plural(high, noun)}"


def log_text(axes: list[Axis]) -> str:
    """Returns which axes are logarithmic, as a sentence; nothing where none is."""
    names = [axis.label for axis in axes if axis.log]
    return f" Logarithmic: {', '.join(names)}." if names else ""
