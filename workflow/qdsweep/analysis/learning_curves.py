"""QD score, coverage and best objective over evaluations, a line a group."""

import textwrap
from typing import TYPE_CHECKING, Any

from qdsweep.analysis.selection import Tables, band_text, shown_text
from qdsweep.analysis.style import add_heading, line_style, short_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

MAX_LINES = 12
MAX_SCALES = 4
_PANELS = {"qd_score": "QD score", "coverage": "Coverage (%)", "obj_max": "Best objective"}


def learning_curves(tables: Tables) -> tuple["Figure", str]:
    """Returns the figure and its caption.

    Groups that may not share a QD-score axis get rows of their own.
    """
    from matplotlib.figure import Figure

    shown = {
        scale: tables.best(groups, MAX_LINES)
        for scale, groups in list(tables.scales.items())[:MAX_SCALES]
    }
    figure = Figure(figsize=(11, 3.1 * len(shown)), layout="constrained")
    rows = figure.subfigures(len(shown), 1, squeeze=False)[:, 0]
    for row, (scale, groups) in zip(rows, shown.items(), strict=True):
        axes = row.subplots(1, len(_PANELS))
        for ax, metric in zip(axes, _PANELS, strict=True):
            draw_curves(ax, tables, groups, metric)
        add_legend(row, axes[0], tables, groups)
        add_heading(row, scale, inches=11)
    return figure, _caption(tables, shown)


def draw_curves(ax: "Axes", tables: Tables, groups: list[str], metric: str) -> None:
    """Draws a metric's mean over seeds with a band of ± one standard error.

    Args:
        ax: Where to draw.
        tables: The sweep's tables.
        groups: Groups to draw.
        metric: `qd_score`, `coverage` or `obj_max`.
    """
    factor = 100 if metric == "coverage" else 1
    curves = tables.curves[tables.curves["group"].isin(groups)]
    for group, curve in curves.groupby("group", sort=False):
        mean = curve[f"{metric}_mean"] * factor
        error = curve[f"{metric}_se"] * factor
        look = line_style(tables.position[str(group)])
        ax.plot(curve["evaluations"], mean, label=str(group), **look)
        ax.fill_between(
            curve["evaluations"],
            mean - error,
            mean + error,
            color=look["color"],
            alpha=0.2,
            linewidth=0,
        )
    ax.set_xlabel("Evaluations")
    ax.set_ylabel(_PANELS[metric])
    ax.set_xlim(0, None)
    if metric != "obj_max":
        ax.set_ylim(0, None)
    ax.grid(True)
    ax.set_axisbelow(True)
    short_numbers(ax.xaxis)
    short_numbers(ax.yaxis)
    if curves[f"{metric}_mean"].isna().all():
        ax.text(
            0.5, 0.5, "not defined:\nthe archive has no cells",
            transform=ax.transAxes, ha="center", va="center", color="0.4",
        )  # fmt: skip
        ax.set_yticks([])


def add_legend(place: "Axes | SubFigure", ax: "Axes", tables: Tables, groups: list[str]) -> None:
    """Adds a legend of the lines of `ax`, inside it or, for a subfigure, to the right of it.

    Its title names the band.
    """
    handles, labels = ax.get_legend_handles_labels()
    look: dict[str, Any] = {
        "title": textwrap.fill(band_text(tables.counts(groups)), 24),
        "loc": "best" if place is ax else "outside right center",
        "fontsize": 8.5 if len(labels) <= 6 else 7.5,
    }
    legend = place.legend(handles, labels, handlelength=3, title_fontsize=7.5, **look)
    legend.set_alignment("left")


def _caption(tables: Tables, shown: dict[str, list[str]]) -> str:
    counts = tables.counts([group for groups in shown.values() for group in groups])
    text = (
        "QD score, coverage and best objective over evaluations;"
        f" lines and bands: {band_text(counts)}."
    )
    if len(shown) > 1:
        text += (
            " Rows differ in domain, archive or QD-score offset, so their scores do not compare."
        )
    return text + shown_text(tables, shown)
