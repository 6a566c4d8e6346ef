"""Combinations of swept values whose scores compare, and their parallel coordinates."""

import math
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from qdsweep.analysis.columns import STATISTICS
from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.figure import Drawn
from qdsweep.analysis.figures.heatmap import add_parallel_lines
from qdsweep.analysis.figures.style import figure_width
from qdsweep.analysis.legend import COLORMAP
from qdsweep.analysis.selection import compared_metric
from qdsweep.metrics import Metric
from qdsweep.sweep.groups import CHANGES, MEMBER, label_columns
from qdsweep.text import TIMES, apart, exact, plural, short_number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_TICKS = 8


@dataclass(frozen=True)
class Axis:
    """The values of a swept parameter on a line.

    Attributes:
        name: As it was swept.
        values: Its values as text; numbers ascending, others in the sweep's order.
        numbers: ``(k,)`` the values as numbers; None where one is none.
        log: Whether they are positive and span two decades or more.
        label: Its label for a reader.
    """

    name: str
    values: list[str]
    numbers: np.ndarray | None
    log: bool
    label: str

    def places(self, texts: Iterable[str]) -> np.ndarray:
        """Returns the places of values on the axis, 0 to 1: numbers to scale, categories evenly.

        A value that was not drawn, an empty text, has no place (nan).
        """
        if self.numbers is None:
            steps = max(len(self.values) - 1, 1)
            return np.array([self.values.index(t) / steps if t else math.nan for t in texts])
        return self.share(np.array([float(text) if text else math.nan for text in texts]))

    def share(self, numbers: np.ndarray) -> np.ndarray:
        """Returns the places of numbers on the axis, 0 to 1."""
        assert self.numbers is not None, "categories have no numbers"
        low, high = self.numbers[0], self.numbers[-1]
        if self.log:
            numbers, low, high = np.log(numbers), np.log(low), np.log(high)
        return (numbers - low) / (high - low)

    @cached_property
    def texts(self) -> dict[str, str]:
        """Value -> its label: text that is not too long, numbers in digits that differ."""
        if self.numbers is None:
            return {value: _category(value) for value in self.values}
        return dict(zip(self.values, apart(self.numbers), strict=True))


@dataclass(frozen=True)
class Combinations:
    """All combinations of swept values whose scores compare.

    Attributes:
        scale: Their domain, archive and offset in words.
        axes: The names that vary, without the seed, in the sweep's order.
        score: The metric that ranks.
        table: A row for each combination: the values as text under their names, mean, se
            (standard error over seeds) and n of the score, and `group`.
        missing: How many further combinations have no score.
    """

    scale: str
    axes: list[Axis]
    score: Metric
    table: "pd.DataFrame"
    missing: int = 0

    @property
    def missing_text(self) -> str:
        """A sentence on combinations without a score; empty where all have one."""
        if not self.missing:
            return ""
        return f" Not shown: {plural(self.missing, 'combination')} without {self.score.phrase}."

    @property
    def names(self) -> list[str]:
        """The names that vary."""
        return [axis.name for axis in self.axes]


def combinations(data: SweepData) -> list[Combinations]:
    """Returns the combinations of each scale that has more than one: its groups."""
    import pandas as pd

    every = []
    table = data.table.set_index("group")
    for scale, groups in data.score_scales.items():
        own = [group for group in groups if group not in data.plan.imported_groups]
        score = compared_metric(data.rank, data.summary, own)
        groups = [group for group in own if table[f"{score.column}_n"][group]]
        if not groups:
            continue
        values = {group: data.plan.groups[group][0].values for group in groups}
        rows = pd.DataFrame([values[group] for group in groups], dtype=str)
        telling = label_columns(data.plan.columns, [values[group] for group in groups])
        members = {MEMBER} if CHANGES in data.plan.columns else set()
        names = [name for name in telling if name not in members and rows[name].nunique() > 1]
        if not names:
            continue
        statistics = table.loc[groups, [f"{score.column}_{part}" for part in STATISTICS]]
        statistics.columns = list(STATISTICS)
        combined = pd.concat([rows[names], statistics.reset_index()], axis=1)
        axes = [
            axis_of(name, list(dict.fromkeys(rows[name])), data.plan.names[name]) for name in names
        ]
        every.append(Combinations(scale, axes, score, combined, len(own) - len(groups)))
    return every


