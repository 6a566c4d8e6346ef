"""Imports external results as a run's folder. qdsweep measures their elites with its own code."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qdsweep.algorithms.base import Arrays
from qdsweep.algorithms.ribs.archives import ResultArchive, empty_archive
from qdsweep.config.files import to_yaml
from qdsweep.errors import BadInput
from qdsweep.experiment.outputs import count_outside
from qdsweep.features.imported.description import DATA, ImportedRun
from qdsweep.files import atomic, damaged, read_arrays, write_csv, write_text
from qdsweep.metrics import NORM_QD_SCORE
from qdsweep.records.archive import archive_digest
from qdsweep.records.metrics_file import COLUMNS
from qdsweep.records.paths import RunDir
from qdsweep.records.results import write_summary
from qdsweep.records.status import write_status
from qdsweep.versions import __version__

if TYPE_CHECKING:
    import pandas as pd

ENGINE = "imported"
# External metrics may differ from qdsweep's by this fraction, because logs are often rounded.
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Foreign:
    """External results, measured by qdsweep.

    Attributes:
        archive: The external elites in an archive of qdsweep.
        measured: The metrics of that archive.
        table: The rows of metrics.csv. The last one has the measured values.
        warnings: The metrics that do not agree with the external elites.
    """

    archive: ResultArchive
    measured: dict[str, Any]
    table: "pd.DataFrame"
    warnings: list[str]

    @property
    def evaluations(self) -> int:
        """The number of evaluations at the end."""
        return int(self.table["evaluations"].iloc[-1])

    def __str__(self) -> str:
        known = {name: value for name, value in self.measured.items() if value is not None}
        words = (f"{name} {value:.6g}" for name, value in known.items())
        return f"{self.evaluations} evaluations, {', '.join(words)}"


def read_foreign(run: ImportedRun) -> Foreign:
    """Reads external results, and measures their elites.

    Raises:
        BadInput: A file is missing or damaged, or does not fit its description.
    """
    archive, warnings = _archive(run, _elites(run))
    measured = archive.metrics()
    table = _metrics(run)
    warnings += _compare(run, table, measured)
    table = _completed(table, archive.cells or 0)
    for name, value in measured.items():
        table.loc[table.index[-1], name] = math.nan if value is None else value
    return Foreign(archive, measured, table, warnings)


def write_run(run: ImportedRun, results: Foreign, runs_dir: Path) -> None:
    """Writes `results/runs/ID` of external results.

    Args:
        run: The description of the results.
        results: The results.
        runs_dir: The folder `results/runs`.
    """
    about = run.about
    rows = results.archive.rows()
    folder = RunDir(runs_dir / run.id)
    state = folder.state
    state.path.mkdir(parents=True, exist_ok=True)
    state.unseal()
    with atomic(state.archive) as file:
        np.savez_compressed(file, **(rows | results.archive.geometry()))  # type: ignore[arg-type]
    write_csv(results.table, state.metrics)
    write_text(state.config, _config(run))
    last = {"iterations": len(results.table), "evaluations": results.evaluations}
    summary = {
        "id": run.id,
        "fingerprint": run.fingerprint,
        "status": "finished",
        **last,
        **results.measured,
        "archive_digest": archive_digest(rows),
        "objectives_outside": count_outside(rows["objective"], about.objective_range),
        "archive": {
            **results.archive.describe(),
            "ranges": [[float(low), float(high)] for low, high in about.archive.ranges],
            "measures": about.archive.measures,
            "objective_range": list(about.objective_range),
            "qd_score_offset": about.objective_range[0],
            "solution_dim": int(rows["solution"].shape[1]),
        },
        "timings": {},
        "versions": {"qdsweep": __version__},
        "engine": ENGINE,
        "workers": 1,
        "attempts": [],
    }
    write_summary(state, summary)
    about_run = {"id": run.id, "fingerprint": run.fingerprint, "status": "finished"}
    write_status(state, {**about_run, "iteration": len(results.table), **last})
    state.seal()
    folder.publish()


def _config(run: ImportedRun) -> str:
    """Returns the description in the form of config.yaml, with the keys of a run's config."""
    about = run.about.model_dump(mode="json", exclude_defaults=True)
    config = {
        "domain": {"name": run.about.domain},
        "algorithm": {"name": run.about.algorithm},
        "seed": run.seed,
        "imported": {key: about[key] for key in about if key not in ("domain", "algorithm")},
    }
    return to_yaml(config, allow_unicode=True)


