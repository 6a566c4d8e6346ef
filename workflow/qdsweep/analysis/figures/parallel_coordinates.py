"""Parallel coordinates of a sweep in print."""

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from qdsweep.analysis.figures.combinations import Combinations, log_text, seeds_text
from qdsweep.analysis.figures.coordinates import coordinates
from qdsweep.analysis.figures.figure import Drawn
from qdsweep.analysis.figures.many_measures import add_parallel_lines
from qdsweep.analysis.figures.marks import COLORMAP
from qdsweep.analysis.figures.style import figure_width
from qdsweep.analysis.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def parallel_coordinates(
    found: Combinations,
    name: str,
    section: str,
    where: str,
    faint: Collection[str] = frozenset(),
) -> Drawn:
    """Draws a line for each combination of swept values, which ends at its score.

    Args:
        found: The combinations.
        name: The figure's name.
        section: Its section of the report.
        where: The scale as a sentence, if there are several.
        faint: Groups whose lines are pale.
    """
    from matplotlib.figure import Figure

    described = coordinates(found)
    table, heights, (low, high) = described.table, described.heights, described.limits
    last = len(found.axes)
    figure = Figure(figsize=(figure_width(1.5 * last + 2.2), 3.8), layout="constrained")
    ax = figure.subplots()
    few, pale = len(table) <= 50, table["group"].isin(faint).to_numpy()
    order = np.argsort(~pale, kind="stable")  # pale ones below
    add_parallel_lines(
        ax,
        heights[order],
        array=table["mean"].to_numpy()[order],
        cmap=COLORMAP,
        clim=(low, high),
        linewidths=1.6 if few else 0.8,
        alpha=np.where(pale[order], 0.18, 0.9 if few else 0.6),
    )
    *swept, score = described.axes
    for place, axis in enumerate(swept):
        _axis_line(ax, place, axis.ticks)
    # The last axis is the colour bar.
    gradient = np.linspace(0, 1, 256)[:, None]
    ax.imshow(
        gradient,
        COLORMAP,
        aspect="auto",
        origin="lower",
        extent=(last, last + 0.07, 0, 1),
        zorder=2,
    )
    for height, text in score.ticks:
        ax.annotate(
            text, (last + 0.07, height), (4, 0), textcoords="offset points",
            va="center", fontsize=8,
        )  # fmt: skip
    ax.set(xlim=(-0.45, last + 0.35), ylim=(-0.03, 1.03), yticks=[])
    ax.set_xticks(range(last + 1), [axis.title for axis in described.axes])
    ax.tick_params(length=0, pad=6)
    ax.spines[:].set_visible(False)
    caption = (
        f"Parallel coordinates: a line is one of {plural(len(table), 'combination')} of swept"
        f" values, its end and colour are the final {found.score.phrase}, the mean over"
        f" {seeds_text(table['n'])}.{log_text(found.axes)}{where}"
    )
    data = found.table[[*found.names, "mean", "se", "n"]]
    return Drawn(name, section, "Parallel coordinates", caption, figure, data)


def _axis_line(ax: "Axes", place: int, ticks: list[tuple[float, str]]) -> None:
    ax.plot([place, place], [0, 1], color="0.3", linewidth=0.8, zorder=3)
    for height, text in ticks:
        ax.annotate(
            text,
            (place, height),
            (-4, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            zorder=4,
            bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.8},
            fontsize=7.5,
        )
