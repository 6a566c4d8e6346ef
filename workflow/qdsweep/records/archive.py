"""archive.npz: the elites of a run, in a fixed order, and their digest."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsweep.config.archive_kinds import GEOMETRY

ROWS = ("solution", "objective", "measures")
# The field with the evaluation seed of each elite.
SEED = "evaluation_seed"
# Arrays that describe cells, and pyribs' own thresholds, are no fields of an elite.
_NOT_FIELDS = (*ROWS, "index", "threshold", *GEOMETRY)
TAKEN = (*_NOT_FIELDS, SEED)
"""The arrays that no domain may name a field after."""


def archive_rows(elites: dict[str, NDArray[Any]], *, indexed: bool) -> dict[str, NDArray[Any]]:
    """The elites of an archive in a fixed order.

    Args:
        elites: index, objective, measures, solution and extra fields, each ``(n, ...)``.
        indexed: Whether `index` is that of a cell; else they are sorted by the solution's bytes.

    Returns:
        index ``(n,)`` int64 (where there is one), objective, measures, solution, extra fields.
    """
    data = dict(elites)
    index = data.pop("index").astype("<i8")
    named = ("objective", "measures", "solution")
    rows = {name: np.ascontiguousarray(data.pop(name), dtype="<f8") for name in named}
    if indexed:
        order = np.argsort(index, kind="stable")
        rows = {"index": index, **rows}
    else:
        order = order_by_bytes(rows["solution"], np.arange(len(index)))
    return {name: values[order] for name, values in (rows | data).items()}


def order_by_bytes(solutions: NDArray[Any], places: NDArray[Any]) -> NDArray[np.int64]:
    """Returns the order of some solutions by their bytes as little-endian float64.

    Args:
        solutions: ``(k, ...)`` solutions.
        places: ``(n,)`` the places of n of them.

    Returns:
        ``(n,)`` positions in `places`.
    """
    # Most solutions differ in the first parameter, which is quick to compare as a number.
    first = np.ascontiguousarray(solutions[places, *[0] * (solutions.ndim - 1)], dtype="<f8")
    keys = first.view(">u8").astype(np.uint64)
    order = np.argsort(keys)
    if (keys[order[1:]] != keys[order[:-1]]).all():
        return order
    every = np.ascontiguousarray(solutions[places], dtype="<f8").reshape(len(places), -1)
    return np.argsort(every.view(f"V{every.strides[0]}").ravel(), kind="stable")


def field_names(arrays: dict[str, NDArray[Any]]) -> list[str]:
    """Returns the names of the other fields that archive.npz has of its elites."""
    return [name for name in arrays if name not in _NOT_FIELDS]


def archive_digest(rows: dict[str, NDArray[Any]]) -> str:
    """SHA-256 over the rows: index (int64), objective, measures, solution (float64).

    Args:
        rows: From `archive_rows`.

    Returns:
        The digest [hex]; equal digests mean equal results.
    """
    names = [name for name in ("index", "objective", "measures", "solution") if name in rows]
    digest = hashlib.sha256()
    for values in zip(*(rows[name] for name in names), strict=True):
        for value in values:
            digest.update(value.tobytes())
    return digest.hexdigest()
