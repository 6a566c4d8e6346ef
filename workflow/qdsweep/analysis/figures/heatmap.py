"""One archive on one pair of axes, drawn as its type and number of measures allow."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.figures.style import EMPTY_CELL, NOTE, short_numbers, wrap
from qdsweep.analysis.legend import COLORMAP
from qdsweep.analysis.noise import LUCKY, noise_of
from qdsweep.config.archive_kinds import ARCHIVES
from qdsweep.records.paths import RunDir
from qdsweep.runs.load import Run
from qdsweep.text import apart

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure, SubFigure


MAX_SLICES = 12
_SMALL = NOTE | {"fontsize": 7}

Limits = tuple[float, float]
# The share of the elites that has at least two thirds of the colours.
_OBJECTIVE, _REPORTED = "Objective", "Objective, as reported"
_MIDDLE = 0.95
_PRECISE = 1e-3  # of the span of values: an error that no figure shows


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
    texts = apart((z[:-1] + z[1:]) / 2, 3)
    columns = math.ceil(math.sqrt(dims[2]))
    rows = math.ceil(dims[2] / columns)
    ax.set_axis_off()
    for position in range(dims[2]):
        row, column = divmod(position, columns)
        place = (column / columns, 1 - (row + 1) / rows, 0.92 / columns, 1 / rows - 0.085)
        part = ax.inset_axes(place, facecolor=EMPTY_CELL)
        cells = part.pcolormesh(x, y, grid[:, :, position].T, cmap=colors.cmap, rasterized=True)
        cells.set_clim(colors.get_clim())
        part.set_title(texts[position], pad=1.5, **_SMALL)
        part.set(xticks=[], yticks=[])
        if row == rows - 1 and column == 0:
            part.set_xlabel(names[0], fontsize=7, labelpad=2)
            part.set_ylabel(names[1], fontsize=7, labelpad=2)
    note = f"above each: {names[2]}"
    ax.text(1, -0.03, note, transform=ax.transAxes, ha="right", va="top", **_SMALL)


def add_parallel_lines(ax: "Axes", heights: np.ndarray, **look: Any) -> None:
    """Draws a line for each row of ``(n, k)`` heights, across k axes next to each other."""
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
        for height, text in zip((0.0, 1.0), apart((bottom, top), 4), strict=True):
            ax.annotate(
                text,
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


def objective_label(run: Run) -> str:
    """Returns what the colours of a run's archive are."""
    if run.summary.get("stochastic") is not True:
        return _OBJECTIVE
    return _REPORTED if noise_of(RunDir(run.path).results, run.summary) == LUCKY else _OBJECTIVE


def color_limits(
    objectives: Sequence[np.ndarray],
    about: dict[str, Any],
    chosen: Limits | None,
    label: str = _OBJECTIVE,
) -> Limits:
    """Returns the objectives at the ends of the colours, which archives with one scale share.

    By default the range ends at far outliers, which would leave the rest of a map in one colour.
    An archive of one measure keeps them, because its vertical axis shows the objective, too. Lucky
    evaluations do not widen the domain's own range.

    Args:
        objectives: Those of the elites of each archive.
        about: `archive` of summary.json.
        chosen: `figures.color_range`.
        label: `objective_label` of the runs.
    """
    if chosen is not None:
        return chosen
    values = np.concatenate(objectives)
    if len(values) == 0 or len(about.get("ranges") or ()) == 1:
        return objective_limits(values, about)
    low, high = values.min(), values.max()
    below, above = np.quantile(values, ((1 - _MIDDLE) / 2, (1 + _MIDDLE) / 2))
    if below < above:
        margin = (above - below) / 4
        low, high = max(low, below - margin), min(high, above + margin)
    own = about.get("objective_range")
    if own and label == _REPORTED and low < own[1]:
        high = min(high, own[1])
    return _with_width(float(low), float(high))


