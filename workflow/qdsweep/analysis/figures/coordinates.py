"""Parallel coordinates of a sweep, for print and for the page: axes with ticks, and lines."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qdsweep.analysis.figures.combinations import Axis, Combinations
from qdsweep.analysis.figures.style import short_number
from qdsweep.analysis.text import TIMES, short

if TYPE_CHECKING:
    import pandas as pd

MOST_TICKS = 8


@dataclass(frozen=True)
class Upright:
    """One of the parallel axes: its title, and heights from 0 to 1 with their labels."""

    title: str
    ticks: list[tuple[float, str]]


@dataclass(frozen=True)
class Coordinates:
    """A line a combination of swept values, which ends at its score.

    Attributes:
        axes: The swept names, and the score.
        table: Rows of the combinations' table, the best one last.
        heights: ``(n, k)`` where the line of each row crosses each axis, from 0 to 1.
        limits: The scores at the heights 0 and 1.
    """

    axes: list[Upright]
    table: "pd.DataFrame"
    heights: np.ndarray
    limits: tuple[float, float]


def coordinates(found: Combinations, most: int | None = None) -> Coordinates:
    """Returns the parallel coordinates of combinations: of the best `most`, or of all."""
    table = found.table.sort_values("mean", kind="stable")
    table = table if most is None else table.tail(most)
    low, high = score_limits(table["mean"])
    columns = [axis.places(table[axis.name]) for axis in found.axes]
    heights = np.column_stack([*columns, (table["mean"] - low) / (high - low)])
    unit = " (%)" if found.score.percent else ""
    score = Upright(found.score.phrase + unit, _score_ticks(low, high))
    axes = [Upright(axis.label, _ticks(axis)) for axis in found.axes]
    return Coordinates([*axes, score], table, heights, (low, high))


def _score_ticks(low: float, high: float) -> list[tuple[float, str]]:
    from matplotlib.ticker import MaxNLocator

    ticks = [t for t in MaxNLocator(5).tick_values(low, high) if low <= t <= high]
    return [((tick - low) / (high - low), short_number(tick)) for tick in ticks]


def _ticks(axis: Axis) -> list[tuple[float, str]]:
    """Heights and texts of an axis' labels, none so near to another that they overlap."""
    if axis.numbers is None or len(axis.values) <= MOST_TICKS:
        texts = [tick_text(value) for value in axis.values]
        ticks = list(zip(axis.places(axis.values), texts, strict=True))
    else:
        numbers = nice_numbers(axis)
        ticks = list(zip(axis.share(numbers), map(short, numbers), strict=True))
    kept = ticks[-1:]
    for height, text in reversed(ticks[:-1]):
        if kept[-1][0] - height >= 0.045:
            kept.append((height, text))
    return [(float(height), text) for height, text in kept]


def nice_numbers(axis: Axis) -> np.ndarray:
    """Returns round numbers along the axis of a swept name."""
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


def tick_text(value: object) -> str:
    """Returns a value as a label: text that is not too long, numbers with a true minus."""
    text = str(value)
    try:
        return short(float(text))
    except ValueError:
        return text.replace(", ", f" {TIMES} ").strip("[]") if text.startswith("[") else text


def score_limits(values: "pd.Series") -> tuple[float, float]:
    """Returns the lowest and the highest score, apart from each other."""
    low, high = float(values.min()), float(values.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)
