"""One archive on one pair of axes, drawn as its type and number of measures allow."""

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.load import Run
from qdsweep.analysis.style import COLORMAP, EMPTY_CELL, NOTE, short_numbers
from qdsweep.analysis.text import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

Limits = tuple[float, float]


def color_limits(runs: list[Run]) -> Limits:
    """Returns the range of objectives of `runs`, within the domain's objective range."""
    objectives = np.concatenate([run.arrays["objective"] for run in runs])
    if len(objectives) == 0:
        return 0.0, 1.0
    low, high = float(objectives.min()), float(objectives.max())
    bounds = runs[0].summary["archive"].get("objective_range")
    if bounds and low < bounds[1] and high > bounds[0]:
        low, high = max(low, float(bounds[0])), min(high, float(bounds[1]))
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def beyond(runs: list[Run], limits: Limits) -> str:
    """Returns which ends of a colour bar need an arrow: objectives of `runs` lie outside."""
    objectives = np.concatenate([run.arrays["objective"] for run in runs])
    below, above = bool((objectives < limits[0]).any()), bool((objectives > limits[1]).any())
    return {(1, 1): "both", (1, 0): "min", (0, 1): "max"}.get((below, above), "neither")


def color_scale(limits: Limits) -> "ScalarMappable":
    """Returns the colours of objectives between `limits`, for a colour bar."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    return ScalarMappable(Normalize(*limits), COLORMAP)


def draw_archive(ax: "Axes", run: Run, limits: Limits) -> None:
    """Draws the final archive of a run: colour is the objective, grey is empty.

    Two measures give pyribs' heatmap of the archive's type, or points if it has no cells; one
    measure gives bars; three and more give parallel axes, a line an elite, best on top.

    Args:
        ax: Where to draw.
        run: The run.
        limits: Objectives of the lowest and the highest colour.
    """
    arrays = run.arrays
    names = measure_names(run)
    ax.set_facecolor(EMPTY_CELL)
    if len(arrays["objective"]) == 0:
        ax.text(0.5, 0.5, "no elites", transform=ax.transAxes, ha="center", va="center")
    elif len(names) == 1:
        _bars(ax, run, limits)
    elif len(names) == 2:
        _map(ax, run, limits)
    else:
        _parallel_axes(ax, run, limits)
    if len(names) <= 2:
        short_numbers(ax.xaxis, 4)
        short_numbers(ax.yaxis, 5)
        ax.set_xlabel(names[0])
        ax.set_ylabel(names[1] if len(names) == 2 else "objective")


def measure_names(run: Run) -> list[str]:
    """Returns the names of a run's measures."""
    count = run.arrays["measures"].shape[1]
    return run.summary["archive"].get("measures") or [f"measure {i + 1}" for i in range(count)]


def _map(ax: "Axes", run: Run, limits: Limits) -> None:
    from ribs.visualize import (
        cvt_archive_heatmap,
        grid_archive_heatmap,
        sliding_boundaries_archive_heatmap,
    )

    look: dict[str, Any] = {
        "ax": ax,
        "cmap": COLORMAP,
        "vmin": limits[0],
        "vmax": limits[1],
        "cbar": None,
        "rasterized": True,
    }
    kind = run.summary["archive"]["type"]
    if kind == "grid":
        grid_archive_heatmap(run.archive, **look)
    elif kind == "cvt":
        borders = 0.15 if run.archive.cells <= 2_000 else 0.0
        cvt_archive_heatmap(run.archive, lw=borders, ec="0.6", **look)
    elif kind == "sliding_boundaries" and "boundaries" in run.arrays:
        sliding_boundaries_archive_heatmap(run.archive, ms=6, boundary_lw=0.25, **look)
    else:
        _points(ax, run, limits)


def _points(ax: "Axes", run: Run, limits: Limits) -> None:
    measures, objective = run.arrays["measures"], run.arrays["objective"]
    ax.scatter(
        measures[:, 0],
        measures[:, 1],
        c=objective,
        s=4,
        linewidths=0,
        cmap=COLORMAP,
        vmin=limits[0],
        vmax=limits[1],
        rasterized=True,
    )


def _bars(ax: "Axes", run: Run, limits: Limits) -> None:
    low, high = _ranges(run)[0]
    cells = run.summary["archive"].get("cells") or 100
    objective = run.arrays["objective"]
    ax.bar(
        run.arrays["measures"][:, 0],
        np.clip(objective, *limits) - limits[0],
        bottom=limits[0],
        width=(high - low) / cells,
        color=color_scale(limits).to_rgba(objective),
        rasterized=True,
    )
    ax.set_xlim(low, high)
    ax.set_ylim(*limits)


def _parallel_axes(ax: "Axes", run: Run, limits: Limits) -> None:
    from matplotlib.collections import LineCollection

    low, high = _ranges(run).T
    order = np.argsort(run.arrays["objective"], kind="stable")
    heights = (run.arrays["measures"][order] - low) / np.where(high > low, high - low, 1.0)
    positions = np.broadcast_to(np.arange(len(low)), heights.shape)
    lines = LineCollection(
        list(np.stack([positions, heights], axis=2)),
        colors=color_scale(limits).to_rgba(run.arrays["objective"][order]),
        linewidths=0.4,
        alpha=0.5,
        rasterized=True,
    )
    ax.add_collection(lines)
    ax.set(xlim=(-0.1, len(low) - 0.9), ylim=(-0.02, 1.02), yticks=[])
    for position, (bottom, top) in enumerate(zip(low, high, strict=True)):
        ax.axvline(position, color="0.3", linewidth=0.7)
        side = -1 if position == len(low) - 1 else 1  # The last axis has no room at its right.
        for height, value in ((0.0, bottom), (1.0, top)):
            ax.annotate(
                short(value, 4),
                (position, height),
                (3 * side, 3 if height == 0 else -3),
                textcoords="offset points",
                ha="left" if side > 0 else "right",
                va="bottom" if height == 0 else "top",
                bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 1},
                **(NOTE | {"fontsize": 6.5}),
            )
    names = measure_names(run)
    if len(names) > 4:
        names = [f"m{position + 1}" for position in range(len(names))]
    ax.set_xticks(range(len(names)), [textwrap.fill(name, 12) for name in names])
    ax.set_xlabel("measures (parallel axes)")


def _ranges(run: Run) -> np.ndarray:
    """Returns (measures, 2) bounds: the archive's, or the elites' own if it has none."""
    ranges = run.summary["archive"].get("ranges")
    if ranges:
        return np.array(ranges, dtype=float)
    measures = run.arrays["measures"]
    return np.stack([measures.min(axis=0), measures.max(axis=0)], axis=1)
