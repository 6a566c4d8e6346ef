"""What learning curves show, for print and for the page: which metric over what, and its lines."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qdsweep.analysis.selection import SweepTables
from qdsweep.analysis.statistics import Band, around, spread
from qdsweep.metrics import (
    CORE_SECONDS,
    EVALUATIONS,
    RETURNS,
    STEPS,
    WALL_TIME,
    Metric,
    XAxis,
)
from qdsweep.text import short

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class View:
    """A metric on the vertical axis, over a horizontal one."""

    metric: Metric
    over: XAxis = EVALUATIONS


@dataclass(frozen=True)
class Line:
    """A group's curve over its `n` seeds, in the unit that a reader sees.

    Attributes:
        group: Its label.
        n: Number of runs.
        x: ``(k,)`` places on the horizontal axis.
        band: The metric there.
        seeds: Places and metric of each run, ``(k,)`` each, where each is drawn.
    """

    group: str
    n: int
    x: np.ndarray
    band: Band
    seeds: list[tuple[np.ndarray, np.ndarray]]


def printed_views(tables: SweepTables) -> list[View]:
    """Returns what a printed figure of learning curves shows, side by side."""
    others = [View(metric) for metric in tables.curve_metrics if metric not in RETURNS]
    over_steps = [View(metric, STEPS) for metric in RETURNS]
    return [*others, *over_steps, View(tables.drawn, WALL_TIME)]


def page_views(tables: SweepTables) -> list[View]:
    """Returns what a reader of the page may choose to see, first what shows the ranks."""
    first = View(tables.drawn, STEPS if tables.drawn in RETURNS else EVALUATIONS)
    views = [first, *map(View, tables.curve_metrics)]
    views += [View(tables.drawn, over) for over in (STEPS, WALL_TIME)]
    views += [View(metric, over) for metric in RETURNS for over in (STEPS, WALL_TIME, CORE_SECONDS)]
    return list(dict.fromkeys(views))  # it may be the one that ranks


def curve_lines(tables: SweepTables, groups: list[str], view: View) -> list[Line]:
    """Returns the line of each group, except of groups whose places on the axis are unknown.

    Tables of earlier releases may lack wall time and environment steps.
    """
    if view.over.name not in tables.curves:
        return []
    curves = dict(list(tables.curves.groupby("group", sort=False)))
    runs = tables.seed_curves
    by_seed = {} if runs is None else dict(list(runs.groupby("group", sort=False)))
    lines = [_line(curves[group], by_seed.get(group), view, tables.band) for group in groups]
    return [line for line in lines if np.isfinite(line.x).all()]


def _line(curve: "pd.DataFrame", runs: "pd.DataFrame | None", view: View, band: str) -> Line:
    metric, over = view.metric, view.over
    group, n, x = curve["group"].iloc[0], int(curve["n"].iloc[0]), curve[over.name].to_numpy(float)
    if runs is None:
        mean, error = (
            metric.factor * curve[f"{metric.name}_{part}"].to_numpy(float)
            for part in ("mean", "se")
        )
        return Line(group, n, x, around(mean, error, n, band), [])
    own = over.name.removesuffix("_mean")  # the wall time and the steps of a run are its own
    seeds = [
        (run[own].to_numpy(float), metric.factor * run[metric.name].to_numpy(float))
        for _, run in runs.groupby("id", sort=False)
    ]
    shown = spread(np.stack([values for _, values in seeds]), band)
    return Line(group, n, x, shown, seeds if band == "seeds" and n > 1 else [])


def time_text(tables: SweepTables, groups: list[str]) -> str:
    """Returns a sentence on the places of lines over time; empty where each is of one run."""
    if max(tables.run_counts(groups)) < 2:
        return ""
    return " Over time, a line is at the mean time of its runs for the same budget."


def is_defined(lines: list[Line]) -> bool:
    """Returns whether any line has a value."""
    return any(np.isfinite(line.band.middle).any() for line in lines)


def constant(lines: list[Line]) -> float | None:
    """Returns the one value of all lines at all times; None where they have several, or none.

    A mean of equal values may differ from them in its last bits.
    """
    every = np.concatenate([np.empty(0), *(line.band.middle for line in lines)])
    values = every[np.isfinite(every)]
    if len(values) and np.allclose(values, values[0], rtol=1e-14, atol=0):
        return float(values[0])
    return None


def telling(tables: SweepTables, views: list[View], groups: list[str]) -> tuple[list[View], str]:
    """Returns the views that tell groups apart, and a sentence on the others.

    The ranking metric and the one that shows its course always stay. Optional metrics that no
    group has are not mentioned.

    Args:
        tables: The tables of a sweep.
        views: The views that a figure may have.
        groups: The groups in it.
    """
    shown, text = [], ""
    for view in views:
        lines = curve_lines(tables, groups, view)
        value = constant(lines)
        if view.metric in (tables.drawn, tables.ranked):
            shown.append(view)
        elif view.metric.optional and not is_defined(lines):
            continue
        elif value is None:
            shown.append(view)
        else:
            text += f" {view.metric.heading}: {short(value)} everywhere, and not drawn."
    return shown, text
