"""Builds, describes and rebuilds archives of pyribs and of the user.

The config model of a type declares whether it has cells and whether these stay. Centroids of CVT
archives are computed once and shared by the runs of a sweep. `ResultArchive` is the interface to
the loop, the history and the results.
"""

import hashlib
import io
import json
import logging
import math
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from ribs.archives import (
    ArchiveBase,
    CVTArchive,
    DensityArchive,
    DiscountArchive,
    DNSArchive,
    GridArchive,
    ProximityArchive,
    SlidingBoundariesArchive,
)

from qdsweep.algorithms.base import SEED, Archive, Arrays, Cells, Fields
from qdsweep.algorithms.own import call_own, what_is_given
from qdsweep.algorithms.ribs import internals
from qdsweep.config import archive_kinds as config
from qdsweep.config.archive_kinds import ARCHIVES, FIXED
from qdsweep.config.experiment import ArchiveSize, Experiment
from qdsweep.domains.base import Domain, Floats
from qdsweep.errors import BadInput
from qdsweep.files import atomic, damaged, write_text
from qdsweep.host.lock import Lock
from qdsweep.metrics import NORM_QD_SCORE
from qdsweep.records.archive import ROWS, archive_rows, field_names
from qdsweep.records.sums import damaged_files, sums_of
from qdsweep.versions import installed_versions

log = logging.getLogger("qdsweep")

# Arguments of a class of pyribs, by name.
Arguments = dict[str, Any]


def require_archive(archive: Any, target: str, domain: Domain) -> None:
    """Refuses an archive whose results could not be written.

    Args:
        archive: The archive.
        target: The user's `module:name` that made it, for the message.
        domain: The domain of its solutions.

    Raises:
        BadInput: It has no data, or does not have the domain's dimensions or ranges.
    """
    if not callable(getattr(archive, "data", None)) or not callable(getattr(archive, "add", None)):
        raise BadInput(
            f"{target}: {type(archive).__name__} is not an archive: it needs add(solution, "
            "objective, measures, **fields) and data(), a dict of arrays, like pyribs' archives"
        )
    sizes = {"solution_dim": domain.solution_dim, "measure_dim": len(domain.measures)}
    for name, value in sizes.items():
        actual = getattr(archive, name, value)
        if np.shape(actual) == () and int(actual) != value:
            raise BadInput(
                f"{target}: its archive has {name} = {actual}, but the domain has {value}; add "
                f"`{name}` to the arguments, and qdsweep passes the domain's value"
            )
    ranges = np.array(list(domain.measures.values()), dtype=float).T
    for bound, values in zip(("lower_bounds", "upper_bounds"), ranges, strict=True):
        ends = getattr(archive, bound, None)
        if ends is not None and not np.allclose(np.asarray(ends, dtype=float), values):
            raise BadInput(
                f"{target}: its archive has {bound} {np.asarray(ends).tolist()}, but the measures "
                f"of the domain have {values.tolist()}; add `ranges` to the arguments, or set "
                "domain.ranges"
            )