def _elites(run: ImportedRun) -> Arrays:
    """Reads objective ``(n,)``, measures ``(n, m)``, solution ``(n, d)`` and any centroids."""
    read = _from_csv if run.archive.suffix == ".csv" else _from_npz
    arrays = read(run)
    for name in ("objective", "measures"):
        if name not in arrays:
            raise BadInput(
                f"{run.archive}: there is no {name}. Write the file's name for it into {run.path}: "
                f"archive: {{names: {{{name}: THEIRS}}}}"
            )
    objective = arrays["objective"].reshape(-1)
    if not len(objective):
        raise BadInput(f"{run.archive}: it has no elites")
    measures, dims = arrays["measures"], len(run.about.archive.ranges)
    measures = measures.reshape(-1, 1) if measures.ndim == 1 else measures
    if measures.shape != (len(objective), dims):
        raise BadInput(
            f"{run.archive}: measures has the shape {measures.shape}, and objective "
            f"{objective.shape}. {run.path}: archive.ranges has {dims} measures, so measures "
            f"should have the shape ({len(objective)}, {dims})"
        )
    solution = arrays.get("solution", np.zeros((len(objective), 1)))
    if np.shape(solution)[:1] != (len(objective),):
        raise BadInput(
            f"{run.archive}: solution has the shape {solution.shape}, and objective "
            f"{objective.shape}; solution should have one row per elite"
        )
    solution = solution.reshape(len(objective), -1)
    if not np.isfinite(objective).any():
        raise BadInput(f"{run.archive}: objective has no finite number")
    is_filled = ~np.isnan(objective) & ~np.isneginf(objective)  # two common marks of empty cells
    if not np.isfinite(measures[is_filled]).all():
        raise BadInput(f"{run.archive}: measures has values that are not finite numbers")
    elites = {"objective": objective, "measures": measures, "solution": solution}
    return {name: rows[is_filled] for name, rows in elites.items()} | {
        name: arrays[name] for name in ("centroids",) if name in arrays
    }


def _from_npz(run: ImportedRun) -> Arrays:
    names = run.about.archive.names
    arrays = read_arrays(run.archive, remedy=_remedy(run))
    elites = {}
    for name in DATA:
        key = names.get(name, name)
        if not isinstance(key, str):
            raise BadInput(
                f"{run.path}: archive.names.{name} = {key}: give the name of one array in the .npz "
                "file"
            )
        if key in arrays:
            elites[name] = _numbers(run, key, arrays[key])
        elif name in names:
            raise BadInput(
                f"{run.path}: archive.names.{name} = {key!r}: {run.archive} has no such array; "
                f"it has {', '.join(arrays)}"
            )
    return elites


def _from_csv(run: ImportedRun) -> Arrays:
    names = run.about.archive.names
    table = _read_csv(run, run.archive)
    elites = {}
    for name in ("objective", "measures", "solution"):
        selection = names.get(name)
        if selection is None:  # the names that pyribs writes
            pattern = re.compile(rf"{name.removesuffix('s')}s?(_\d+)?")
            selection = [column for column in table if pattern.fullmatch(str(column))]
        columns = [selection] if isinstance(selection, str) else selection
        missing = [column for column in columns if column not in table]
        if missing:
            raise BadInput(
                f"{run.path}: archive.names.{name}: {run.archive} has no column {missing[0]!r}; "
                f"it has {', '.join(map(str, table))}"
            )
        if columns:
            elites[name] = _numbers(run, name, table[columns].to_numpy())
    return elites


def _read_csv(run: ImportedRun, path: Path) -> "pd.DataFrame":
    """Reads an external table, where "nan" is a missing number."""
    import pandas as pd

    try:
        if path.read_bytes()[-1:] != b"\n":
            raise ValueError("its last line is truncated")
        return pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise damaged(path, error, _remedy(run)) from error


def _remedy(run: ImportedRun) -> str:
    return f"fix it, or name another file in {run.path}"


def _numbers(run: ImportedRun, name: str, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind in "cV":  # NumPy would use only a part of each value
        raise BadInput(f"{run.archive}: {name} has values that are not numbers ({values.dtype})")
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"{run.archive}: {name} has values that are not numbers") from None


def _archive(run: ImportedRun, elites: Arrays) -> tuple[ResultArchive, list[str]]:
    """Returns an archive of qdsweep with the elites, and warnings."""
    about = run.about
    grid = about.archive
    if grid.dims is None and "centroids" not in elites:
        raise BadInput(
            f"{run.path}: archive.dims is missing, and {run.archive} has no centroids. Give the "
            "number of cells of the grid along each measure"
        )
    if grid.dims is None:
        centroids, dims = elites["centroids"], len(grid.ranges)
        if centroids.ndim != 2 or centroids.shape[1] != dims or not np.isfinite(centroids).all():
            raise BadInput(
                f"{run.archive}: centroids has the shape {centroids.shape}. {run.path}: "
                f"archive.ranges has {dims} measures, so centroids should be finite numbers with "
                f"the shape (cells, {dims})"
            )
    description = {
        "type": "cvt" if grid.dims is None else "grid",
        "dims": grid.dims,
        "ranges": grid.ranges,
        "qd_score_offset": about.objective_range[0],
    }
    rows = {name: elites[name] for name in ("solution", "objective", "measures")}
    warnings = []
    boundless = int(np.isposinf(rows["objective"]).sum())
    if boundless:
        warnings.append(f"{boundless} of its elites have the objective inf and are left out")
    finite = np.isfinite(rows["objective"])
    rows = {name: values[finite] for name, values in rows.items()}
    try:
        archive: Any = empty_archive(description, elites)
        archive.add(**rows)
    except MemoryError:
        raise BadInput(
            f"{run.path}: archive.dims = {grid.dims}: this many cells do not fit into memory"
        ) from None
    low, high = np.array(grid.ranges).T
    outside = int(((rows["measures"] < low) | (rows["measures"] > high)).any(axis=1).sum())
    if outside:
        warnings.append(
            f"{outside} of its {len(rows['objective'])} elites are outside archive.ranges and "
            "count in a cell at the edge"
        )
    lost = len(rows["objective"]) - len(archive)
    if lost:
        warnings.append(
            f"{lost} of its {len(rows['objective'])} elites share a cell with a better one; check "
            "that archive.dims and archive.ranges are those of the run"
        )
    return ResultArchive(archive), warnings