def axis_of(
    name: str, values: list[str], label: str | None = None, *, logged: bool = False
) -> Axis:
    """Returns the axis of a swept parameter, from its distinct values in the order of the sweep.

    `label`: its label; None: the last part of the name. `logged`: whether the values are drawn on
    a logarithmic scale. Values that span a factor of 100 are shown on one, too.
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


def seed_count(counts: "pd.Series", noun: str = "seed") -> str:
    """Returns the number of seeds behind means: `5 seeds`, or `3 to 5 seeds`."""
    low, high = int(counts.min()), int(counts.max())
    return plural(low, noun) if low == high else f"{low} to {plural(high, noun)}"


def log_text(axes: list[Axis]) -> str:
    """Returns the logarithmic axes as a sentence; nothing where there is none."""
    names = [axis.label for axis in axes if axis.log]
    return f" Logarithmic: {', '.join(names)}." if names else ""


@dataclass(frozen=True)
class Upright:
    """One of the parallel axes: its title, and heights from 0 to 1 with their labels."""

    title: str
    ticks: list[tuple[float, str]]


@dataclass(frozen=True)
class Coordinates:
    """A line for each combination of swept values, which ends at its score.

    Attributes:
        axes: The swept parameters, and the score.
        table: Rows of the combinations' table, the best one last.
        heights: ``(n, k)`` where the line of each row crosses each axis, from 0 to 1.
        limits: The scores at the heights 0 and 1.
    """

    axes: list[Upright]
    table: "pd.DataFrame"
    heights: np.ndarray
    limits: tuple[float, float]


def coordinates(combined: Combinations, most: int | None = None) -> Coordinates:
    """Returns the parallel coordinates of combinations: of the best `most`, or of all."""
    table = combined.table.sort_values("mean", kind="stable")
    table = table if most is None else table.tail(most)
    low, high = score_limits(table["mean"])
    columns = [axis.places(table[axis.name]) for axis in combined.axes]
    heights = np.column_stack([*columns, (table["mean"] - low) / (high - low)])
    unit = " (%)" if combined.score.percent else ""
    score = Upright(combined.score.phrase + unit, _score_ticks(low, high))
    axes = [Upright(axis.label, _ticks(axis)) for axis in combined.axes]
    return Coordinates([*axes, score], table, heights, (low, high))


def _score_ticks(low: float, high: float) -> list[tuple[float, str]]:
    from matplotlib.ticker import MaxNLocator

    ticks = [t for t in MaxNLocator(5).tick_values(low, high) if low <= t <= high]
    return list(
        zip(
            [(tick - low) / (high - low) for tick in ticks],
            apart(ticks, written=short_number),
            strict=True,
        )
    )


def _ticks(axis: Axis) -> list[tuple[float, str]]:
    """Returns heights and texts of the labels of an axis, far enough apart not to overlap."""
    if axis.numbers is None or len(axis.values) <= MOST_TICKS:
        ticks = list(zip(axis.places(axis.values), axis.texts.values(), strict=True))
    else:
        numbers = nice_numbers(axis)
        ticks = list(zip(axis.share(numbers), apart(numbers), strict=True))
    spaced = ticks[-1:]
    for height, text in reversed(ticks[:-1]):
        if spaced[-1][0] - height >= 0.045:
            spaced.append((height, text))
    return [(float(height), text) for height, text in spaced]


def nice_numbers(axis: Axis) -> np.ndarray:
    """Returns round numbers along the axis of a swept parameter."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    assert axis.numbers is not None, "categories have no numbers"
    low, high = axis.numbers[0], axis.numbers[-1]
    wide = (1.0,) if high >= 100 * low else (1.0, 2.0, 5.0)
    numbers = np.array(LogLocator(subs=wide).tick_values(low, high) if axis.log else [])
    numbers = numbers[(numbers >= low) & (numbers <= high)]
    if len(numbers) > 1:
        return numbers
    numbers = np.array(MaxNLocator(5).tick_values(low, high))
    return numbers[(numbers >= low) & (numbers <= high)]


