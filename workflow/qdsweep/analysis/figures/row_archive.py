"""A run's archive at the budget of its row, also where the run went further."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.text import number
from qdsweep.config.archives import ARCHIVES
from qdsweep.experiment.load import Run, load
from qdsweep.files import read_arrays
from qdsweep.records.history import History, read_history
from qdsweep.records.run_dir import RunDir

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class EarlierRun(Run):
    """A run with the archive that it had after an iteration.

    Its elites stand in the middle of their cells: the history keeps no measures, and no solutions.
    """

    history: History
    iteration: int

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """index, objective, measures (of the cells' middles), and the centroids if it has some."""
        index, objective = self.history.at(self.iteration)
        arrays = {"index": index, "objective": objective, "solution": np.zeros((len(index), 1))}
        if ARCHIVES[self.summary["archive"]["type"]].cells == "centroids":
            arrays |= read_arrays(self.files.archive, "centroids")
        arrays["measures"] = cell_middles(self.summary["archive"], arrays)
        return arrays


def cell_middles(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Returns the ``(n, m)`` middles of cells of a grid archive, or centroids of a CVT archive.

    Args:
        about: `archive` of summary.json.
        arrays: `index` ``(n,)`` of the cells, and for a CVT archive its `centroids`.
    """
    if ARCHIVES[about["type"]].cells == "centroids":
        return arrays["centroids"][arrays["index"]]
    low, high = np.array(about["ranges"], dtype=float).T
    dims = np.array(about["dims"])
    cells = np.stack(np.unravel_index(arrays["index"], about["dims"]), axis=1)
    return low + (cells + 0.5) * (high - low) / dims


def reported_run(runs_dir: Path, row: "pd.Series") -> Run:
    """Returns a run as its row of summary.csv has it: at its budget, if its history tells that."""
    run = load(RunDir(runs_dir / row["id"]).results.path)
    history = read_history(run.files) if _went_on(row) else None
    return run if history is None else EarlierRun(run.path, history, int(row["iteration"]))


def objectives_of(run: Run) -> np.ndarray:
    """Returns the objectives of a run's elites, without reading its solutions."""
    if isinstance(run, EarlierRun):
        return run.history.at(run.iteration)[1]
    objectives: np.ndarray = read_arrays(run.files.archive, "objective")["objective"]
    return objectives


def moment_text(row: "pd.Series", run: Run) -> str:
    """Returns how far the archive of `run` went, and its row's budget if that is less."""
    total, budget = int(row["total_evaluations"]), int(row["evaluations"])
    if _is_beyond(row, run):
        return f"at {number(total)} evaluations, not {number(budget)}"
    return f"at {number(budget)} evaluations"


def beyond_text(shown: Iterable[tuple["pd.Series", Run]]) -> str:
    """Returns a warning if an archive shown comes from beyond its row's budget."""
    further = sum(_is_beyond(row, run) for row, run in shown)
    if not further:
        return ""
    return (
        f" {further} of these runs went on beyond the budget of the table, for a larger one:"
        " only the final archive is kept, and that is what is shown."
    )


def _went_on(row: "pd.Series") -> bool:
    return bool(row["total_evaluations"] > row["evaluations"])


def _is_beyond(row: "pd.Series", run: Run) -> bool:
    return _went_on(row) and not isinstance(run, EarlierRun)