class Centroids:
    """A folder of centroids, one file for each (cells, ranges, samples, seed, scikit-learn).

    Without a folder they are arbitrary points, which suffice for a check.

    k-means takes half a minute for 10,000 cells, and its last bits change with the number of
    threads. The first process computes the centroids, and all others read the file. Its checksum is
    next to it. A file of an earlier release, whose name lacks the version of scikit-learn, is used
    while it is there.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def get(
        self, archive: config.CVTArchive, cells: int, ranges: list[tuple[float, float]]
    ) -> Floats:
        """Returns the centroids (Vassiliades et al. 2018, alg. 1).

        Args:
            archive: The archive's config.
            cells: Number of centroids.
            ranges: (lower, upper) of each measure.

        Returns:
            ``(cells, m)`` centroids.

        Raises:
            BadInput: Their file has changed since it was written, and other ones are computed now.
        """
        if self.folder is None:
            return np.random.default_rng(0).random((cells, len(ranges)))
        key = [cells, ranges, archive.samples, archive.centroids_seed]
        path, shape = _centroids_file(self.folder, key), (cells, len(ranges))
        if not path.exists():
            path = _centroids_file(self.folder, [*key, installed_versions(("scikit-learn",))])
        centroids = _read(path, shape)
        if centroids is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            with Lock(self.folder / f".{path.name}.lock", wait=math.inf):  # others wait, then read
                centroids = _read(path, shape)
                if centroids is None:
                    centroids = _k_means(archive, cells, ranges)
                    _write(path, centroids)
        return centroids


def _centroids_file(folder: Path, key: list[Any]) -> Path:
    name = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:10]
    return folder / f"cvt-{key[0]}-{name}.npy"


def _read(path: Path, shape: tuple[int, int]) -> Floats | None:
    """Returns the centroids of a file, or None where it is missing, truncated or has changed."""
    sums = path.with_suffix(".sha256")
    if damaged_files(sums, path.parent):
        return None
    try:
        centroids = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if centroids.shape != shape or centroids.dtype != np.float64:
        return None
    if not sums.exists():  # of an earlier release
        with suppress(OSError):  # the folder may be another user's
            write_text(sums, sums_of(path.parent, [path]))
    return centroids


def _write(path: Path, centroids: Floats) -> None:
    """Writes the centroids and their checksum, also in the place of a damaged file."""
    sums, buffer = path.with_suffix(".sha256"), io.BytesIO()
    np.save(buffer, centroids)
    content = buffer.getvalue()
    if not path.exists():
        sums.unlink(missing_ok=True)
    elif not sums.exists():
        log.warning("%s is damaged: it is computed again", path)
    elif path.read_bytes() == content:
        log.warning("%s is damaged: it is written again", sums)
    elif hashlib.sha256(content).hexdigest() in sums.read_text(errors="replace"):
        log.warning("%s has changed since it was written: it is computed again", path)
    else:
        raise damaged(
            path,
            ValueError("it has changed since it was written, and k-means gives other points now"),
            f"restore it from a copy. Or remove it and {sums.name}; then new runs have other cells",
        )
    with atomic(path, durable=True) as file:
        file.write(content)
    write_text(sums, sums_of(path.parent, [path]))


def _k_means(archive: config.CVTArchive, cells: int, ranges: list[tuple[float, float]]) -> Floats:
    from ribs.archives import k_means_centroids  # imports scikit-learn

    return k_means_centroids(
        centroids=cells,
        ranges=ranges,
        samples=archive.samples,
        seed=archive.centroids_seed,
    )[0]


class ArchiveType(NamedTuple):
    """A type of archive.

    Attributes:
        ribs: Its class in pyribs.
        arguments: (config, size, domain, centroids) -> the arguments that only this type has.
        again: (`archive` of summary.json, archive.npz) -> the same for a rebuilt archive, in which
            every elite keeps its place.
        geometry: Archive -> the further arrays of archive.npz that define the cells.
        restore: Sets the state of a rebuilt archive that its arguments cannot set.
    """

    ribs: type[ArchiveBase]
    arguments: Callable[[Any, ArchiveSize, Domain, Centroids], Arguments]
    again: Callable[[dict[str, Any], Arrays], Arguments]
    geometry: Callable[[Any], Arrays] = lambda archive: {}
    restore: Callable[[Any, Arrays], None] = lambda archive, arrays: None


def _grid(archive: Any, size: ArchiveSize, domain: Domain, _: Centroids) -> Arguments:
    return {"dims": size.dims, "ranges": _ranges(domain), **_threshold(archive, domain)}


def _grid_again(about: dict[str, Any], arrays: Arrays) -> Arguments:
    return {"dims": about["dims"], "ranges": about["ranges"]}


def _cvt(archive: Any, size: ArchiveSize, domain: Domain, centroids: Centroids) -> Arguments:
    ranges = _ranges(domain)
    points = centroids.get(archive, size.size, ranges)
    return {"centroids": points, "ranges": ranges, **_threshold(archive, domain)}


def _cvt_again(about: dict[str, Any], arrays: Arrays) -> Arguments:
    return {"centroids": arrays["centroids"], "ranges": about["ranges"]}


def _sliding(archive: Any, size: ArchiveSize, domain: Domain, _: Centroids) -> Arguments:
    return {"dims": size.dims, "ranges": _ranges(domain)} | archive.model_dump(exclude={"type"})


def _sliding_again(about: dict[str, Any], arrays: Arrays) -> Arguments:
    if "boundaries" not in arrays:
        raise BadInput(
            "archive.npz has no `boundaries`, which define the cells of a sliding-boundaries"
            " archive. Read archive.npz with numpy instead."
        )
    return {**_grid_again(about, arrays), "remap_frequency": sys.maxsize}


def _proximity(archive: Any, size: ArchiveSize, domain: Domain, _: Centroids) -> Arguments:
    return {"measure_dim": len(domain.measures)} | archive.model_dump(exclude={"type"})


def _proximity_again(about: dict[str, Any], arrays: Arrays) -> Arguments:
    return {
        "measure_dim": arrays["measures"].shape[1],
        "k_neighbors": 1,
        "novelty_threshold": 0.0,  # every elite is novel enough, so each keeps its row
        "initial_capacity": max(len(arrays["objective"]), 1),
    }


def _dns(archive: Any, size: ArchiveSize, domain: Domain, _: Centroids) -> Arguments:
    own = {"measure_dim": len(domain.measures), "capacity": size.size}
    return own | archive.model_dump(exclude={"type"})


def _dns_again(about: dict[str, Any], arrays: Arrays) -> Arguments:
    return {
        "measure_dim": arrays["measures"].shape[1],
        "k_neighbors": 1,
        "capacity": max(len(arrays["objective"]), 1),
    }


ARCHIVE_TYPES = {
    "grid": ArchiveType(GridArchive, _grid, _grid_again),
    "cvt": ArchiveType(
        CVTArchive,
        _cvt,
        _cvt_again,
        geometry=lambda archive: {"centroids": archive.centroids},
    ),
    "sliding_boundaries": ArchiveType(
        SlidingBoundariesArchive,
        _sliding,
        _sliding_again,
        geometry=lambda archive: {"boundaries": internals.boundaries(archive)},
        restore=lambda archive, arrays: internals.set_boundaries(archive, arrays["boundaries"]),
    ),
    "proximity": ArchiveType(ProximityArchive, _proximity, _proximity_again),
    "dns": ArchiveType(DNSArchive, _dns, _dns_again),
}
_DATA = [kind.ribs.data for kind in ARCHIVE_TYPES.values()]


def _is_in_store(archive: Any) -> bool:
    """Returns whether `data` of an archive returns the rows of its store."""
    return getattr(type(archive), "data", None) in _DATA


def type_of_archive(archive: ArchiveBase) -> str | None:
    """Returns the config's name of an archive's type; None for a user's class."""
    return next((name for name, kind in ARCHIVE_TYPES.items() if kind.ribs is type(archive)), None)