def _category(text: str) -> str:
    """Returns a value as a label that is not too long, a number with a true minus."""
    with suppress(ValueError):
        return exact(float(text)) if math.isfinite(float(text)) else text
    return text.replace(", ", f" {TIMES} ").strip("[]") if text.startswith("[") else text


def score_limits(values: "pd.Series") -> tuple[float, float]:
    """Returns the lowest and the highest score, apart from each other."""
    low, high = float(values.min()), float(values.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def parallel_coordinates(
    combined: Combinations,
    name: str,
    section: str,
    where: str,
    faint: Collection[str] = frozenset(),
) -> Drawn:
    """Draws a line for each combination of swept values, which ends at its score.

    Args:
        combined: The combinations.
        name: The figure's name.
        section: Its section of the report.
        where: The scale as a sentence, if there are several.
        faint: Groups whose lines are pale.
    """
    from matplotlib.figure import Figure

    described = coordinates(combined)
    table, heights, (low, high) = described.table, described.heights, described.limits
    last = len(combined.axes)
    figure = Figure(figsize=(figure_width(1.5 * last + 2.2), 3.8), layout="constrained")
    ax = figure.subplots()
    few, pale = len(table) <= 50, table["group"].isin(faint).to_numpy()
    order = np.argsort(~pale, kind="stable")  # pale ones below
    add_parallel_lines(
        ax,
        heights[order],
        array=table["mean"].to_numpy()[order],
        cmap=COLORMAP,
        clim=(low, high),
        linewidths=1.6 if few else 0.8,
        alpha=np.where(pale[order], 0.18, 0.9 if few else 0.6),
    )
    *swept, score = described.axes
    for place, axis in enumerate(swept):
        _axis_line(ax, place, axis.ticks)
    # The last axis is the colour bar.
    gradient = np.linspace(0, 1, 256)[:, None]
    ax.imshow(
        gradient,
        COLORMAP,
        aspect="auto",
        origin="lower",
        extent=(last, last + 0.07, 0, 1),
        zorder=2,
    )
    for height, text in score.ticks:
        ax.annotate(
            text, (last + 0.07, height), (4, 0), textcoords="offset points",
            va="center", fontsize=8,
        )  # fmt: skip
    ax.set(xlim=(-0.45, last + 0.35), ylim=(-0.03, 1.03), yticks=[])
    ax.set_xticks(range(last + 1), [axis.title for axis in described.axes])
    ax.tick_params(length=0, pad=6)
    ax.spines[:].set_visible(False)
    caption = (
        f"Each line is one of {plural(len(table), 'combination')} of swept values. Its end and"
        f" colour show the final {combined.score.phrase}, mean over"
        f" {seed_count(table['n'])}.{combined.missing_text}{log_text(combined.axes)}{where}"
    )
    data = combined.table[[*combined.names, *STATISTICS]]
    return Drawn(name, section, "Parallel coordinates", caption, figure, data)


def _axis_line(ax: "Axes", place: int, ticks: list[tuple[float, str]]) -> None:
    ax.plot([place, place], [0, 1], color="0.3", linewidth=0.8, zorder=3)
    for height, text in ticks:
        ax.annotate(
            text,
            (place, height),
            (-4, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            zorder=4,
            bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.8},
            fontsize=7.5,
        )
