"""External results: a YAML file describes one group of runs."""

import csv
import hashlib
import itertools
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError, model_validator

from qdsweep.config.explain import explain
from qdsweep.config.files import read_yaml
from qdsweep.config.model import Interval, Model, value_text
from qdsweep.errors import BadInput
from qdsweep.files import damaged, read_arrays
from qdsweep.metrics import RECORDED
from qdsweep.records.paths import IMPORTED_PREFIX
from qdsweep.sweep.groups import IMPORTED_MARK
from qdsweep.text import nearest

if TYPE_CHECKING:
    import numpy as np

DATA = ("objective", "measures", "solution", "centroids")
"""The arrays that are read of a file of elites."""
_LOG = tuple(m.name for m in RECORDED if m.name not in ("iteration", "restarts"))


class Elites(Model):
    """The final elites of a run, and their cells."""

    file: str = Field(
        description=(
            "an .npz or .csv file, relative to the description or an absolute path. `seed` in "
            "braces is replaced by the seed"
        )
    )
    dims: list[int] | None = Field(
        default=None,
        min_length=1,
        description=(
            "cells of a grid along each measure; null: a CVT archive, whose file has `centroids` "
            "[cells]"
        ),
    )
    ranges: list[Interval] = Field(min_length=1, description="lower and upper end of each measure")
    measures: list[str] | None = Field(
        default=None, description="the name of each measure, for axes; null: numbers"
    )
    names: dict[str, str | list[str]] = Field(
        default={},
        description=(
            "objective, measures, solution or centroids -> name in the file: an array of an .npz "
            "file, or a column (objective) or columns of a .csv file"
        ),
    )

    @model_validator(mode="after")
    def _check(self) -> "Elites":
        if self.dims is not None and len(self.dims) != len(self.ranges):
            raise ValueError(
                f"archive.dims has {len(self.dims)} entries, and archive.ranges {len(self.ranges)}:"
                " one for each measure"
            )
        if self.measures is not None and len(self.measures) != len(self.ranges):
            raise ValueError(
                f"archive.measures has {len(self.measures)} names, and archive.ranges "
                f"{len(self.ranges)} entries: one for each measure"
            )
        if self.dims is not None and min(self.dims) < 1:
            raise ValueError(f"archive.dims = {self.dims}: every number must be at least 1")
        _known("archive.names", self.names, DATA)
        return self


class Log(Model):
    """The metrics of the iterations of a run."""

    file: str = Field(description="a .csv file, as archive.file")
    columns: dict[str, str] = Field(
        default={},
        description=(
            "name in qdsweep (evaluations, num_elites, qd_score, norm_qd_score, coverage, "
            "obj_max, obj_mean, or your own metric) -> column in the file; columns with the same "
            "name need no entry"
        ),
    )
    times: dict[str, float] = Field(
        default={},
        description=(
            "name in qdsweep -> factor from the unit of the file to that of qdsweep, such as "
            "coverage: 0.01 for percent"
        ),
    )

    @model_validator(mode="after")
    def _check(self) -> "Log":
        # Others may be the user's metrics.
        for key, names in (("columns", self.columns), ("times", self.times)):
            near = {name: 0 for name in names if name not in _LOG and nearest(name, _LOG)}
            _known(f"metrics.{key}", near, _LOG)
        return self


class Imported(Model):
    """Runs that were computed elsewhere, of one algorithm on one domain."""

    algorithm: str = Field(min_length=1, description="its name in tables and figures")
    domain: str = Field(
        pattern=r"^[A-Za-z0-9_.][A-Za-z0-9_.\-]*$",
        description="its name; the runs are compared with those of a domain of this name",
    )
    seeds: list[Annotated[int, Field(ge=0, lt=2**63)]] = Field(
        min_length=1, description="the seed of each run"
    )
    objective_range: Interval = Field(
        description=(
            "lowest and highest objective; the lowest is the offset of the QD score "
            "[objective units]"
        )
    )
    archive: Elites = Field(description="the final elites")
    metrics: Log | None = Field(
        default=None,
        description="the metrics of the iterations; null: only the final elites are known",
    )
    evaluations: int | None = Field(
        default=None,
        ge=1,
        description="evaluations of a run; null: metrics has them [evaluations]",
    )
    values: dict[str, Any] = Field(
        default={}, description="swept parameter -> its value, such as sigma0: 0.5, for tables"
    )
    source: str = Field(default="", description="its source: a paper, a repository")

    @model_validator(mode="after")
    def _check(self) -> "Imported":
        if self.metrics is None and self.evaluations is None:
            raise ValueError("give evaluations, or metrics that have them")
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds = {self.seeds}: each seed once")
        if len(self.seeds) > 1:
            files = [self.archive.file, *([self.metrics.file] if self.metrics else [])]
            for file in files:
                if "{seed}" not in file:
                    raise ValueError(
                        f"{file} would be the file of all seeds: write {{seed}} in place of the "
                        "seed"
                    )
        return self


