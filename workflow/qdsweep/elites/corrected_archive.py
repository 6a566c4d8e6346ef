"""The corrected archive of a run: its elites with their mean results, and what elites deliver.

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
from qdsweep.domains.base import Seeds
from qdsweep.experiment.fresh_seeds import CHECKED_ELITES, fresh_seeds, write_noise
from qdsweep.files import AGAIN, atomic, read_arrays, write_json, write_text
from qdsweep.metrics import NORM_QD_SCORE
from qdsweep.records.archive import archive_digest
from qdsweep.records.paths import RunDir
from qdsweep.records.results import UNKNOWN, stochastic_of
from qdsweep.records.sums import read_checked, sums_of
from qdsweep.runs.load import Run, load

if TYPE_CHECKING:
    from qdsweep.algorithms.ribs.archives import ResultArchive

# What a file of an earlier release lacks.
LATER = ("delivered", "delivered_error", "corrected_half", "objective_loss", "hit_rate")
CORRECTED_METRICS = ("num_elites", "coverage", "qd_score", NORM_QD_SCORE, "obj_max")


@dataclass(frozen=True)
class CorrectedRun(Run):
    """A run with its corrected archive instead of the one that the search reports."""

    stem: str  # `Reevaluate.stem`

    @cached_property
    def arrays(self) -> Arrays:
        """Returns the corrected archive in the form of archive.npz, without the domain's fields."""
        elites = read_arrays(RunDir(self.path).corrected(self.stem).with_suffix(".npz"))
        reported = Run(self.path).arrays
        geometry = {name: reported[name] for name in GEOMETRY if name in reported}
        return {**corrected_rows(elites, reported), **geometry}


@dataclass(frozen=True)
class HitRates(Run):
    """A run whose elites have the share of evaluations in their own cell as their objective."""

    stem: str  # `Reevaluate.stem`
    times: int

    @cached_property
    def arrays(self) -> Arrays:
        """Returns archive.npz with these shares."""
        hits = read_hits(RunDir(self.path), self.stem)
        return Run(self.path).arrays | {"objective": hits / self.times}


def read_hits(run: RunDir, stem: str) -> np.ndarray:
    """Returns how often each elite landed in its own cell; none where a file does not have it.

    Raises:
        BadInput: The file is missing or damaged.
    """
    elites = read_arrays(run.corrected(stem).with_suffix(".npz"))
    return np.asarray(elites.get("hits", np.empty(0)), np.float64)