def nearest_kind(archive: ArchiveBase) -> str:
    """Returns the type whose cells an archive has; `proximity` for a user's without cells."""
    for name, kind in ARCHIVE_TYPES.items():
        if isinstance(archive, kind.ribs) and type(archive).index_of is kind.ribs.index_of:
            return name
    return "proximity"  # its rows have no cells


def build_archive(
    archive: config.SearchArchive,
    experiment: Experiment,
    domain: Domain,
    fields: Fields,
    centroids: Centroids,
    seed: np.random.SeedSequence,
    result: ArchiveBase | None = None,
    classes: Mapping[type[ArchiveBase], Callable[..., ArchiveBase]] = MappingProxyType({}),
) -> ArchiveBase:
    """Builds an archive from its config.

    Args:
        archive: Its config.
        experiment: Gives the number of cells.
        domain: Gives measures, ranges and objective range.
        fields: Further fields of each elite.
        centroids: Gives the centroids of a CVT archive.
        seed: The seed of the archive's random draws.
        result: The archive of results, if there is another one.
        classes: Classes of pyribs -> what is called in their place, with the same arguments.
    """
    if isinstance(archive, config.PluginArchive):
        given = {**what_is_given(experiment, domain, fields), "seed": seed}
        own: ArchiveBase = call_own("algorithm.archive", archive.type, archive.arguments, given)
        require_archive(own, archive.type, domain)
        return own
    if isinstance(archive, config.DensityArchive):
        return _density(archive, domain, seed)
    if isinstance(archive, config.DiscountArchive):
        return _discounts(archive, domain, seed, result)
    kind = ARCHIVE_TYPES[archive.type]
    archive_class: Any = classes.get(kind.ribs, kind.ribs)
    return archive_class(
        solution_dim=domain.solution_dim,
        qd_score_offset=domain.objective_range[0],
        extra_fields=fields,
        seed=seed,
        **kind.arguments(archive, experiment.archive, domain, centroids),
    )


def _density(
    archive: config.DensityArchive, domain: Domain, seed: np.random.SeedSequence
) -> DensityArchive:
    """Builds a density archive, which has no fields, cells or scores."""
    keys = archive.model_dump(exclude={"type"})
    if keys["bandwidth"] is None:  # Lee et al. 2024
        keys["bandwidth"] = 0.05 * float(np.mean([high - low for low, high in _ranges(domain)]))
    made = DensityArchive(measure_dim=len(domain.measures), seed=seed, **keys)
    internals.clear_buffer(made)
    return made


