"""The metrics of a pyribs archive, from what pyribs keeps of them."""

from typing import Any


def figures(archive: Any) -> dict[str, Any]:
    """The figures of an archive, None where it has no cells that they could be of."""
    stats = archive.stats
    structured = has_cells(archive)
    return {
        "num_elites": int(stats.num_elites),
        "coverage": float(stats.coverage) if structured else None,
        "qd_score": float(stats.qd_score),
        "norm_qd_score": float(stats.norm_qd_score) if structured else None,
        "obj_max": None if stats.obj_max is None else float(stats.obj_max),
        "obj_mean": None if stats.obj_mean is None else float(stats.obj_mean),
    }


def has_cells(archive: Any) -> bool:
    """Whether an archive divides the measure space: else coverage means nothing."""
    return type(archive).__name__ not in ("ProximityArchive", "DNSArchive")
