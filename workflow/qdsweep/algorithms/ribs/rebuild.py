"""Rebuilds a pyribs archive from archive.npz and its description in summary.json."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.errors import BadInput

if TYPE_CHECKING:
    from ribs.archives import ArchiveBase

Arrays = dict[str, np.ndarray]

_ROWS = ("solution", "objective", "measures")
# Arrays that describe cells, and pyribs' own thresholds, are no fields of an elite.
_NOT_FIELDS = (*_ROWS, "index", "threshold", "centroids", "boundaries")


def rebuild_archive(about: dict[str, Any], arrays: Arrays) -> "ArchiveBase":
    """Returns a pyribs archive with the given elites, each in the cell that it was in.

    Args:
        about: `archive` of summary.json.
        arrays: The arrays of archive.npz.

    Raises:
        BadInput: The type of archive cannot be rebuilt, or the elites do not fit its cells.
    """
    archive = empty_archive(about, arrays)
    fields = [name for name in arrays if name not in _NOT_FIELDS]
    order = np.argsort(arrays["index"], kind="stable")
    if len(order):
        archive.add(**{name: arrays[name][order] for name in (*_ROWS, *fields)})
    if not np.array_equal(np.sort(archive.data("index")), arrays["index"][order]):
        raise BadInput(
            f"The elites of archive.npz do not fit the cells of the {about['type']} archive that"
            " summary.json describes: remove both, and start snakemake again."
        )
    return archive


def empty_archive(about: dict[str, Any], arrays: Arrays) -> "ArchiveBase":
    """Returns an empty pyribs archive of the same cells, for solutions and fields like `arrays`.

    Args:
        about: `archive` of summary.json.
        arrays: The arrays of archive.npz, or others with the same cells.

    Raises:
        BadInput: The type of archive cannot be rebuilt.
    """
    build = _BUILDERS.get(about["type"])
    if build is None:
        raise BadInput(
            f"An archive of type {about['type']!r} cannot be rebuilt, only {', '.join(_BUILDERS)}."
            " Read archive.npz with numpy instead."
        )
    fields = [name for name in arrays if name not in _NOT_FIELDS]
    common: dict[str, Any] = {
        "solution_dim": arrays["solution"].shape[1:],
        "qd_score_offset": about["qd_score_offset"],
        "extra_fields": {name: (arrays[name].shape[1:], arrays[name].dtype) for name in fields},
        **{f"{name}_dtype": arrays[name].dtype for name in _ROWS},
    }
    return build(about, arrays, common)


def _grid(about: dict[str, Any], arrays: Arrays, common: dict[str, Any]) -> "ArchiveBase":
    from ribs.archives import GridArchive

    return GridArchive(dims=about["dims"], ranges=about["ranges"], **common)


def _cvt(about: dict[str, Any], arrays: Arrays, common: dict[str, Any]) -> "ArchiveBase":
    from ribs.archives import CVTArchive

    return CVTArchive(centroids=arrays["centroids"], ranges=about["ranges"], **common)


def _sliding(about: dict[str, Any], arrays: Arrays, common: dict[str, Any]) -> "ArchiveBase":
    from ribs.archives import SlidingBoundariesArchive

    if "boundaries" not in arrays:
        raise BadInput(
            "archive.npz has no `boundaries`, without which the cells of a sliding-boundaries"
            " archive are unknown. Read archive.npz with numpy instead."
        )
    archive = SlidingBoundariesArchive(
        dims=about["dims"], ranges=about["ranges"], remap_frequency=sys.maxsize, **common
    )
    # pyribs has no way to set boundaries: as at the end of its own remapping.
    archive._boundaries = arrays["boundaries"].copy()
    archive._lower_bounds = archive._boundaries[:, 0].copy()
    archive._upper_bounds = np.array(
        [edges[dim] for edges, dim in zip(archive._boundaries, archive.dims, strict=True)]
    )
    archive._interval_size = archive._upper_bounds - archive._lower_bounds
    return archive


def _proximity(about: dict[str, Any], arrays: Arrays, common: dict[str, Any]) -> "ArchiveBase":
    from ribs.archives import ProximityArchive

    # Every elite is novel enough for this archive, so each keeps its row.
    return ProximityArchive(
        measure_dim=arrays["measures"].shape[1],
        k_neighbors=1,
        novelty_threshold=0.0,
        initial_capacity=max(len(arrays["objective"]), 1),
        **common,
    )


def _dns(about: dict[str, Any], arrays: Arrays, common: dict[str, Any]) -> "ArchiveBase":
    from ribs.archives import DNSArchive

    return DNSArchive(
        measure_dim=arrays["measures"].shape[1],
        k_neighbors=1,
        capacity=max(len(arrays["objective"]), 1),
        **common,
    )


_BUILDERS: dict[str, Callable[[dict[str, Any], Arrays, dict[str, Any]], "ArchiveBase"]] = {
    "grid": _grid,
    "cvt": _cvt,
    "sliding_boundaries": _sliding,
    "proximity": _proximity,
    "dns": _dns,
}
