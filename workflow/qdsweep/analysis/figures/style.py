"""The look of every figure: colours, line styles, numbers on axes, and saving without dates."""

import io
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.legend import DASHES, MARKERS, Mark
from qdsweep.files import atomic
from qdsweep.text import apart, plain, short_number, split_formulas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, SubFigure


EMPTY_CELL = "#e9e9e9"
THIN: dict[str, Any] = {"linewidth": 0.6, "alpha": 0.55}
# How a line goes from value to value: straight, or in stairs.
DRAW_STYLES = {False: "default", True: "steps-post"}
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
    "lines.markersize": 4,
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
    "lines.markersize": 3.2,
    "savefig.dpi": 300,
}
# With dates and versions the same figure would be another file each time.
_METADATA: dict[str, dict[str, Any]] = {
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
}
_MM = 25.4


# The width in print that the user wants [inches].
_width: ContextVar[float | None] = ContextVar("width", default=None)

# Suffix -> module of matplotlib (that of PDF takes long to import), canvas, its method.
_PRINTERS = {
    ".pdf": ("backend_pdf", "FigureCanvasPdf", "print_pdf"),
    ".png": ("backend_agg", "FigureCanvasAgg", "print_png"),
    ".svg": ("backend_svg", "FigureCanvasSVG", "print_svg"),
}


@contextmanager
def style(column_width: float | None = None) -> Iterator[None]:
    """Draws and saves with qdsweep's settings, independent of the user's matplotlibrc.

    Args:
        column_width: Width of a figure in print [mm]; None: as it comes.
    """
    import matplotlib

    width = None if column_width is None else column_width / _MM
    token = _width.set(width)
    try:
        with matplotlib.rc_context(), _literal_dollars():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(_RC if width is None else _RC | _PRINT)
            yield
    finally:
        _width.reset(token)


@contextmanager
def _literal_dollars() -> Iterator[None]:
    """Draws every `$` as it is written, but those of the formulas of labels.

    matplotlib takes any two of them for a formula, also those of measures and swept values.
    """
    from matplotlib.text import Text

    internal: Any = Text  # the setting `text.parse_math` is for whole texts only
    before = internal._preprocess_math

    def preprocess(text: Text, line: str) -> Any:
        parts = split_formulas(line)
        if len(parts) == 1:
            return line, False
        escaped = [p if n % 2 else p.replace("$", r"\$") for n, p in enumerate(parts)]
        return before(text, "".join(escaped))

    internal._preprocess_math = preprocess
    try:
        yield
    finally:
        internal._preprocess_math = before


def figure_width(natural: float) -> float:
    """Returns the width of a figure [inches]: of the column in print, or its natural width."""
    return _width.get() or natural


def line_style(mark: Mark) -> dict[str, Any]:
    """Returns how a line looks, in matplotlib's words."""
    return {
        "color": mark.color,
        "linestyle": DASHES[mark.dash],
        "marker": MARKERS[mark.marker % len(MARKERS)],
        "markevery": 0.12,
    }


def draw_line(
    ax: "Axes",
    label: str,
    mark: Mark,
    x: Any,
    y: Any,
    low: Any,
    high: Any,
    *,
    stairs: bool = False,
) -> None:
    """Draws a line, and a band from `low` to `high` where these are known.

    Args:
        ax: Where.
        label: Of the legend.
        mark: How it looks.
        x: Places.
        y: Values.
        low: Lower ends of the band.
        high: Its upper ends.
        stairs: Whether each value lasts until the next place.
    """
    ax.plot(x, y, label=label, drawstyle=DRAW_STYLES[stairs], **line_style(mark))
    look: dict[str, Any] = {"color": mark.color, "alpha": 0.2, "linewidth": 0}
    ax.fill_between(x, low, high, step="post" if stairs else None, **look)


def add_key(ax: "Axes", mark: Mark) -> None:
    """Draws a group's line above the axes that show only this group."""
    look = line_style(mark) | {"linewidth": 2.4, "markevery": [1]}
    ax.plot([0, 0.5, 1], [1, 1, 1], transform=ax.transAxes, clip_on=False, zorder=5, **look)


def start_at_zero(ax: "Axes") -> None:
    """Starts the y axis at zero, unless a line is below it, such as a negative QD score."""
    if not any((np.asarray(line.get_ydata(), float) < 0).any() for line in ax.get_lines()):
        ax.set_ylim(0, None)


def short_numbers(axis: "Axis", bins: int = 5) -> None:
    """Labels an axis 0, 50k, 100k, 1.5M rather than with offsets or powers of ten."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    class Apart(FuncFormatter):
        def format_ticks(self, values: Any) -> list[str]:
            return apart(values, written=short_number)

    axis.set_major_locator(MaxNLocator(bins, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(Apart(lambda value, _: short_number(value)))


def wrap(text: str, inches: float, points: float = 9) -> str:
    """Returns a text in lines that fit into a width, for letters of `points` points.

    A name stays on the line of its value, and a formula counts as wide as it is drawn.
    """
    most = max(int(inches * 72 / (0.6 * points)), 8)
    formulas: dict[str, str] = {}
    for formula in dict.fromkeys(split_formulas(text)[1::2]):
        stand_in = chr(0xE000 + len(formulas)) * len(plain(formula))  # private letters of Unicode
        formulas[stand_in] = formula
        text = text.replace(formula, stand_in)
    parts = [part.replace(" ", "\xa0") if len(part) < most else part for part in text.split(", ")]
    text = textwrap.fill(", ".join(parts), most).replace("\xa0", " ")
    for stand_in, formula in formulas.items():
        text = text.replace(stand_in, formula)
    return text


def add_heading(figure: "Figure | SubFigure", text: str, inches: float) -> None:
    """Writes a heading above a figure or a part of it that is `inches` wide, wrapped."""
    figure.suptitle(wrap(text, inches, 8.5), fontsize=8.5, color="0.35")


def save(figure: "Figure", stem: Path, suffixes: tuple[str, ...]) -> None:
    """Saves a figure atomically under each suffix, the same bytes for the same figure.

    It is laid out once in all and drawn once for each suffix; `savefig` does both twice.
    """
    stem.parent.mkdir(parents=True, exist_ok=True)
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")
    for suffix in suffixes:
        # Printed first: matplotlib's own errors (of a PDF) would hide that of a full disk.
        printed = _print(figure, suffix)
        with atomic(stem.with_name(stem.name + suffix)) as file:
            file.write(printed)


def _print(figure: "Figure", suffix: str) -> bytes:
    from matplotlib import rcParams

    module, canvas, method = _PRINTERS[suffix]
    backend = import_module(f"matplotlib.backends.{module}")
    file, before = io.BytesIO(), figure.dpi
    figure.set_dpi(rcParams["savefig.dpi"])
    try:
        with _plain_fonts():
            getattr(getattr(backend, canvas)(figure), method)(file, metadata=_METADATA[suffix])
    finally:
        figure.set_dpi(before)
    return file.getvalue()


@contextmanager
def _plain_fonts() -> Iterator[None]:
    """Leaves ligatures and kerning out of fonts: no PDF viewer reads them, and they take long."""
    options = import_module("fontTools.subset").Options
    before = options._drop_tables_default
    options._drop_tables_default = [*before, "GSUB", "GPOS", "GDEF", "kern"]
    try:
        yield
    finally:
        options._drop_tables_default = before