def objective_limits(objectives: np.ndarray, about: dict[str, Any]) -> Limits:
    """Returns the range of ``(n,)`` objectives, within the domain's own.

    `about`: `archive` of summary.json, which names that.
    """
    if len(objectives) == 0:
        return 0.0, 1.0
    low, high = float(objectives.min()), float(objectives.max())
    bounds = about.get("objective_range")
    if bounds and low < bounds[1] and high > bounds[0]:
        low, high = max(low, float(bounds[0])), min(high, float(bounds[1]))
    return _with_width(low, high)


def _with_width(low: float, high: float) -> Limits:
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def color_scale(limits: Limits) -> "ScalarMappable":
    """Returns the colours of objectives between `limits`, for a colour bar."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    return ScalarMappable(Normalize(*limits), COLORMAP)


def add_color_bar(
    place: "Figure | SubFigure",
    axes: list["Axes"],
    objectives: Iterable[np.ndarray],
    limits: Limits,
    aspect: float = 25,
    label: str = _OBJECTIVE,
) -> None:
    """Adds the colour bar of `axes` next to them.

    Where elites are outside its range, it has arrows, and its label has their lowest and highest
    objective, unless these are lucky.
    """
    shown = [some for some in objectives if np.isfinite(some).any()]
    low = min((float(np.nanmin(some)) for some in shown), default=limits[0])
    high = max((float(np.nanmax(some)) for some in shown), default=limits[1])
    below, above = low < limits[0], high > limits[1]
    bar = place.colorbar(
        color_scale(limits),
        ax=axes,
        pad=0.02,
        aspect=aspect,
        extend={(1, 1): "both", (1, 0): "min", (0, 1): "max"}.get((below, above), "neither"),
        extendfrac=0.03,
    )
    cut = (
        f"\n(elites {' to '.join(apart((low, high), 4))})"
        if (below or above) and label != _REPORTED
        else ""
    )
    bar.set_label(f"{label}{cut}")
    bar.outline.set_visible(False)
    short_numbers(bar.ax.yaxis, 6)


def draw_archive(ax: "Axes", run: Run, limits: Limits) -> None:
    """Draws the archive of a run: colour is the objective, grey is empty.

    Two measures give a heatmap of the archive's type, as in pyribs, or points if it has no cells.
    One measure gives one bar per cell. Three measures give slices of a grid along the third one, if
    those are few. Else there are parallel axes, with one line per elite, best on top.
    """
    names = run.measure_names
    ax.set_facecolor(EMPTY_CELL)
    if len(run.arrays["objective"]) == 0:
        ax.text(0.5, 0.5, "no elites", transform=ax.transAxes, ha="center", va="center")
        ranges = run.summary["archive"].get("ranges") or () if len(names) <= 2 else ()
        ax.set(**dict(zip(("xlim", "ylim"), ranges, strict=False)))
    elif len(names) == 1:
        _bars(ax, run, limits)
    elif len(names) == 2:
        _map(ax, run, limits)
    elif has_slices(run):
        draw_slices(ax, run, names, color_scale(limits))
    else:
        draw_parallel_axes(ax, run, names, color_scale(limits))
    if len(names) <= 2:
        short_numbers(ax.xaxis, 4)
        short_numbers(ax.yaxis, 5)
        ax.set_xlabel(names[0])
        ax.set_ylabel(names[1] if len(names) == 2 else "objective")


def narrowed(values: np.ndarray) -> np.ndarray:
    """Returns values in single precision, or as they are where a figure would show the difference.

    That is the case for values beyond single precision, and for those that differ only in later
    digits, such as Unix times.
    """
    with np.errstate(over="ignore", under="ignore"):
        narrow = values.astype(np.float32)
        there = np.isfinite(values)
        error = np.abs(narrow[there] - values[there]).max(initial=0.0)
        span = np.ptp(values[there]) if there.any() else 0.0
    return narrow if error <= _PRECISE * span or (span == 0 and np.isfinite(error)) else values


def elite_table(elites: Run, **named: str) -> "pd.DataFrame":
    """Returns a row for each elite: `named`, cell, objective and measures as `narrowed`."""
    import pandas as pd

    objective, measures = (elites.arrays[name] for name in ("objective", "measures"))
    columns = {"cell": elites.arrays["index"], "objective": narrowed(objective)}
    for place, values in enumerate(measures.T, start=1):
        columns[f"measure_{place}"] = narrowed(values)
    return pd.DataFrame({**named, **columns})


def _map(ax: "Axes", run: Run, limits: Limits) -> None:
    cells = _cells(run)
    if cells == "boxes":
        _boxes(ax, run, limits)
        return
    if cells is None:
        _points(ax, run.arrays["measures"][:, 0], run.arrays["measures"][:, 1], run, limits)
        return
    from ribs.visualize import cvt_archive_heatmap, sliding_boundaries_archive_heatmap

    look: dict[str, Any] = {"ax": ax, "cbar": None, **_colors(limits)}
    if cells == "centroids":
        borders = 0.15 if run.archive.cells <= 2_000 else 0.0
        cvt_archive_heatmap(run.archive, lw=borders, ec="0.6", **look)
    else:
        sliding_boundaries_archive_heatmap(run.archive, ms=6, boundary_lw=0.25, **look)


def _boxes(ax: "Axes", run: Run, limits: Limits) -> None:
    """Draws a grid as pyribs' grid_archive_heatmap does, without seconds of importing pyribs."""
    about = run.summary["archive"]
    values = np.full(about["cells"], np.nan)
    values[run.arrays["index"]] = run.arrays["objective"]
    x, y = (
        np.linspace(low, high, count + 1)
        for (low, high), count in zip(about["ranges"], about["dims"], strict=True)
    )
    ax.set(xlim=x[[0, -1]], ylim=y[[0, -1]])
    ax.pcolormesh(x, y, values.reshape(about["dims"]).T, **_colors(limits))


