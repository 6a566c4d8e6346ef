"""The data of the page: an index of the runs, and the insertions of each run, packed.

A packed run is compressed by zlib. It has little-endian columns. The bytes of each column are
regrouped (all first bytes, then all second ones, ...), which compresses far better:

    sizes (5,): uint32, the numbers of frames, insertions, elites and measures; then 1 if every
        iteration is a frame, and 2 more if earlier archives are approximate
    evaluations (frames,): uint32, after each frame: an iteration, or several where it is thinned
    count (frames,): uint32, insertions in each frame
    cell (insertions,): uint32, ascending within a frame, as differences modulo 2**32
    objective (insertions,): float32, NaN where a cell became empty
    occupied (elites,): uint32, the cells of the final elites, as differences
    values (measures, elites): float32, the measures of the final elites
"""

import base64
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsweep.analysis.figures.archive_profile import EarlierRun
from qdsweep.analysis.figures.heatmap import Limits, color_limits, narrowed
from qdsweep.analysis.legend import COLORMAP
from qdsweep.analysis.selection import score_scale_of
from qdsweep.config.archive_kinds import ARCHIVES, FIXED
from qdsweep.errors import BadInput
from qdsweep.features.explore.live import LiveRun, open_run
from qdsweep.features.explore.shown_runs import ShownRun
from qdsweep.files import damaged, read_arrays
from qdsweep.records.history import History, read_history
from qdsweep.runs.load import Run

# Frames, from exact to coarse: the first number is taken that fits into the budget.
THINNED = (None, 1024, 256, 128, 64, 32)
# A browser holds a run of this size with ease [bytes]; it has about 4 million insertions.
BUDGET = 16_000_000
BEYOND = "objectives beyond 3.4e38, the largest that a map shows"


def opened(shown: ShownRun) -> Run:
    """Returns a run of the page at its present end."""
    return open_run(shown.path)


def index(
    shown: Sequence[ShownRun],
    limits: Limits | None = None,
    open_one: Callable[[ShownRun], Run] = opened,
) -> dict[str, Any]:
    """Returns the spaces (archives that compare, which share a colour scale), and the runs.

    A run that cannot be shown has a key `problem` with the reason in words.

    Args:
        shown: The runs.
        limits: The objectives at the ends of the colours; None for those of the report's figures.
        open_one: Opens a run.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    spaces: dict[str, dict[str, Any]] = {}
    objectives: dict[str, list[NDArray[Any]]] = {}
    runs = []
    for wanted in shown:
        entry: dict[str, Any] = {"label": wanted.label, "color": to_hex(wanted.color)}
        try:
            run = open_one(wanted)
            title, space, objective = _space(run)
            entry |= {"id": run.path.name, "path": str(run.path), "digest": digest_of(run)}
            entry["live"] = isinstance(run, LiveRun)
        except BadInput as error:
            runs.append(entry | {"problem": str(error)})
            continue
        spaces.setdefault(title, space)
        objectives.setdefault(title, []).append(objective)
        runs.append(entry | {"dash": wanted.dash, "space": list(spaces).index(title)})
    for title, space in spaces.items():
        space["low"], space["high"] = color_limits(objectives[title], space, limits)
        del space["objective_range"]
    colors = (colormaps[COLORMAP](np.arange(256))[:, :3] * 255).round().astype(np.uint8)
    return {"spaces": list(spaces.values()), "runs": runs, "colors": _text(colors)}


def digest_of(run: Run) -> str:
    """Returns the beginning of the digest of a run's archive.

    Raises:
        BadInput: summary.json is damaged, or of another version.
    """
    try:
        return str(run.summary["archive_digest"])[:16]
    except KeyError as error:
        raise damaged(run.files.summary, error) from None


def _space(run: Run) -> tuple[str, dict[str, Any], NDArray[Any]]:
    """Returns the title of a run's space, its description, and the objectives of the elites."""
    try:
        about = run.summary["archive"]
        cells, title = ARCHIVES[about["type"]].cells, score_scale_of(run.files.path, run.summary)
        names = ("objective", "centroids" if cells == "centroids" else "measures")
        objective, points = _read(run, *names)
        if len(objective) and np.abs(objective).max() > np.finfo(np.float32).max:
            raise BadInput(f"{run.path}: {BEYOND}")
        space: dict[str, Any] = {
            "title": title,
            "measures": run.measure_names,
            "offset": about["qd_score_offset"],
            "objective_range": about.get("objective_range"),
            "cells": about["cells"] if cells in FIXED else len(objective),
        }
        if cells == "boxes":
            return title, space | {"dims": about["dims"], "ranges": about["ranges"]}, objective
        ranges = about.get("ranges") or np.stack([points.min(0), points.max(0)], axis=1).tolist()
        if cells not in FIXED:  # each elite is a place of its own
            title = space["title"] = f"{title}; {run.path.name}"
            if points.shape[1] == 1:  # the other axis is the objective
                points = np.column_stack([points, objective])
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(run.files.summary, error) from error
    wide = any(narrowed(column).dtype != np.float32 for column in points.T)
    places = {"points": _text(points.astype("<f8" if wide else "<f4")), "wide": wide}
    return title, space | {"ranges": ranges, "filled": cells == "centroids"} | places, objective