@dataclass(frozen=True)
class ImportedRun:
    """One of the runs of a description.

    Attributes:
        about: The description.
        path: Its file.
        seed: The seed.
    """

    about: Imported
    path: Path
    seed: int

    @property
    def id(self) -> str:
        """Its id: domain, algorithm, seed, and the start of its fingerprint."""
        name = re.sub(r"[^A-Za-z0-9_.]+", "_", self.about.algorithm).strip("_") or "algorithm"
        name = name[:80]  # a folder's name may have 255 characters
        return f"{IMPORTED_PREFIX}{self.about.domain}-{name}-s{self.seed}-{self.fingerprint[:10]}"

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of its description and its data, wherever and however its files keep it [hex].

        Raises:
            BadInput: A file is damaged.
        """
        files: Any = {"seeds": True, "archive": {"file"}, "metrics": {"file"}}
        part = self.about.model_dump(mode="json", exclude=files)
        names = self.about.archive.names
        wanted = {str(names.get(name, name)) for name in DATA}
        remedy = f"fix it, or name another file in {self.path}"
        part["data"] = [
            _arrays(path, wanted, remedy) if path.suffix == ".npz" else _columns(path, remedy)
            for path in self.files[1:]
        ]
        return hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()

    @property
    def described(self) -> str:
        """What two runs of one sweep must not share: their names in its tables and figures."""
        part = self.about.model_dump(mode="json", include={"algorithm", "domain", "values"})
        part["archive"] = self.about.archive.model_dump(mode="json", include={"dims", "ranges"})
        return json.dumps([part, self.seed], sort_keys=True)

    @property
    def archive(self) -> Path:
        """The file of its elites."""
        return self._file(self.about.archive.file)

    @property
    def metrics(self) -> Path | None:
        """The file of its metrics."""
        return None if self.about.metrics is None else self._file(self.about.metrics.file)

    @property
    def files(self) -> list[Path]:
        """All files that it is made of."""
        return [self.path, self.archive, *([self.metrics] if self.metrics else [])]

    def row(self, columns: tuple[str, ...]) -> dict[str, Any]:
        """Returns its row of a sweep with these swept parameters, as plain data of plan.json."""
        about = self.about
        own = {name: about.values[name] for name in columns if name in about.values}
        texts = [f"{name} {value_text(value)}" for name, value in own.items()]
        if "domain" in columns:
            texts.insert(0, about.domain)
        known = {
            "algorithm": about.algorithm + IMPORTED_MARK,
            "domain": about.domain,
            "seed": self.seed,
            **own,
        }
        return {
            "values": {name: known.get(name, "") for name in columns},
            "id": self.id,
            "imported": ", ".join([about.algorithm, *texts]) + IMPORTED_MARK,
        }

    def _file(self, pattern: str) -> Path:
        return self.path.parent / pattern.replace("{seed}", str(self.seed))


def _arrays(path: Path, names: Iterable[str], remedy: str) -> dict[str, str]:
    """Returns the hash of each of these arrays of an .npz file."""
    read = read_arrays(path, remedy=remedy)
    return {name: _hash(read[name]) for name in names if name in read}


def _columns(path: Path, remedy: str) -> list[list[str]]:
    """Returns the name and the hash of each column of a .csv file."""
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            columns = [*itertools.zip_longest(*csv.reader(file), fillvalue="")]
    except csv.Error as error:
        raise damaged(path, error, remedy) from None
    return sorted([name, _hash(_numbers(texts))] for name, *texts in columns)


def _numbers(texts: list[str]) -> "np.ndarray":
    """Returns a column as numbers, unless a cell is none."""
    import numpy as np

    try:
        return np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        return np.array(texts)


def _hash(values: "np.ndarray") -> str:
    """Returns the SHA-256 of an array, in which equal numbers are written alike [hex]."""
    import numpy as np

    is_number = values.dtype.kind in "biuf"
    text = f"{is_number} {values.shape} {'' if is_number else values.tolist()}"
    numbers = values.astype(np.float64).tobytes() if is_number else b""
    return hashlib.sha256(text.encode() + numbers).hexdigest()


def read_imported(path: Path) -> list[ImportedRun]:
    """Reads a description and returns its runs.

    Raises:
        BadInput: It is missing or wrong, or a file that it names is missing.
    """
    if not path.is_file():
        raise BadInput(f"imported: {path}: there is no such file (see `qdsweep import --help`)")
    data = read_yaml(path)
    try:
        about = Imported.model_validate_json(json.dumps(data))
    except ValidationError as error:
        raise BadInput(explain(error, Imported, data, {(): str(path)})) from None
    runs = [ImportedRun(about, path, seed) for seed in about.seeds]
    for run in runs:
        for key, file in (("archive.file", run.archive), ("metrics.file", run.metrics)):
            if file is not None and not file.is_file():
                raise BadInput(
                    f"{path}: {key}: there is no {file} (seed {run.seed}); paths are relative to "
                    "the description"
                )
        if run.archive.suffix not in (".npz", ".csv"):
            raise BadInput(f"{path}: archive.file = {run.archive.name}: an .npz or .csv is needed")
    return runs


def read_all(files: Iterable[str]) -> tuple[ImportedRun, ...]:
    """Reads several descriptions and returns all their runs.

    Raises:
        BadInput: One is missing or wrong, or two describe the same run.
    """
    runs: dict[str, ImportedRun] = {}
    for run in (run for file in files for run in read_imported(Path(file))):
        other = runs.setdefault(run.described, run)
        if other is not run:
            raise BadInput(
                f"imported: {run.path} and {other.path} describe the same run (algorithm "
                f"{run.about.algorithm!r}, domain, archive, values and seed {run.seed}): leave one "
                "out, or give one of them another name of the algorithm"
            )
    return tuple(runs.values())


def _known(key: str, given: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"{key}: {name}: {nearest(name, known)}known: {', '.join(known)}")
