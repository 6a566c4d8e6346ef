"""Parallel coordinates of a sweep for plotly: an axis for each swept name, then the score."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from qdsweep.analysis.figures.combinations import axis_of
from qdsweep.analysis.figures.style import COLORMAP
from qdsweep.analysis.page.words import for_plotly
from qdsweep.analysis.plan import Plan
from qdsweep.analysis.selection import Tables, compared_metric
from qdsweep.analysis.text import mean_and_error, number, plural
from qdsweep.sweep.groups import label_columns

MAX_LINES = 200
_BETWEEN = 12  # points between two axes, where the mouse finds a line


@dataclass(frozen=True)
class Line:
    """One axis: heights from 0 to 1, and where its labels stand.

    Attributes:
        title: Its name.
        heights: Value as text -> height.
        ticks: (height, label) pairs.
    """

    title: str
    heights: dict[str, float]
    ticks: list[tuple[float, str]]


def parallel_coordinates(
    plan: Plan, tables: Tables, groups: list[str]
) -> tuple[tuple[list[dict[str, Any]], dict[str, Any]], str]:
    """Returns the traces, the layout and caption: a line for each group, coloured by score.

    Args:
        plan: The sweep.
        tables: Its tables.
        groups: Groups of one scale.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    rows = tables.table.set_index("group")
    ranking = compared_metric(tables.rank, tables.summary, groups)
    metric, label = ranking.column, ranking.heading
    shown = tables.best(groups, MAX_LINES)
    scores = {group: float(rows.loc[group, f"{metric}_mean"]) for group in shown}
    values = {group: plan.groups[group][0].values for group in shown}
    told = label_columns(plan.columns, [values[group] for group in shown])
    names = [name for name in told if len({values[group][name] for group in shown}) > 1]
    lines = [_swept_axis(name, [values[group][name] for group in shown]) for name in names]
    score = _score_axis(label, scores)
    heights = {
        group: [
            *(line.heights[values[group][name]] for name, line in zip(names, lines, strict=True)),
            score.heights[group],
        ]
        for group in shown
    }
    axes = [*lines, score]
    places = np.linspace(0, len(axes) - 1, (len(axes) - 1) * _BETWEEN + 1)
    traces = []
    for group in sorted(shown, key=scores.__getitem__):  # the best on top
        row = rows.loc[group]
        mean, error, n = (float(row[f"{metric}_{part}"]) for part in ("mean", "se", "n"))
        swept = "<br>".join(
            for_plotly(f"{name} {values[group][name]}") for name in plan.group_columns
        )
        decimals = max(0, 3 - math.floor(math.log10(abs(mean)))) if mean else 0
        said = f"{label} {mean_and_error(mean, error, min(decimals, 6))} (n = {number(n)})"
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": for_plotly(group),
                "x": places.astype(np.float32),
                "y": np.interp(places, range(len(axes)), heights[group]).astype(np.float32),
                "line": {"width": 2, "color": to_hex(colormaps[COLORMAP](heights[group][-1]))},
                "hovertemplate": f"<b>{for_plotly(group)}</b><br>{swept}<br>{said}<extra></extra>",
            }
        )
    caption = (
        "A line a group: its swept values and, at the right and as its colour, the mean over its"
        " runs of the final score. Drag a box over lines to keep only those (with Shift: those in"
        " all boxes); double-click to have all back."
    )
    if len(shown) < len(groups):
        caption += f" Shown: the best {len(shown)} of {plural(len(groups), 'group')}."
    return (traces, _layout(axes)), caption


def _swept_axis(name: str, texts: list[str]) -> Line:
    axis = axis_of(name, list(dict.fromkeys(texts)))
    places = map(float, axis.places(axis.values))
    heights = dict(zip(axis.values, places, strict=True))
    ticks: list[tuple[float, str]] = []
    for text, place in heights.items():
        if not ticks or place - ticks[-1][0] > 0.045:  # labels must not overlap
            ticks.append((place, text if len(text) <= 22 else f"{text[:20]}…"))
    return Line(axis.label, heights, ticks)


def _score_axis(title: str, scores: dict[str, float]) -> Line:
    low, high = min(scores.values()), max(scores.values())
    span = high - low or 1.0
    heights = {group: (score - low) / span for group, score in scores.items()}
    decimals = max(0, 2 - math.floor(math.log10(span)))
    ticks = [(step / 4, number(low + span * step / 4, min(decimals, 6))) for step in range(5)]
    return Line(title, heights, ticks)


def _layout(axes: list[Line]) -> dict[str, Any]:
    """Returns vertical lines with their labels in the place of axes."""
    last = len(axes) - 1
    shapes = [
        {"type": "line", "x0": i, "x1": i, "y0": 0, "y1": 1, "line": {"color": "#5a6472"}}
        for i in range(len(axes))
    ]
    notes: list[dict[str, Any]] = []
    for position, axis in enumerate(axes):
        side = "left" if position == last and last > 0 else "right"
        shift = 6 if side == "left" else -6
        title = f"<b>{for_plotly(axis.title)}</b>"
        where = {"name": "title", "x": position, "y": 1.06, "yanchor": "bottom"}
        anchor = "left" if position == 0 else "right" if position == last else "center"
        notes.append(where | {"text": title, "xanchor": anchor})
        notes += [
            {
                "x": position,
                "y": height,
                "text": for_plotly(text),
                "xanchor": side,
                "xshift": shift,
                "bgcolor": "rgba(255,255,255,0.75)",
                "font": {"size": 12},
            }
            for height, text in axis.ticks
        ]
    hidden = {"visible": False, "fixedrange": True}
    left, right = (max(len(text) for _, text in axes[i].ticks) for i in (0, -1))
    return {
        "xaxis": hidden | {"range": [-0.004 * last, 1.004 * last]},
        "yaxis": hidden | {"range": [-0.05, 1.18]},
        "shapes": shapes,
        "annotations": [{"showarrow": False, **note} for note in notes],
        "showlegend": False,
        "margin": {"l": 20 + 7 * left, "r": 20 + 7 * right, "t": 10, "b": 10},
    }
