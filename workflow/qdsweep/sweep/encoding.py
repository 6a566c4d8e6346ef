"""Which swept name the lines of a figure show by colour, dashes, marks and panels."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from qdsweep.config.sweep import Figures
from qdsweep.sweep.groups import group_columns, label_columns

# What a reader tells apart.
MOST_COLORS = 7
MOST_DASHES = 4
MOST_PANELS = 6
_TASKS = ("experiment", "domain")


@dataclass(frozen=True)
class Encoding:
    """The swept name behind each trait of a line; None: no name.

    Attributes:
        color: Where `dash` is the same name, neighbours differ in both. Where no name has a trait,
            each line has a look of its own.
        dash: The dashes of the line.
        marker: The marks on the line.
        facets: Names whose values have a panel of their own.
    """

    color: str | None = None
    dash: str | None = None
    marker: str | None = None
    facets: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """The names that tell the lines of a panel apart."""
        names = (self.color, self.dash, self.marker)
        return list(dict.fromkeys(name for name in names if name))


def encoding(
    figures: Figures, columns: Sequence[str], rows: Sequence[Mapping[str, str]]
) -> Encoding:
    """Returns what the sweep file asks for, and gives the other names what is left.

    The algorithm has the colour, the next name in the sweep's order the dashes; tasks and all
    further names have panels. A name of more values than there are dashes has the colour. Names
    that would need too many panels, as those of a drawn sweep do, leave every group to itself: what
    is not asked for has no trait.

    Args:
        figures: The key `figures` of the sweep file, its names known to the sweep.
        columns: The swept names.
        rows: The swept values of each row, as text.
    """
    asked = figures.encode
    facet = asked.facets or figures.facets
    facets = [facet] if facet else []
    given = {asked.color, asked.dash, asked.marker, facet}
    free = [name for name in label_columns(columns, rows) if name not in given]
    free.sort(key=lambda name: name != "algorithm")  # stable: the others as they were swept
    own = [name for name in free if name not in _TASKS]
    if not facets and (own or given - {None}):
        facets, free = [name for name in free if name in _TASKS], own
    color, dash = asked.color, asked.dash

    def many(name: str) -> bool:
        return len(values_of(rows, name)) > MOST_DASHES

    if color is None and free:
        color = next(filter(many, free), free[0])
        free.remove(color)
    few = [name for name in free if not many(name)]
    if dash is None and few:
        dash = few[0]
        free.remove(dash)
    if len({tuple(row[name] for name in free) for row in rows}) > MOST_PANELS:
        return Encoding(asked.color, asked.dash, asked.marker, tuple(facets))
    if color is not None and dash is None and asked.marker is None:
        dash = None if is_scale(values_of(rows, color)) else color
    return Encoding(color, dash, asked.marker, (*facets, *free))


def slots_of(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, str]],
    before: Mapping[str, list[str]] = MappingProxyType({}),
) -> dict[str, list[str]]:
    """Returns the values of each swept name, in the order that gives them colours and dashes.

    A value keeps its place when others are put before it or taken out. What was taken out keeps
    its own, too, while there are colours enough.

    Args:
        columns: The swept names.
        rows: The swept values of each row, as text.
        before: What this returned for the sweep as it was.
    """
    found = {}
    for name in group_columns(columns, rows):
        values, kept = values_of(rows, name), before.get(name, [])
        both = list(dict.fromkeys([*kept, *values]))
        crowded = len(both) > max(MOST_COLORS, len(values))
        found[name] = values if crowded or not set(kept) & set(values) else both
    return found


def values_of(rows: Sequence[Mapping[str, str]], name: str) -> list[str]:
    """Returns the distinct values of a swept name, in the sweep's order."""
    return list(dict.fromkeys(row[name] for row in rows))


def is_scale(values: Sequence[str]) -> bool:
    """Returns whether values are numbers, and so many that colours must show their order."""
    try:
        finite = all(math.isfinite(float(value)) for value in values)
    except ValueError:
        return False
    return finite and len(values) > MOST_DASHES