def write_corrected_archive(
    run_dir: Path, settings: Reevaluate, objective: np.ndarray, measures: np.ndarray
) -> dict[str, Any]:
    """Writes the files of `Reevaluate.stem` next to the run's files.

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
        "measures_std": _deviation_of(measures),
    }
    hits = hits_of(summary["archive"], arrays, measures)
    if hits is not None:
        elites["hits"] = hits.sum(axis=0)
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
        "common": settings.common,
        "evaluation_seed": run.config["domain"]["evaluation_seed"],
        "elites": n,
        "seed_matters": not is_equal,  # if all are equal, no evaluation depends on its seed
        "reported": {name: summary[name] for name in CORRECTED_METRICS},
        "corrected": {name: corrected[name] for name in CORRECTED_METRICS},
        "corrected_digest": archive_digest(rows),
        **robustness(summary["archive"], arrays, objective, measures),
    }
    write_json(path, about)
    write_text(sums, sums_of(run_dir, (path, path.with_suffix(".npz"))))
    if stochastic_of(RunDir(run_dir).state, summary) == UNKNOWN and n:
        seeds = fresh_seeds(settings, summary["id"], n)[:CHECKED_ELITES]
        _note_noise(RunDir(run_dir), seeds, objective, measures, seed_matters=not is_equal)
    return about


def _note_noise(
    run: RunDir, seeds: Seeds, objective: np.ndarray, measures: np.ndarray, *, seed_matters: bool
) -> None:
    """Notes whether evaluations of a run depend on their seed, which it has not found out."""
    if len(objective) > 1:  # an archive may have means instead of evaluations
        seed_matters = any(bool((many != many[0]).any()) for many in (objective, measures))
    count = len(seeds)
    results = np.column_stack([objective[0], measures[0]])[:count]
    write_noise(run.state.noise, np.arange(count), seeds, results, seed_matters)


def robustness(
    about: dict[str, Any], arrays: Arrays, objective: np.ndarray, measures: np.ndarray
) -> dict[str, Any]:
    """Returns what the elites of an archive deliver when they are evaluated again.

    The delivered QD score is the sum over elites of f - offset where the elite lands in its own
    cell, else 0, as a mean over fresh evaluations. No maximum is taken, so it is unbiased for any
    number of them. Hit rate and objective loss are means over elites.

    Args:
        about: `archive` of summary.json.
        arrays: The arrays of archive.npz.
        objective: ``(times, n)`` fresh objectives.
        measures: ``(times, n, m)`` fresh measures.

    Returns:
        The keys of `LATER`. `delivered_error` is the standard error of the delivered QD score over
        the repeats, and `corrected_half` the corrected scores of the first half of them.
    """
    times, n = objective.shape
    hits = hits_of(about, arrays, measures)
    scores = objective - about["qd_score_offset"]
    by_repeat = (scores if hits is None else scores * hits).sum(axis=1)
    score = float(_mean_of(by_repeat))
    half = None
    if times > 1:
        parts = _mean_of(objective[: times // 2]), _mean_of(measures[: times // 2])
        metrics = insert(about, arrays, *parts)[0].metrics()
        half = {name: metrics[name] for name in ("qd_score", NORM_QD_SCORE)}
    error = float(_deviation_of(by_repeat)) / times**0.5 if times > 1 else None
    return {
        "delivered": {
            "qd_score": score,
            NORM_QD_SCORE: None if hits is None else score / about["cells"],
        },
        "delivered_error": error,
        "corrected_half": half,
        "objective_loss": float((arrays["objective"] - _mean_of(objective)).mean()) if n else None,
        "hit_rate": float(hits.mean()) if n and hits is not None else None,
    }


def hits_of(about: dict[str, Any], arrays: Arrays, measures: np.ndarray) -> np.ndarray | None:
    """Returns ``(times, n)`` whether each elite landed in its own cell; None without cells.

    Args:
        about: `archive` of summary.json.
        arrays: The arrays of archive.npz.
        measures: ``(times, n, m)`` fresh measures.
    """
    archive = _empty(about, arrays)
    if archive.cells is None:
        return None
    times, n, dim = measures.shape
    cells = archive.cells_of(measures.reshape(times * n, dim)) if n else np.empty(0)
    return cells.reshape(times, n) == arrays["index"]


def read_robustness(run_dir: Path, settings: Reevaluate) -> dict[str, Any]:
    """Reads the JSON file of a re-evaluation.

    What a file of an earlier release lacks is computed from the samples in `state/`, or None where
    there are none.

    Raises:
        BadInput: A file is missing or damaged.
    """
    about = read_checked(RunDir(run_dir).corrected(settings.stem), AGAIN)
    if "delivered" in about:
        return about
    path = RunDir(run_dir).state.samples(settings.stem)
    later: dict[str, Any] = dict.fromkeys(LATER)
    if path.exists():
        arrays, run = read_arrays(path), Run(run_dir)
        objective = arrays["objective"].reshape(settings.times, -1)
        measures = arrays["measures"].reshape(*objective.shape, -1)
        if objective.shape[1] == len(run.arrays["objective"]) and not np.isnan(objective).any():
            later = robustness(run.summary["archive"], run.arrays, objective, measures)
    return {**about, "common": True, **later}


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
    numbers = np.arange(len(objective), dtype=np.float64)[:, np.newaxis]
    archive = _empty(about, arrays)
    if len(objective):
        archive.ribs_archive.add(numbers, objective, measures)
    data = archive.ribs_archive.data(["index", "solution"])
    rows_left = data["solution"][:, 0].astype(np.int64)
    cells = np.full(len(objective), -1, dtype=np.int64)
    cells[rows_left] = rows_left if archive.cells is None else data["index"]
    return archive, cells


def _empty(about: dict[str, Any], arrays: Arrays) -> "ResultArchive":
    """Returns an empty archive of the same geometry, for numbers of elites as solutions."""
    from qdsweep.algorithms.ribs.archives import ResultArchive, empty_archive

    rows = {name: arrays[name].astype(np.float64) for name in ("objective", "measures")}
    rows["solution"] = np.arange(len(rows["objective"]), dtype=np.float64)[:, np.newaxis]
    geometry = {name: arrays[name] for name in GEOMETRY if name in arrays}
    return ResultArchive(empty_archive(about, {**rows, **geometry}))


def corrected_rows(elites: Arrays, arrays: Arrays) -> Arrays:
    """Returns the rows of a corrected archive, sorted by cell, with archive.npz's solutions."""
    cells = elites["corrected_index"]
    order = np.flatnonzero(cells >= 0)
    order = order[np.argsort(cells[order], kind="stable")]
    rows = {name: elites[name][order] for name in ("objective", "measures")}
    return {"index": cells[order], **rows, "solution": arrays["solution"][order]}
