"""The corrected archive of a run: its elites with their mean results.

Every elite is inserted with its mean objective and measures into an empty archive of the same
geometry (Flageat and Cully, Uncertain Quality-Diversity, arXiv:2302.00463).
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.algorithms.base import Arrays
from qdsweep.config.archive_kinds import GEOMETRY
from qdsweep.config.sweep import Reevaluate
from qdsweep.files import atomic, read_arrays, write_json, write_text
from qdsweep.metrics import NORM_QD_SCORE
from qdsweep.records.archive import archive_digest
from qdsweep.records.paths import RunDir
from qdsweep.records.sums import sums_of
from qdsweep.runs.load import Run, load

if TYPE_CHECKING:
    from qdsweep.algorithms.ribs.archives import ResultArchive

CORRECTED_METRICS = ("num_elites", "coverage", "qd_score", NORM_QD_SCORE, "obj_max")


@dataclass(frozen=True)
class CorrectedRun(Run):
    """A run with its corrected archive instead of the one that the search reports."""

    stem: str  # `reevaluated-TIMES-SEED`

    @cached_property
    def arrays(self) -> Arrays:
        """Returns the corrected archive in the form of archive.npz, without the domain's fields."""
        elites = read_arrays(RunDir(self.path).corrected(self.stem).with_suffix(".npz"))
        reported = Run(self.path).arrays
        geometry = {name: reported[name] for name in GEOMETRY if name in reported}
        return {**corrected_rows(elites, reported), **geometry}


def write_corrected_archive(
    run_dir: Path, settings: Reevaluate, objective: np.ndarray, measures: np.ndarray
) -> dict[str, Any]:
    """Writes `reevaluated-TIMES-SEED.npz` and `.json` next to the run's files.

    Args:
        run_dir: The run's folder.
        settings: The number of evaluations per elite, and the seed.
        objective: ``(times, n)`` objectives.
        measures: ``(times, n, m)`` measures.

    Returns:
        The content of the JSON file: the metrics of the reported and of the corrected archive.
    """
    run = load(run_dir)
    arrays, summary = run.arrays, run.summary
    n = len(arrays["objective"])
    elites = {
        "index": arrays["index"],
        "objective": _mean_of(objective),
        "objective_std": _deviation_of(objective),
        "measures": _mean_of(measures),
    }
    archive, elites["corrected_index"] = insert(
        summary["archive"], arrays, elites["objective"], elites["measures"]
    )
    path = RunDir(run_dir).corrected(settings.stem)
    sums = RunDir(run_dir).state.corrected_sums(settings.stem)
    sums.unlink(missing_ok=True)
    with atomic(path.with_suffix(".npz")) as file:
        np.savez_compressed(file, **elites)  # type: ignore[arg-type]
    rows = corrected_rows(elites, arrays)
    if archive.cells is None:
        del rows["index"]
    is_equal = (objective == arrays["objective"]).all() and (measures == arrays["measures"]).all()
    corrected = archive.metrics()
    about = {
        **{name: summary[name] for name in ("id", "iterations", "evaluations", "archive_digest")},
        "times": settings.times,
        "seed": settings.seed,
        "evaluation_seed": run.config["domain"]["evaluation_seed"],
        "elites": n,
        "seed_matters": not is_equal,  # if all are equal, no evaluation depends on its seed
        "reported": {name: summary[name] for name in CORRECTED_METRICS},
        "corrected": {name: corrected[name] for name in CORRECTED_METRICS},
        "corrected_digest": archive_digest(rows),
    }
    write_json(path, about)
    write_text(sums, sums_of(run_dir, (path, path.with_suffix(".npz"))))
    return about


def _mean_of(samples: np.ndarray) -> np.ndarray:
    """Returns the mean over the first axis. The mean of equal numbers is exactly that number."""
    return samples[0] + (samples - samples[0]).mean(axis=0)


def _deviation_of(samples: np.ndarray) -> np.ndarray:
    """Returns the standard deviation over the first axis, nan for a single row."""
    if len(samples) < 2:
        return np.full(samples.shape[1:], np.nan)
    return (samples - samples[0]).std(axis=0, ddof=1)


def insert(
    about: dict[str, Any], arrays: Arrays, objective: np.ndarray, measures: np.ndarray
) -> tuple["ResultArchive", np.ndarray]:
    """Inserts elites into an empty archive of the same geometry.

    Args:
        about: `archive` of summary.json.
        arrays: The arrays of archive.npz, which define the cells where they are not a grid.
        objective: ``(n,)`` objectives.
        measures: ``(n, m)`` measures.

    Returns:
        The archive, whose solutions are the elites' numbers, and the cell ``(n,)`` of each elite.
        The cell is -1 if a better elite has taken it. In an archive without cells, every elite
        stays, and its number is its cell.
    """
    from qdsweep.algorithms.ribs.archives import ResultArchive, empty_archive

    numbers = np.arange(len(objective), dtype=np.float64)[:, np.newaxis]
    rows = {"solution": numbers, "objective": objective, "measures": measures}
    geometry = {name: arrays[name] for name in GEOMETRY if name in arrays}
    archive = ResultArchive(empty_archive(about, {**rows, **geometry}))
    if len(objective):
        archive.ribs_archive.add(**rows)
    data = archive.ribs_archive.data(["index", "solution"])
    rows_left = data["solution"][:, 0].astype(np.int64)
    cells = np.full(len(objective), -1, dtype=np.int64)
    cells[rows_left] = rows_left if archive.cells is None else data["index"]
    return archive, cells


def corrected_rows(elites: Arrays, arrays: Arrays) -> Arrays:
    """Returns the rows of a corrected archive, sorted by cell, with archive.npz's solutions."""
    cells = elites["corrected_index"]
    order = np.flatnonzero(cells >= 0)
    order = order[np.argsort(cells[order], kind="stable")]
    rows = {name: elites[name][order] for name in ("objective", "measures")}
    return {"index": cells[order], **rows, "solution": arrays["solution"][order]}