def _metrics(run: ImportedRun) -> "pd.DataFrame":
    """Reads the external metrics into qdsweep's columns. Missing values are empty.

    The table has at least one row.
    """
    import pandas as pd

    about, path = run.about, run.metrics
    if path is None:
        table = pd.DataFrame({"evaluations": [about.evaluations]})
    else:
        table = _columns(run, path, _read_csv(run, path))
    if "evaluations" not in table:
        if about.evaluations is None:
            raise BadInput(
                f"{path}: there is no column evaluations. Write its name for them into {run.path}: "
                "metrics: {columns: {evaluations: THEIRS}}, or give the key evaluations"
            )
        steps = np.arange(1, len(table) + 1) / len(table)
        table["evaluations"] = np.round(about.evaluations * steps)
    evaluations = np.floor(table["evaluations"].to_numpy(dtype=float))
    if not ((np.diff(evaluations, prepend=0) > 0).all() and evaluations[-1] < 2**53):
        raise BadInput(
            f"{path}: evaluations must be whole numbers above 0 that increase row by row"
        )
    if "coverage" in table and (table["coverage"] > 1).any():
        raise BadInput(
            f"{path}: coverage is up to {table['coverage'].max():g}, but it should be a fraction. "
            f"If it is in percent, write into {run.path}: metrics: {{times: {{coverage: 0.01}}}}"
        )
    table["iteration"] = np.arange(1, len(table) + 1)
    table["evaluations"] = evaluations.astype(np.int64)
    return table


def _completed(table: "pd.DataFrame", cells: int) -> "pd.DataFrame":
    """Returns the table with all columns of metrics.csv, some computed from other columns."""
    for name, other, factor in (
        ("coverage", "num_elites", 1 / cells),
        ("num_elites", "coverage", cells),
        (NORM_QD_SCORE, "qd_score", 1 / cells),
        ("qd_score", NORM_QD_SCORE, cells),
    ):
        if name not in table and other in table:
            table[name] = factor * table[other]
    further = [name for name in table if name not in COLUMNS]
    return table.reindex(columns=[*COLUMNS, *further]).astype({"num_elites": float})


def _columns(run: ImportedRun, path: Path, theirs: "pd.DataFrame") -> "pd.DataFrame":
    import pandas as pd

    log = run.about.metrics
    assert log is not None
    names = {name: name for name in COLUMNS[1:8] if name in theirs} | log.columns
    columns = {}
    for name, column in names.items():
        if column not in theirs:
            raise BadInput(
                f"{run.path}: metrics.columns.{name} = {column!r}: {path} has no such column; it "
                f"has {', '.join(map(str, theirs))}"
            )
        values = pd.to_numeric(theirs[column], errors="coerce")
        faulty = np.flatnonzero(values.isna() & theirs[column].notna())
        if len(faulty):
            raise BadInput(
                f"{path}, row {faulty[0] + 1}: {column} = {theirs[column].iloc[faulty[0]]!r} is "
                "not a number"
            )
        columns[name] = log.times.get(name, 1.0) * values.astype(float)
    if not len(theirs):
        raise BadInput(f"{path}: the table has no rows")
    return pd.DataFrame(columns, index=theirs.index)


def _compare(run: ImportedRun, table: "pd.DataFrame", ours: dict[str, Any]) -> list[str]:
    """Returns a warning if the last external metrics differ from those of the elites."""
    last = table.iloc[-1]
    unequal = []
    for name, value in ours.items():
        logged = float(last.get(name, math.nan))
        if value is None or math.isnan(logged):
            continue
        if not math.isclose(logged, value, rel_tol=_TOLERANCE, abs_tol=1e-9):
            unequal.append(f"{name} is {logged:.6g} in its log and {value:.6g} by its elites")
    if not unequal:
        return []
    low = run.about.objective_range[0]
    return [
        f"{'; '.join(unequal)}. The tables have the latter (offset of the QD score: {low:g}, the "
        "lower end of objective_range)"
    ]
