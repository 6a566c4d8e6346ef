"""Parallel coordinates of a sweep for plotly: an axis for each swept name, then the score."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from qdsweep.analysis.figures.combinations import Combinations
from qdsweep.analysis.figures.coordinates import Upright, coordinates
from qdsweep.analysis.figures.marks import COLORMAP
from qdsweep.analysis.page.words import for_plotly
from qdsweep.analysis.text import mean_and_error, number, plural

MAX_LINES = 200


class Label(NamedTuple):
    """What is said of a line: its name, lines under it, and whether it is pale."""

    title: str
    lines: list[str]
    pale: bool = False


_BETWEEN = 12  # points between two axes, where the mouse finds a line


def parallel_coordinates(
    found: Combinations, about: Callable[[dict[str, Any]], Label], what: str = "group"
) -> tuple[tuple[list[dict[str, Any]], dict[str, Any]], str]:
    """Returns the traces, the layout and caption of one scale: a line for each combination.

    Args:
        found: The combinations.
        about: What is said of a row of their table.
        what: What a line is.
    """
    described = coordinates(found, MAX_LINES)
    count = len(described.axes)
    places = np.linspace(0, count - 1, (count - 1) * _BETWEEN + 1)
    traces = []
    for row, heights in zip(described.table.to_dict("records"), described.heights, strict=True):
        label, mean = about(row), row["mean"]
        decimals = max(0, 3 - math.floor(math.log10(abs(mean)))) if mean else 0
        score = mean_and_error(mean, row["se"], min(decimals, 6))
        said = f"{found.score.heading} {score} (n = {number(row['n'])})"
        lines = "<br>".join([*map(for_plotly, label.lines), said])
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": for_plotly(label.title),
                "x": places.astype(np.float32),
                "y": np.interp(places, range(count), heights).astype(np.float32),
                "line": {"width": 2, "color": _color(heights[-1], pale=label.pale)},
                "hovertemplate": f"<b>{for_plotly(label.title)}</b><br>{lines}<extra></extra>",
            }
        )
    caption = (
        f"A line per {what}: its swept values and, at the right and as its colour, the mean over"
        " its runs of the final score. Drag a box over lines to keep only those (with Shift: those"
        " in all boxes); double-click to have all back."
    )
    if len(traces) < len(found.table):
        caption += f" Shown: the best {len(traces)} of {plural(len(found.table), what)}."
    return (traces, _layout(described.axes)), caption


def _color(height: float, *, pale: bool) -> str:
    """Returns the colour of a line that ends at a height; the page itself changes opacities."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    found = colormaps[COLORMAP](height)
    if not pale:
        return str(to_hex(found))
    red, green, blue = (round(255 * part) for part in found[:3])
    return f"rgba({red},{green},{blue},0.3)"


def _layout(axes: list[Upright]) -> dict[str, Any]:
    """Returns vertical lines with their labels in the place of axes."""
    last = len(axes) - 1
    shapes = [
        {"type": "line", "x0": i, "x1": i, "y0": 0, "y1": 1, "line": {"color": "#5a6472"}}
        for i in range(len(axes))
    ]
    notes: list[dict[str, Any]] = []
    for position, axis in enumerate(axes):
        title = f"<b>{for_plotly(axis.title)}</b>"
        where = {"name": "title", "x": position, "y": 1.06, "yanchor": "bottom"}
        anchor = "left" if position == 0 else "right" if position == last else "center"
        notes.append(where | {"text": title, "xanchor": anchor})
        side, shift = ("left", 6) if 0 < position == last else ("right", -6)
        common = {"x": position, "xanchor": side, "xshift": shift, "font": {"size": 12}}
        common["bgcolor"] = "rgba(255,255,255,0.75)"
        for height, text in axis.ticks:
            cut = text if len(text) <= 22 else f"{text[:20]}…"
            notes.append(common | {"y": height, "text": for_plotly(cut)})
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
