"""Archives of three and more measures: slices of a grid, or parallel axes."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.figures.style import EMPTY_CELL, NOTE, wrap
from qdsweep.analysis.text import short
from qdsweep.config.archives import ARCHIVES
from qdsweep.experiment.load import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

MAX_SLICES = 12
_SMALL = NOTE | {"fontsize": 7}


def has_slices(run: Run) -> bool:
    """Returns whether a run's archive is a grid of three measures, with few cells of the third."""
    about = run.summary["archive"]
    boxes = ARCHIVES[about["type"]].cells == "boxes"
    return boxes and len(about["dims"]) == 3 and about["dims"][2] <= MAX_SLICES


def draw_slices(ax: "Axes", run: Run, names: list[str], colors: "ScalarMappable") -> None:
    """Draws a grid archive of three measures as small maps, one for each cell of the third."""
    about, arrays = run.summary["archive"], run.arrays
    dims, ranges = about["dims"], about["ranges"]
    grid = np.full(math.prod(dims), np.nan)
    grid[arrays["index"]] = arrays["objective"]
    grid = grid.reshape(dims)
    x, y, z = (
        np.linspace(low, high, count + 1) for (low, high), count in zip(ranges, dims, strict=True)
    )
    columns = math.ceil(math.sqrt(dims[2]))
    rows = math.ceil(dims[2] / columns)
    ax.set_axis_off()
    for position in range(dims[2]):
        row, column = divmod(position, columns)
        place = (column / columns, 1 - (row + 1) / rows, 0.92 / columns, 1 / rows - 0.085)
        part = ax.inset_axes(place, facecolor=EMPTY_CELL)
        cells = part.pcolormesh(x, y, grid[:, :, position].T, cmap=colors.cmap, rasterized=True)
        cells.set_clim(colors.get_clim())
        part.set_title(short((z[position] + z[position + 1]) / 2, 3), pad=1.5, **_SMALL)
        part.set(xticks=[], yticks=[])
        if row == rows - 1 and column == 0:
            part.set_xlabel(names[0], fontsize=7, labelpad=2)
            part.set_ylabel(names[1], fontsize=7, labelpad=2)
    note = f"above each: {names[2]}"
    ax.text(1, -0.03, note, transform=ax.transAxes, ha="right", va="top", **_SMALL)


def add_parallel_lines(ax: "Axes", heights: np.ndarray, **look: Any) -> None:
    """Draws a line for each row of ``(n, k)`` heights, across k axes beside each other."""
    from matplotlib.collections import LineCollection

    places = np.broadcast_to(np.arange(float(heights.shape[1])), heights.shape)
    ax.add_collection(LineCollection(list(np.stack([places, heights], axis=2)), **look))


def draw_parallel_axes(ax: "Axes", run: Run, names: list[str], colors: "ScalarMappable") -> None:
    """Draws a line for each elite across an axis for each measure, best on top."""
    low, high = _ranges(run).T
    order = np.argsort(run.arrays["objective"], kind="stable")
    heights = (run.arrays["measures"][order] - low) / np.where(high > low, high - low, 1.0)
    add_parallel_lines(
        ax,
        heights,
        colors=colors.to_rgba(run.arrays["objective"][order]),
        linewidths=float(np.clip(80 / len(order), 0.4, 1.5)),
        alpha=0.8 if len(order) <= 100 else 0.5,
        rasterized=True,
    )
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
                **_SMALL,
            )
    if len(names) > 4:
        names = [f"m{position + 1}" for position in range(len(names))]
    ax.set_xticks(range(len(names)), [wrap(name, 0.8, 8) for name in names])
    ax.set_xlabel("measures (parallel axes)")


def _ranges(run: Run) -> np.ndarray:
    """Returns (measures, 2) bounds: the archive's, or the elites' own if it has none."""
    ranges = run.summary["archive"].get("ranges")
    if ranges:
        return np.array(ranges, dtype=float)
    measures = run.arrays["measures"]
    return np.stack([measures.min(axis=0), measures.max(axis=0)], axis=1)
