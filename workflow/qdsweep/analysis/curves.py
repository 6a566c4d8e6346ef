"""What learning curves show, for print and for the page: which metric over what, and its lines."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qdsweep.analysis.selection import Tables
from qdsweep.metrics import EVALUATIONS, METRICS, WALL_TIME, Metric, XAxis, curves_of, drawn_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class View:
    """A metric on the vertical axis, over a horizontal one."""

    metric: Metric
    over: XAxis = EVALUATIONS


@dataclass(frozen=True)
class Line:
    """A group's mean over its `n` seeds, with a band of ± one standard error (nan: unknown).

    ``(k,)`` each: places on the horizontal axis, and the metric there, as a reader sees it.
    """

    group: str
    n: int
    x: np.ndarray
    mean: np.ndarray
    error: np.ndarray


def printed_views(rank: Metric, metrics: tuple[Metric, ...] = METRICS) -> list[View]:
    """Returns what a printed figure of learning curves shows, side by side."""
    return [*map(View, drawn_of(metrics)), View(rank.drawn, WALL_TIME)]


def page_views(rank: Metric, metrics: tuple[Metric, ...] = METRICS) -> list[View]:
    """Returns what a reader of the page may choose to see, the ranking metric first."""
    first = sorted(curves_of(metrics), key=lambda metric: metric != rank)
    return [*map(View, first), View(rank.drawn, WALL_TIME)]


def curve_lines(tables: Tables, groups: list[str], view: View) -> list[Line]:
    """Returns the line of each group."""
    metric, curves = view.metric, dict(list(tables.curves.groupby("group", sort=False)))
    return [_line(group, curves[group], metric, view.over) for group in groups]


def _line(group: str, curve: "pd.DataFrame", metric: Metric, over: XAxis) -> Line:
    mean, error = (
        metric.factor * curve[f"{metric.name}_{part}"].to_numpy(float) for part in ("mean", "se")
    )
    return Line(group, int(curve["n"].iloc[0]), curve[over.name].to_numpy(float), mean, error)


def is_defined(lines: list[Line]) -> bool:
    """Tells whether any line has a value."""
    return any(np.isfinite(line.mean).any() for line in lines)
