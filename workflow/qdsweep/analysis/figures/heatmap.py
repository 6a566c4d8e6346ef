"""One archive on one pair of axes, drawn as its type and number of measures allow."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.figures.many_measures import draw_parallel_axes, draw_slices, has_slices
from qdsweep.analysis.figures.marks import COLORMAP
from qdsweep.analysis.figures.style import EMPTY_CELL, short_numbers
from qdsweep.config.archives import ARCHIVES
from qdsweep.experiment.load import Run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure, SubFigure

Limits = tuple[float, float]


def color_limits(runs: list[Run]) -> Limits:
    """Returns the range of objectives of `runs`, within the domain's objective range."""
    objectives = np.concatenate([run.arrays["objective"] for run in runs])
    return objective_limits(objectives, runs[0].summary["archive"])


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
) -> None:
    """Adds the colour bar of `axes` beside them, with arrows where objectives lie outside."""
    bar = place.colorbar(
        color_scale(limits),
        ax=axes,
        pad=0.02,
        aspect=aspect,
        extend=_beyond(objectives, limits),
        extendfrac=0.03,
    )
    bar.set_label("Objective")
    bar.outline.set_visible(False)
    short_numbers(bar.ax.yaxis, 6)


def _beyond(objectives: Iterable[np.ndarray], limits: Limits) -> Any:
    outside = [((some < limits[0]).any(), (some > limits[1]).any()) for some in objectives]
    below, above = np.any(outside, axis=0)
    return {(1, 1): "both", (1, 0): "min", (0, 1): "max"}.get((below, above), "neither")


def draw_archive(ax: "Axes", run: Run, limits: Limits) -> None:
    """Draws the archive of a run: colour is the objective, grey is empty.

    Two measures give a heatmap of the archive's type, as pyribs has it, or points if it has no
    cells; one measure gives a bar a cell; three give slices of a grid along the third if those are
    few; else parallel axes, a line per elite, best on top.
    """
    names = measure_names(run)
    ax.set_facecolor(EMPTY_CELL)
    if len(run.arrays["objective"]) == 0:
        ax.text(0.5, 0.5, "no elites", transform=ax.transAxes, ha="center", va="center")
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


def elite_table(elites: Run, **named: str) -> "pd.DataFrame":
    """Returns a row for each elite: `named`, cell, objective and measures in single precision."""
    import pandas as pd

    objective, measures = (elites.arrays[name] for name in ("objective", "measures"))
    columns = {"cell": elites.arrays["index"], "objective": objective.astype(np.float32)}
    for place, values in enumerate(measures.T.astype(np.float32), start=1):
        columns[f"measure_{place}"] = values
    return pd.DataFrame({**named, **columns})


def measure_names(run: Run) -> list[str]:
    """Returns the names of a run's measures."""
    count = run.arrays["measures"].shape[1]
    return run.summary["archive"].get("measures") or [f"measure {i + 1}" for i in range(count)]


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
    """Returns what says where the cells of a run's archive lie; None where nothing does."""
    cells = ARCHIVES[run.summary["archive"]["type"]].cells
    return None if cells == "boundaries" and "boundaries" not in run.arrays else cells
