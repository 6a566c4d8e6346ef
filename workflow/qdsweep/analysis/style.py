"""The look of every figure: colours, line styles, numbers on axes, and saving without dates."""

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.analysis.text import short
from qdsweep.files import atomic

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, SubFigure

# Okabe and Ito's palette without yellow, which is too pale for a line on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))
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
    "axes.grid": False,
    "grid.color": "0.9",
    "grid.linewidth": 0.7,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "figure.facecolor": "white",
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "svg.hashsalt": "qdsweep",
}
# Dates and versions would make the same figure another file.
_METADATA: dict[str, dict[str, Any]] = {
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
}


@contextmanager
def style() -> Iterator[None]:
    """Draws and saves with our settings, whatever the user's matplotlibrc says."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        yield


def line_style(position: int) -> dict[str, Any]:
    """Returns colour and dashes of the n-th group: 28 pairs, neighbours differ in both."""
    return {
        "color": COLORS[position % len(COLORS)],
        "linestyle": DASHES[position % len(DASHES)],
    }


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


def add_heading(figure: "Figure | SubFigure", text: str, inches: float) -> None:
    """Writes a heading above a figure or a part of it that is `inches` wide, wrapped."""
    figure.suptitle(textwrap.fill(text, int(inches * 14)), fontsize=8.5, color="0.35")


def add_caption(figure: "Figure | SubFigure", text: str, inches: float) -> None:
    """Writes a caption into a part of its own that is `inches` wide, wrapped."""
    figure.text(0.01, 0.9, textwrap.fill(text, int(inches * 16)), va="top", ha="left", **NOTE)


def save(figure: "Figure", stem: Path, suffixes: tuple[str, ...]) -> None:
    """Saves a figure atomically under each suffix, the same bytes for the same figure."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    for suffix in suffixes:
        with atomic(stem.with_name(stem.name + suffix)) as file:
            figure.savefig(file, format=suffix[1:], metadata=_METADATA[suffix])
