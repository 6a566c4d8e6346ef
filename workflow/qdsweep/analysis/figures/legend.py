"""Legends below figures: blocks side by side, one for each swept name that tells lines apart."""

import math
from typing import TYPE_CHECKING, Any

from qdsweep.analysis.figures.marks import Block
from qdsweep.analysis.figures.style import line_style, wrap
from qdsweep.analysis.formula import plain

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

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
