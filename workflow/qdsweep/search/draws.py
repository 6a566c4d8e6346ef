"""Draws the values of a sweep: random, Sobol, Halton, Latin hypercube.

A sample depends only on the seed and its number, so more samples do not change the first ones. The
samples of a Latin hypercube also depend on the total number of samples.
"""

import hashlib
import warnings
from collections.abc import Sequence
from typing import TypeVar

from qdsweep.config.search import Search
from qdsweep.search.levels import samples_of
from qdsweep.sweep.drawn import DrawnSource
from qdsweep.sweep.grammar import Draw

_Item = TypeVar("_Item")
# These multiples of the number of samples are drawn until enough samples differ.
_FURTHER = (1, 2, 4, 16, 64)


def drawn_by(search: Search) -> Draw:
    """Returns the function that draws the values of a sweep's `:::~` sources."""

    def draw(sources: Sequence[DrawnSource]) -> list[tuple[str, ...]]:
        count = samples_of(search)
        if not search.needs_different:
            return _rows(search, sources, count)
        for further in _FURTHER:  # more samples do not change the first ones
            rows = _rows(search, sources, count * further)
            different: dict[tuple[str, ...], tuple[str, ...]] = {}
            for row in rows:
                different.setdefault(_active(sources, row), row)
            if len(different) >= count:
                return list(different.values())[:count]
        return rows[:count]  # the caller refuses too few rows

    return draw


def _rows(search: Search, sources: Sequence[DrawnSource], count: int) -> list[tuple[str, ...]]:
    points = _points(search, [source.name for source in sources], count)
    return [
        tuple(source.value(u) for source, u in zip(sources, point, strict=True)) for point in points
    ]


def _active(sources: Sequence[DrawnSource], values: Sequence[str]) -> tuple[str, ...]:
    """Returns the values of a row, which are empty where a condition does not hold."""
    row: dict[str, str] = {}
    for source, value in zip(sources, values, strict=True):
        row[source.name] = value if source.holds(row, unknown=True) else ""
    return tuple(row.values())


def random_row(sources: Sequence[DrawnSource], seed: int, number: int) -> tuple[str, ...]:
    """Returns the values of one random sample, which are empty where a condition does not hold."""
    row: dict[str, str] = {}
    for source in sources:
        row[source.name] = ""
        if source.holds(row):
            row[source.name] = source.value(uniform(seed, source.name, number))
    return tuple(row.values())


def uniform(seed: int, name: str, number: int) -> float:
    """Returns a number in [0, 1). Each name has its own stream."""
    digest = hashlib.sha256(f"{seed} {number} {name}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def shuffled(items: Sequence[_Item], seed: int) -> list[_Item]:
    """Returns items in an order that depends only on the seed and the number of items."""
    order = sorted(range(len(items)), key=lambda number: uniform(seed, "order", number))
    return [items[number] for number in order]


def _points(search: Search, names: Sequence[str], count: int) -> list[list[float]]:
    """Returns a point of the unit cube for each sample, one coordinate per name."""
    if search.sampling in ("random", "tpe"):  # the first batch of tpe is random
        numbers = range(count)
        return [[uniform(search.seed, name, number) for name in names] for number in numbers]
    from scipy.stats import qmc

    sampler = {"sobol": qmc.Sobol, "halton": qmc.Halton, "lhs": qmc.LatinHypercube}
    with warnings.catch_warnings():  # the number of samples need not be a power of 2
        warnings.simplefilter("ignore")
        points = sampler[search.sampling](len(names), rng=search.seed).random(count)
    coordinates: list[list[float]] = points.tolist()
    return coordinates
