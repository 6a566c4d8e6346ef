"""Legends below figures: blocks side by side, one for each swept name that tells lines apart.

Figures of several parts, with a legend below each or one for all.
"""

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from qdsweep.analysis.figures.style import add_heading, line_style, wrap
from qdsweep.analysis.marks import Block
from qdsweep.sweep.groups import MOST_PANELS
from qdsweep.text import plain

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


_LINE = 0.165  # inches
_LOOK: dict[str, Any] = {"handlelength": 3, "columnspacing": 1.5, "borderaxespad": 0}


def legend_height(blocks: list[Block], inches: float) -> float:
    """Returns the height that `add_legend` needs [inches]."""
    titles = any(block.title for block in blocks)
    return 0.3 + _LINE * (sum(_rows(part, inches) + titles for part in _stacked(blocks, inches)))


def add_legend(strip: "SubFigure", blocks: list[Block], title: str, inches: float) -> None:
    """Fills a strip below axes, `inches` wide, with a legend and what its bands are."""
    height = legend_height(blocks, inches)
    if not any(block.title for block in blocks):
        (block,) = blocks
        columns = _columns(block, _rows(blocks, inches))
        strip.legend(*_handles(block), title=title, loc="center", ncols=columns, **_LOOK)
        return
    strip.text(0.5, 1 - 0.05 / height, title, ha="center", va="top", fontsize=_letters("title"))
    top = 1 - (0.05 + _LINE) / height
    for part in _stacked(blocks, inches):
        rows = _rows(part, inches)
        widths = [_width(block, rows) for block in part]
        left = (inches - sum(widths)) / 2
        for block, width in zip(part, widths, strict=True):
            legend = strip.legend(
                *_handles(block),
                title=block.title,
                alignment="left",
                loc="upper left",
                bbox_to_anchor=(max(left, 0) / inches, top),
                ncols=_columns(block, rows),
                **_LOOK,
            )
            legend.set_in_layout(False)  # the strip has its height already
            left += width
        top -= _LINE * (rows + 1) / height


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


def _stacked(blocks: list[Block], inches: float) -> list[list[Block]]:
    """Returns the blocks that stand side by side: all of them, or each alone."""
    beside = sum(_width(block, len(block.entries)) for block in blocks) <= inches
    return [blocks] if beside else [[block] for block in blocks]


def _rows(blocks: list[Block], inches: float) -> int:
    """Returns the fewest rows in which blocks fit beside each other."""
    most = max(len(block.entries) for block in blocks)
    fitting = (
        rows for rows in range(1, most) if sum(_width(block, rows) for block in blocks) <= inches
    )
    return next(fitting, most)


def _columns(block: Block, rows: int) -> int:
    return math.ceil(len(block.entries) / rows)


def _width(block: Block, rows: int) -> float:
    letter = _letters("") / 72
    # Handle, gap, letters, space to the next column.
    longest = max(_length(label) for label, _ in block.entries)
    widest = letter * (3 + 0.8 + 0.56 * longest + 1.5)
    titled = letter * (0.56 * _length(block.title) + 2)
    return max(widest * _columns(block, rows), titled)


def _length(label: str) -> int:
    """Returns how many letters wide a label is; the signs of a formula are few."""
    return len(label) if label.count("$") < 2 else max(len(plain(label)), 1)


def _letters(which: str) -> float:
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    size = rcParams["legend.title_fontsize" if which else "legend.fontsize"]
    return FontProperties(size=size).get_size_in_points()


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
