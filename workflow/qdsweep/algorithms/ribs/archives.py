"""Every kind of archive that pyribs has for us: how it is built, described, and built again.

Its config model says whether it has cells and whether they stay.
"""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from ribs.archives import (
    ArchiveBase,
    CVTArchive,
    DNSArchive,
    GridArchive,
    ProximityArchive,
    SlidingBoundariesArchive,
)

from qdsweep.algorithms.base import Arrays, Fields
from qdsweep.algorithms.own import call_own, what_is_given
from qdsweep.algorithms.ribs import internals
from qdsweep.algorithms.ribs.centroids import Centroids
from qdsweep.algorithms.ribs.own_archive import require_archive
from qdsweep.config import archives as config
from qdsweep.config.experiment import ArchiveSize, Experiment
from qdsweep.domains.base import Domain
from qdsweep.errors import BadInput
from qdsweep.records.archive import ROWS, field_names

# Arguments of pyribs' class, by name.
Arguments = dict[str, Any]


class Kind(NamedTuple):
    """A kind of archive.

    Attributes:
        ribs: Its class in pyribs.
        arguments: (config, size, domain, centroids) -> the arguments that are this kind's own.
        again: (`archive` of summary.json, archive.npz) -> the same for an archive in which every
            elite stays where it was.
        geometry: What archive.npz has besides, to know where the cells are.
        restore: Gives an archive that was built again what its arguments could not.
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
            "archive.npz has no `boundaries`, without which the cells of a sliding-boundaries"
            " archive are unknown. Read archive.npz with numpy instead."
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


KINDS = {
    "grid": Kind(GridArchive, _grid, _grid_again),
    "cvt": Kind(
        CVTArchive,
        _cvt,
        _cvt_again,
        geometry=lambda archive: {"centroids": archive.centroids},
    ),
    "sliding_boundaries": Kind(
        SlidingBoundariesArchive,
        _sliding,
        _sliding_again,
        geometry=lambda archive: {"boundaries": internals.boundaries(archive)},
        restore=lambda archive, arrays: internals.set_boundaries(archive, arrays["boundaries"]),
    ),
    "proximity": Kind(ProximityArchive, _proximity, _proximity_again),
    "dns": Kind(DNSArchive, _dns, _dns_again),
}


def kind_of(archive: ArchiveBase) -> str | None:
    """The kind of an archive, as the config calls it; None for one of the user's."""
    return next((name for name, kind in KINDS.items() if kind.ribs is type(archive)), None)


def nearest_kind(archive: ArchiveBase) -> str:
    """The kind whose cells an archive has; for one of the user's that has none, `proximity`."""
    for name, kind in KINDS.items():
        if isinstance(archive, kind.ribs) and type(archive).index_of is kind.ribs.index_of:
            return name
    return "proximity"  # rows without cells, that is, whatever decides which are kept


def build_archive(
    archive: config.Archive,
    experiment: Experiment,
    domain: Domain,
    fields: Fields,
    centroids: Centroids,
    seed: np.random.SeedSequence | None = None,
) -> ArchiveBase:
    """Builds an archive from its config.

    Args:
        archive: Its config.
        experiment: Gives the number of cells.
        domain: Gives measures, ranges and objective range.
        fields: What it keeps with each elite besides.
        centroids: Gives the centroids of a CVT archive.
        seed: Of what the archive draws.
    """
    if isinstance(archive, config.PluginArchive):
        given = {**what_is_given(experiment, domain, fields), "seed": seed}
        own: ArchiveBase = call_own("algorithm.archive", archive.type, archive.arguments, given)
        require_archive(own, archive.type, domain)
        return own
    kind = KINDS[archive.type]
    archive_class: Any = kind.ribs
    return archive_class(
        solution_dim=domain.solution_dim,
        qd_score_offset=domain.objective_range[0],
        extra_fields=fields,
        seed=seed,
        **kind.arguments(archive, experiment.archive, domain, centroids),
    )


def rebuild_archive(about: dict[str, Any], arrays: Arrays) -> ArchiveBase:
    """Builds the archive of a run again, with each elite in the cell that it was in.

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
            " summary.json describes: remove both, and start snakemake again."
        )
    return archive


def empty_archive(about: dict[str, Any], arrays: Arrays) -> ArchiveBase:
    """Builds an empty archive of the same cells, for solutions and fields like `arrays`.

    Args:
        about: `archive` of summary.json.
        arrays: The arrays of archive.npz, or others with the same cells.

    Raises:
        BadInput: The type of archive is unknown.
    """
    kind = KINDS.get(about["type"])
    if kind is None:
        raise BadInput(
            f"An archive of type {about['type']!r} cannot be rebuilt, only {', '.join(KINDS)}."
            " Read archive.npz with numpy instead."
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
    archive: config.GridArchive | config.CVTArchive, domain: Domain
) -> dict[str, float | None]:
    """CMA-MAE's annealing (Fontaine & Nikolaidis 2023, eq. 2); none without a learning rate."""
    if archive.learning_rate is None:
        return {}
    lowest = archive.threshold_min
    return {
        "learning_rate": archive.learning_rate,
        "threshold_min": domain.objective_range[0] if lowest is None else lowest,
    }
