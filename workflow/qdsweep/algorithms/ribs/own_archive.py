"""Archives that are no class of pyribs' own: what they must have, and what is known of them."""

from typing import Any

import numpy as np

from qdsweep.domains.base import Domain
from qdsweep.errors import BadInput


def require_archive(archive: Any, target: str, domain: Domain) -> None:
    """Refuses an archive that results cannot be written of.

    Args:
        archive: The archive.
        target: Where it comes from, for the message.
        domain: What is kept in it.

    Raises:
        BadInput: It has no data, or its space is not the domain's.
    """
    if not callable(getattr(archive, "data", None)) or not callable(getattr(archive, "add", None)):
        raise BadInput(
            f"{target}: {type(archive).__name__} is no archive: it needs add(solution, objective, "
            "measures, **fields) and data(), a dict of arrays, as pyribs' archives have them"
        )
    wanted = {"solution_dim": domain.solution_dim, "measure_dim": len(domain.measures)}
    for name, value in wanted.items():
        found = getattr(archive, name, value)
        if np.shape(found) == () and int(found) != value:
            raise BadInput(
                f"{target}: its archive has {name} = {found}, but the domain has {value}; take "
                f"`{name}` as an argument, which is given then"
            )
    ranges = np.array(list(domain.measures.values()), dtype=float).T
    for bound, values in zip(("lower_bounds", "upper_bounds"), ranges, strict=True):
        found = getattr(archive, bound, None)
        if found is not None and not np.allclose(np.asarray(found, dtype=float), values):
            raise BadInput(
                f"{target}: its archive has {bound} {np.asarray(found).tolist()}, but the measures "
                f"of the domain have {values.tolist()}; take `ranges` as an argument, or set "
                "domain.ranges"
            )


def statistics(archive: Any, qd_score_offset: float | None) -> dict[str, Any]:
    """Elites, QD score, best and mean objective of an archive.

    Args:
        archive: The archive. What it keeps itself is taken; without `stats` the elites are read.
        qd_score_offset: The offset that scores are to have; None for the archive's own.
    """
    try:
        stats = archive.stats
        count, score = int(stats.num_elites), float(stats.qd_score)
        best, mean = stats.obj_max, stats.obj_mean
        own = float(getattr(archive, "qd_score_offset", 0.0))
    except (AttributeError, NotImplementedError, TypeError):
        objective = np.asarray(archive.data().get("objective", ()), dtype=float)
        count, score, own = len(objective), float(objective.sum()), 0.0
        best, mean = (objective.max(), objective.mean()) if count else (None, None)
    if qd_score_offset is not None and own != qd_score_offset:
        score += count * (own - qd_score_offset)
    return {
        "num_elites": count,
        "qd_score": score,
        "obj_max": None if best is None else float(best),
        "obj_mean": None if mean is None else float(mean),
    }