def _read(run: Run, *names: str) -> list[NDArray[Any]]:
    """Reads arrays of the archive without the solutions."""
    at_end = not isinstance(run, LiveRun | EarlierRun)
    arrays = read_arrays(run.files.archive, *names) if at_end else run.arrays
    return [arrays[name] for name in names]


def _text(array: NDArray[Any]) -> str:
    return base64.b64encode(array.tobytes()).decode()


def pack(run: Run, after: int = 0, budget: float = BUDGET) -> bytes:
    """Returns the insertions of a run, thinned if they exceed a budget.

    Within a frame, only the last insertion of each cell is kept. The coarsest thinning is taken
    where none fits.

    Args:
        run: The run.
        after: The evaluations whose insertions are left out, because the page has them.
        budget: The largest number of bytes.

    Raises:
        BadInput: A file is missing or damaged.
    """
    history, evaluations = _insertions(run)
    is_approximate = history.is_approximate(run.config.get("algorithm"))
    if after:
        known = np.searchsorted(evaluations, after, side="right")
        first = np.searchsorted(history.iteration, known, side="right")
        new = (history.index[first:], history.objective[first:])
        history = History(history.iteration[first:] - known, *new)
        evaluations = evaluations[known:]
    iterations = len(evaluations)
    elites = [run.cells, *_read(run, "measures")]
    if isinstance(run, EarlierRun):  # the history has no measures
        elites = [rows[:0] for rows in elites]
    for frames in THINNED:
        ends = np.arange(1, iterations + 1)
        if frames is not None:  # they are closest together at the start, where most happens
            share = np.linspace(1 / frames, 1, frames) ** 1.5
            ends = np.unique(np.ceil(iterations * share).astype(int))
        flags = (len(ends) == iterations) + 2 * is_approximate
        packed = zlib.compress(b"".join(_columns(history, evaluations, ends, elites, flags)), 1)
        if len(packed) <= budget:
            break
    return packed


def _columns(
    history: History,
    evaluations: NDArray[Any],
    ends: NDArray[Any],
    elites: list[NDArray[Any]],
    flags: int,
) -> Iterator[bytes]:
    """Yields header and columns; `ends` are the iterations that end frames."""
    frame = np.searchsorted(ends, history.iteration)
    order = np.lexsort((history.index, frame))  # stable: the last insertion of a cell stays last
    same = (np.diff(frame[order]) == 0) & (np.diff(history.index[order]) == 0)
    kept = order[np.append(~same, True)] if len(order) else order
    cells, measures = elites
    rows = np.argsort(cells)
    sizes = [len(ends), len(kept), len(cells), measures.shape[1], flags]
    yield np.array(sizes, "<u4").tobytes()
    yield _regrouped(evaluations[ends - 1].astype("<u4"))
    yield _regrouped(np.bincount(frame[kept], minlength=len(ends)).astype("<u4"))
    yield _regrouped(_differences(history.index[kept]))
    yield _regrouped(history.objective[kept].astype("<f4"))
    yield _regrouped(_differences(cells[rows]))
    yield _regrouped(measures[rows].T.ravel().astype("<f4"))


def _insertions(run: Run) -> tuple[History, NDArray[Any]]:
    """Returns the insertions of a run, and the evaluations after each iteration."""
    # Imported runs may have no evaluations.
    evaluations = np.nan_to_num(run.metrics["evaluations"].to_numpy(float)).astype(np.int64)
    if isinstance(run, EarlierRun):
        end = np.searchsorted(run.history.iteration, run.iteration, side="right")
        names = ("iteration", "index", "objective")
        cut = {name: getattr(run.history, name)[:end] for name in names}
        return replace(run.history, **cut), evaluations[: run.iteration]
    history = run.history if isinstance(run, LiveRun) else read_history(run.files)
    if history is None:  # cells move, or there are none: only the end is known
        (objective,) = _read(run, "objective")
        history = History(np.ones(len(objective), np.int32), run.cells, objective)
        evaluations = evaluations[-1:]
    return history, evaluations


def _differences(cells: NDArray[Any]) -> NDArray[Any]:
    return np.diff(cells.astype("<u4"), prepend=np.uint32(0))


def _regrouped(column: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(column.view(np.uint8).reshape(-1, 4).T).tobytes()