def _points(ax: "Axes", x: np.ndarray, y: np.ndarray, run: Run, limits: Limits) -> None:
    ax.scatter(x, y, c=run.arrays["objective"], s=4, linewidths=0, **_colors(limits))


def _colors(limits: Limits) -> dict[str, Any]:
    return {"cmap": COLORMAP, "vmin": limits[0], "vmax": limits[1], "rasterized": True}


def _bars(ax: "Axes", run: Run, limits: Limits) -> None:
    objective = run.arrays["objective"]
    edges = _edges(run)
    if edges is None:
        _points(ax, run.arrays["measures"][:, 0], objective, run, limits)
        return
    cell = np.searchsorted(edges, run.arrays["measures"][:, 0], side="right") - 1
    cell = np.clip(cell, 0, len(edges) - 2)
    ax.bar(
        edges[cell],
        np.clip(objective, *limits) - limits[0],
        bottom=limits[0],
        width=np.diff(edges)[cell],
        align="edge",
        color=color_scale(limits).to_rgba(objective),
        rasterized=True,
    )
    ax.set_xlim(edges[0], edges[-1])
    ax.set_ylim(*limits)


def _edges(run: Run) -> np.ndarray | None:
    """Returns the ``(cells + 1,)`` edges of an archive with one measure; None without cells."""
    about, cells = run.summary["archive"], _cells(run)
    low, high = about["ranges"][0] if cells else (0.0, 0.0)
    if cells == "boxes":
        return np.linspace(low, high, about["dims"][0] + 1)
    if cells == "centroids":
        centroids = np.sort(run.arrays["centroids"][:, 0])
        return np.concatenate([[low], (centroids[1:] + centroids[:-1]) / 2, [high]])
    if cells == "boundaries":
        return np.asarray(run.arrays["boundaries"])[0, : about["dims"][0] + 1]
    return None


def _cells(run: Run) -> str | None:
    """Returns which data place the cells of a run's archive; None if it has none of them."""
    cells = ARCHIVES[run.summary["archive"]["type"]].cells
    return None if cells == "boundaries" and "boundaries" not in run.arrays else cells