def _discounts(
    archive: config.DiscountArchive,
    domain: Domain,
    seed: np.random.SeedSequence,
    result: ArchiveBase | None,
) -> DiscountArchive:
    """Builds a discount archive and trains its model for the first time."""
    from qdsweep.algorithms.pytorch.discount import DiscountModel  # imports torch

    (model_seed,) = seed.spawn(1)
    made = DiscountArchive(
        solution_dim=domain.solution_dim,
        measure_dim=len(domain.measures),
        discount_model_manager=DiscountModel(
            archive.model_dump(), _ranges(domain), domain.objective_range, model_seed
        ),
        result_archive=result,
        init_train_points=archive.init_train_points,
        empty_points=archive.empty_points,
        seed=seed,
        **_threshold(archive, domain),
    )
    made.init_discount_model()
    return made


def rebuild_archive(about: dict[str, Any], arrays: Arrays) -> ArchiveBase:
    """Rebuilds the archive of a run, with each elite in its cell.

    Args:
        about: `archive` of summary.json.
        arrays: The arrays of archive.npz.

    Raises:
        BadInput: The type of archive is unknown, or the elites do not fit its cells.
    """
    archive = empty_archive(about, arrays)
    order = np.argsort(arrays["index"], kind="stable")
    if len(order):
        archive.add(**{name: arrays[name][order] for name in (*ROWS, *field_names(arrays))})
    if not np.array_equal(np.sort(archive.data("index")), arrays["index"][order]):
        raise BadInput(
            f"The elites of archive.npz do not fit the cells of the {about['type']} archive that"
            " summary.json describes. Remove both files, and start snakemake again."
        )
    return archive


def empty_archive(about: dict[str, Any], arrays: Arrays) -> ArchiveBase:
    """Builds an empty archive with the same cells, for solutions and fields like `arrays`.

    Args:
        about: `archive` of summary.json.
        arrays: The arrays of archive.npz, or others with the same cells.

    Raises:
        BadInput: The type of archive is unknown.
    """
    kind = ARCHIVE_TYPES.get(about["type"])
    if kind is None:
        raise BadInput(
            f"An archive of type {about['type']!r} cannot be rebuilt. Only "
            f"{', '.join(ARCHIVE_TYPES)} can. Read archive.npz with numpy instead."
        )
    fields = {name: (arrays[name].shape[1:], arrays[name].dtype) for name in field_names(arrays)}
    archive_class: Any = kind.ribs
    archive = archive_class(
        solution_dim=arrays["solution"].shape[1:],
        qd_score_offset=about["qd_score_offset"],
        extra_fields=fields,
        **{f"{name}_dtype": arrays[name].dtype for name in ROWS},
        **kind.again(about, arrays),
    )
    kind.restore(archive, arrays)
    return archive


def _ranges(domain: Domain) -> list[tuple[float, float]]:
    return list(domain.measures.values())


def _threshold(
    archive: config.GridArchive | config.CVTArchive | config.DiscountArchive, domain: Domain
) -> dict[str, float | None]:
    """Returns the arguments of CMA-MAE's annealing (Fontaine & Nikolaidis 2023, eq. 2), if any."""
    if archive.learning_rate is None:
        return {}
    lowest = archive.threshold_min
    return {
        "learning_rate": archive.learning_rate,
        "threshold_min": domain.objective_range[0] if lowest is None else lowest,
    }


