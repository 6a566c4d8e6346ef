"""Figures of several parts, and the legends below them: a block for each swept parameter."""

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from qdsweep.analysis.figures.style import add_heading, line_style, wrap
from qdsweep.analysis.legend import Block
from qdsweep.sweep.looks import MOST_PANELS

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


LegendEntry = tuple["Artist", str]
_LOOK: dict[str, Any] = {"handlelength": 3, "columnspacing": 1.5, "borderaxespad": 0}
_SPACE = 0.2  # inches above and below a legend

MAX_LINES = 12
MAX_PANELS = MOST_PANELS
_HEADING = 0.3  # inches


def needs_legend(blocks: list[Block]) -> bool:
    """Returns whether there is more than a single line."""
    return len(blocks) > 1 or len(blocks[0].entries) > 1 or blocks[0].filled


def legend_height(blocks: list[Block], inches: float) -> float:
    """Returns the height of a legend below axes [inches]."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(inches, 1.0))
    add_legend(figure, blocks, "title", inches)
    return float(figure.legends[0].get_window_extent().height) / figure.dpi + _SPACE


def add_legend(
    figure: "Figure | SubFigure", blocks: list[Block], title: str, inches: float
) -> None:
    """Adds a legend below a figure or a part of it, in as few rows as fit into its width.

    Args:
        figure: The figure or the part.
        blocks: They stand side by side, or below each other where that is too wide.
        title: What the bands are.
        inches: Width of the figure or the part.
    """
    layouts, most = [], max(len(block.entries) for block in blocks)
    for rows in range(1, most + 2):  # the last one has no gaps between blocks
        parts = [_columns(block, min(rows, most)) for block in blocks]
        gap = [[_blank()] * len(parts[0][0])] if rows <= most else []
        layouts.append([column for part in parts for column in (*gap, *part)][len(gap) :])
    parts = [_columns(block, len(block.entries)) for block in blocks]
    layouts.append([[entry for (column,) in parts for entry in column]])
    for columns in layouts:
        handles, labels = zip(*itertools.chain(*columns), strict=True)
        legend = figure.legend(
            handles, labels, title=title, ncols=len(columns), loc="outside lower center", **_LOOK
        )
        if columns is layouts[-1] or legend.get_window_extent().width <= inches * figure.dpi:
            return
        legend.remove()


def _columns(block: Block, rows: int) -> list[list[LegendEntry]]:
    """Returns the columns of a block in a legend, under its title, filled up with blanks."""
    entries = list(zip(*_handles(block), strict=True))
    entries += [_blank()] * (-len(entries) % rows)
    columns = [entries[start : start + rows] for start in range(0, len(entries), rows)]
    heads = [_blank(block.title), *[_blank()] * (len(columns) - 1)]
    if not block.title:
        return columns
    return [[head, *column] for head, column in zip(heads, columns, strict=True)]


def _blank(label: str = "") -> LegendEntry:
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle=""), label


def add_inside(ax: "Axes", blocks: list[Block], title: str, inches: float) -> None:
    """Adds a legend to the axes, where there is room; the title is wrapped to `inches`."""
    (block,) = blocks
    title = wrap(title, inches, 7.5)
    ax.legend(*_handles(block), title=title, alignment="left", handlelength=3)


def _handles(block: Block) -> tuple[list["Artist"], list[str]]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Artist] = [
        Patch(color=mark.color) if block.filled else Line2D([], [], **line_style(mark))
        for _, mark in block.entries
    ]
    return handles, [label for label, _ in block.entries]


class FigurePart(NamedTuple):
    """A part of a figure.

    Attributes:
        panel: The place of its axes.
        around: The panel, or the figure where all parts have one legend. The legend is below it.
            None for the parts before the last one of these, and where no legend is needed.
        inches: Width of that.
        legend: Its legend.
    """

    panel: "SubFigure"
    around: "Figure | SubFigure | None"
    inches: float
    legend: list[Block]

    def add_legend(self, title: str) -> None:
        """Adds the legend, unless another part does or none is needed."""
        if self.around is not None:
            add_legend(self.around, self.legend, title, self.inches)


def lay_out(
    legends: Mapping[str, list[Block]], columns: int, width: float, height: float
) -> tuple["Figure", list[FigurePart]]:
    """Lays out a figure with a part under each heading; a single part has none.

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
    is_needed = not alike or needs_legend(every[0])
    legend = max(legend_height(some, inches) for some in every) if is_needed else 0.0
    total = rows * height + legend if alike else rows * (height + legend)
    figure = Figure(figsize=(width, total), layout="constrained")
    panels = list(figure.subfigures(rows, columns, squeeze=False).flat)[:count]
    around = [None] * (count - 1) + [figure if is_needed else None] if alike else panels
    places = zip(panels, around, every, strict=True)
    parts = [FigurePart(panel, place, inches, own) for panel, place, own in places]
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
