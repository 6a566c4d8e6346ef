"""Figures of several parts, with a legend below each or one for all."""

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from qdsweep.analysis.figures.legend import add_legend, legend_height
from qdsweep.analysis.figures.marks import Block
from qdsweep.analysis.figures.style import add_heading
from qdsweep.sweep.encoding import MOST_PANELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

MAX_LINES = 12
MAX_PANELS = MOST_PANELS
_HEADING = 0.3  # inches


class Part(NamedTuple):
    """A part of a figure.

    Attributes:
        panel: The place of its axes.
        strip: That of its legend; None where one for all stands below the last part.
        inches: How wide the strip is.
        legend: Its legend.
    """

    panel: "SubFigure"
    strip: "SubFigure | None"
    inches: float
    legend: list[Block]

    def add_legend(self, title: str) -> None:
        """Adds the legend, unless it stands elsewhere."""
        if self.strip is not None:
            add_legend(self.strip, self.legend, title, self.inches)


def lay_out(
    legends: Mapping[str, list[Block]], columns: int, width: float, height: float
) -> tuple["Figure", list[Part]]:
    """Lays out a figure with a part under each heading; one part alone has none.

    Args:
        legends: Heading -> legend of the lines under it. If they are all the same, there is one.
        columns: Parts side by side.
        width: Of the figure [inches].
        height: Of a part without heading and legend [inches].

    Returns:
        The figure and its parts.
    """
    from matplotlib.figure import Figure

    count = len(legends)
    every = list(legends.values())
    rows = math.ceil(count / columns)
    height += _HEADING * (count > 1)
    alike = all(legend == every[0] for legend in every)
    inches = width if alike else width / columns
    legend = max(legend_height(some, inches) for some in every)
    if alike:
        figure = Figure(figsize=(width, rows * height + legend), layout="constrained")
        top, strip = _split(figure, rows * height, legend)
        panels = list(top.subfigures(rows, columns, squeeze=False).flat)[:count]
        strips = [None] * (count - 1) + [strip]
        parts = [Part(*found, inches, every[0]) for found in zip(panels, strips, strict=True)]
    else:
        figure = Figure(figsize=(width, rows * (height + legend)), layout="constrained")
        cells = list(figure.subfigures(rows, columns, squeeze=False).flat)[:count]
        parts = [
            Part(*_split(cell, height, legend), inches, some)
            for cell, some in zip(cells, every, strict=True)
        ]
    if count > 1:
        for heading, part in zip(legends, parts, strict=True):
            add_heading(part.panel, heading, width / columns)
    return figure, parts


def level(drawn: Iterable[tuple[Hashable, "Axes"]]) -> None:
    """Gives axes of the same key the same vertical extent, that of all of them."""
    alike: dict[Hashable, list[Axes]] = {}
    for key, ax in drawn:
        alike.setdefault(key, []).append(ax)
    for axes in alike.values():
        low, high = zip(*(ax.get_ylim() for ax in axes), strict=True)
        for ax in axes:
            ax.set_ylim(min(low), max(high))


def _split(
    figure: "Figure | SubFigure", height: float, below: float
) -> tuple["SubFigure", "SubFigure"]:
    top, bottom = figure.subfigures(2, 1, squeeze=False, height_ratios=[height, below])[:, 0]
    return top, bottom