class ResultArchive(Archive):
    """The `Archive` of a run around an archive of pyribs, or a user's with its interface.

    Args:
        archive: The archive, with pyribs' interface.
        qd_score_offset: The offset of the QD score; None for the archive's own.

    Attributes:
        ribs_archive: The archive, with pyribs' interface.

    Example:
        >>> from ribs.archives import GridArchive
        >>> from qdsweep.algorithms.ribs.archives import ResultArchive
        >>> grid = GridArchive(solution_dim=2, dims=[10, 10], ranges=[(-1, 1), (-1, 1)])
        >>> grid.add([[0.1, 0.2], [0.3, 0.4]], [1.0, 2.0], [[-0.9, -0.9], [0.9, 0.9]])["status"]
        array([2, 2], dtype=int32)
        >>> archive = ResultArchive(grid)
        >>> archive.metrics()["coverage"], archive.rows()["index"]
        (0.02, array([ 0, 99]))
    """

    _offset: float | None = None

    def __init__(self, archive: ArchiveBase, qd_score_offset: float | None = None) -> None:
        self.ribs_archive: Any = archive
        self._name = nearest_kind(archive)
        self._offset = qd_score_offset
        facts = ARCHIVES[self._name]
        self.cells = None if facts.cells is None else int(archive.cells)
        # A class that overrides `data` may have its elites elsewhere.
        self.cells_stay = facts.cells in FIXED and _is_in_store(archive)

    def rows(self) -> Arrays:
        """Returns the elites, sorted by cell, or by the bytes of the solution without cells."""
        elites = {name: np.asarray(rows) for name, rows in self.ribs_archive.data().items()}
        elites.pop("threshold", None)  # pyribs' internal state of its cells
        elites.setdefault("index", np.arange(len(elites["objective"])))
        return archive_rows(elites, indexed=self.cells is not None)

    def describe(self) -> dict[str, Any]:
        """Returns type, number of cells and, for a grid, `dims`."""
        dims = getattr(self.ribs_archive, "dims", None)
        dims = None if dims is None else [int(n) for n in dims]
        about = {"type": self._name, "cells": self.cells, "dims": dims}
        own = type(self.ribs_archive)
        return about if type_of_archive(self.ribs_archive) else {**about, "class": own.__name__}

    def geometry(self) -> Arrays:
        """Returns the centroids of a CVT archive, or the boundaries of a sliding one."""
        return ARCHIVE_TYPES[self._name].geometry(self.ribs_archive)

    def cells_of(self, measures: Floats) -> Cells:
        """Returns the cell ``(n,)`` of each of ``(n, m)`` measures, by pyribs' `index_of`."""
        return self.ribs_archive.index_of(measures)

    def objectives(self, cells: Cells) -> tuple[Cells, Floats]:
        """Returns the occupied cells among these, and the objective of the elite in each."""
        return internals.objectives(self.ribs_archive, cells)

    @property
    def replaces_ties(self) -> bool:  # type: ignore[override]
        """Whether the archive has thresholds, which may be below the objective of an elite."""
        return bool(getattr(self.ribs_archive, "threshold_min", -np.inf) > -np.inf)

    def marks(self, cells: Cells) -> tuple[Cells, Floats]:
        """Returns the occupied cells among these; objective, measures and seed of their elites."""
        known = self.ribs_archive.field_list
        names = [name for name in ("objective", "measures", SEED) if name in known]
        return internals.marks(self.ribs_archive, cells, names)

    def rows_in(self, cells: Cells) -> Arrays:
        """Returns the `rows` in some cells, in any order."""
        elites = internals.elites_in(self.ribs_archive, cells)
        elites.pop("threshold", None)
        return archive_rows(elites, indexed=True)

    def metrics(self) -> dict[str, Any]:
        """Returns the metrics, None where one is undefined.

        The sums are those of the elites in the order of `rows`. pyribs' own are updated by
        differences, which lose all digits once a huge objective was replaced.
        """
        objective, offset = self._every_objective(), self._offset
        if offset is None:
            offset = float(getattr(self.ribs_archive, "qd_score_offset", 0.0))
        count = len(objective)
        total = np.add.reduce(objective)  # as `sum`, at half its cost
        score = float(np.add.reduce(objective - offset) if offset else total)
        coverage = norm = None
        if self.cells is not None:
            coverage, norm = count / self.cells, score / self.cells
        return {
            "num_elites": count,
            "qd_score": score,
            "obj_max": self._best_ever(objective),
            "obj_mean": float(total) / count if count else None,
            "coverage": coverage,
            NORM_QD_SCORE: norm,
        }

    def _every_objective(self) -> Floats:
        """Returns the objective ``(n,)`` of each elite, in the order of `rows`."""
        archive = self.ribs_archive
        if _is_in_store(archive):
            return internals.every_objective(archive, indexed=self.cells is not None)
        try:
            return self.rows()["objective"]
        except KeyError:  # a user's archive may have no arrays while it is empty
            return np.empty(0)

    def _best_ever(self, objective: Floats) -> float | None:
        """Returns the highest objective that pyribs' archive has had; else of the elites."""
        try:
            best = self.ribs_archive.stats.obj_max
        except (AttributeError, NotImplementedError, TypeError):
            best = objective.max() if len(objective) else None
        return None if best is None else float(best)
