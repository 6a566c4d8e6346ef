"""The look of every figure: colours, line styles, numbers on axes, and saving without dates."""

import math
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from qdsweep.analysis.text import short
from qdsweep.files import atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, SubFigure

# Okabe and Ito's palette without yellow, which is too pale on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))
MARKERS = ("", "o", "s", "^", "D", "v")
COLORMAP = "viridis"
EMPTY_CELL = "#e9e9e9"
NOTE: dict[str, Any] = {"fontsize": 7.5, "color": "0.35"}

_RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.edgecolor": "0.3",
    "axes.formatter.useoffset": False,
    "axes.axisbelow": True,
    "axes.grid": False,
    "grid.color": "0.9",
    "grid.linewidth": 0.7,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "legend.title_fontsize": 7.5,
    "lines.linewidth": 1.6,
    "figure.facecolor": "white",
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "svg.hashsalt": "qdsweep",
}
# A figure in print is not scaled, so these are the sizes that a reader sees.
_PRINT: dict[str, Any] = {
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7,
    "lines.linewidth": 1.2,
    "savefig.dpi": 300,
}
# With dates and versions the same figure would be another file each time.
_METADATA: dict[str, dict[str, Any]] = {
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
}
_MM = 25.4


# What the user wants: a width in print [inches], colours by position.
_width: ContextVar[float | None] = ContextVar("width", default=None)
_colors: ContextVar[Mapping[int, str]] = ContextVar("colors", default=MappingProxyType({}))


@contextmanager
def style(
    column_width: float | None = None, colors: Mapping[int, str] | None = None
) -> Iterator[None]:
    """Draws and saves with our settings, whatever the user's matplotlibrc says.

    Args:
        column_width: Width of a figure in print [mm]; None: as it comes.
        colors: Colours of groups by position, instead of the palette's.
    """
    import matplotlib

    width = None if column_width is None else column_width / _MM
    tokens = _width.set(width), _colors.set(colors or {})
    try:
        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(_RC if width is None else _RC | _PRINT)
            yield
    finally:
        _width.reset(tokens[0])
        _colors.reset(tokens[1])


def figure_width(natural: float) -> float:
    """Returns how wide a figure may be [inches]: as wide as is natural, or the column in print."""
    return _width.get() or natural


def line_style(position: int) -> dict[str, Any]:
    """Returns how the line of the n-th group looks: neighbours differ in colour and dashes.

    Of these there are 28 pairs; further groups have marks as well.
    """
    pairs = len(COLORS) * len(DASHES)
    return {
        "color": _colors.get().get(position, COLORS[position % len(COLORS)]),
        "linestyle": DASHES[position % len(DASHES)],
        "marker": MARKERS[position // pairs % len(MARKERS)],
        "markersize": 4,
        "markevery": 0.12,
    }


def draw_line(ax: "Axes", label: str, position: int, x: Any, y: Any, low: Any, high: Any) -> None:
    """Draws the line of the n-th group, and a band from `low` to `high` where these are known."""
    look = line_style(position)
    ax.plot(x, y, label=label, **look)
    ax.fill_between(x, low, high, color=look["color"], alpha=0.2, linewidth=0)


def short_numbers(axis: "Axis", bins: int = 5) -> None:
    """Labels an axis 0, 50k, 100k, 1.5M rather than with offsets or powers of ten."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(bins, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))


def short_number(value: float) -> str:
    """Returns a number as 950, 2.5k, 100k or 1.5M, with a true minus."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return short(value / size) + unit
    return short(value)


def wrap(text: str, inches: float, points: float = 9) -> str:
    """Returns a text in lines that fit into a width, for letters of so many points."""
    return textwrap.fill(text, max(int(inches * 72 / (0.6 * points)), 8))


def add_heading(figure: "Figure | SubFigure", text: str, inches: float) -> None:
    """Writes a heading above a figure or a part of it that is `inches` wide, wrapped."""
    figure.suptitle(wrap(text, inches, 8.5), fontsize=8.5, color="0.35")


def legend_height(labels: list[str], inches: float) -> float:
    """Returns the height that `add_legend` needs [inches]."""
    return 0.3 + 0.165 * math.ceil(len(labels) / _legend_columns(labels, inches))


def add_legend(strip: "SubFigure", ax: "Axes", title: str, inches: float) -> None:
    """Fills a strip below the axes, `inches` wide, with the legend of the lines of `ax`."""
    handles, labels = ax.get_legend_handles_labels()
    strip.legend(
        handles,
        labels,
        title=title,
        loc="center",
        ncols=_legend_columns(labels, inches),
        handlelength=3,
        columnspacing=1.5,
        borderaxespad=0,
    )


def _legend_columns(labels: list[str], inches: float) -> int:
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    letter = FontProperties(size=rcParams["legend.fontsize"]).get_size_in_points() / 72
    # Handle, gap, letters, space to the next column.
    widest = letter * (3 + 0.8 + 0.56 * max(map(len, labels), default=1) + 1.5)
    return min(max(int((inches + 1.5 * letter) / widest), 1), max(len(labels), 1))


def save(figure: "Figure", stem: Path, suffixes: tuple[str, ...]) -> None:
    """Saves a figure atomically under each suffix, the same bytes for the same figure."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    for suffix in suffixes:
        with atomic(stem.with_name(stem.name + suffix)) as file:
            figure.savefig(file, format=suffix[1:], metadata=_METADATA[suffix])
