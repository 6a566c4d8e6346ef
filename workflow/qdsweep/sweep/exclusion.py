"""Rows that a sweep leaves out: `exclude: ["NAME=VALUE,..."]`."""

from collections.abc import Iterator, Mapping, Sequence

from qdsweep.config.files import nearest
from qdsweep.config.values import typed
from qdsweep.errors import BadInput


def left(
    rows: Sequence[Mapping[str, str]], columns: Sequence[str], excluded: Sequence[str]
) -> Iterator[int]:
    """Finds the rows that none of the exclusions names.

    Args:
        rows: The rows, name -> value as written.
        columns: The names.
        excluded: Lists of `NAME=VALUE`, all of which a row must have to be left out.

    Yields:
        The places of the rows that stay.

    Raises:
        BadInput: One is of another shape, names no column, or leaves out no row; or no row stays.
    """
    named: set[int] = set()
    for number, entry in enumerate(excluded, start=1):
        pairs = _pairs(entry, number, columns)
        places = {
            place
            for place, row in enumerate(rows)
            if all(typed(row[name]) == value for name, value in pairs.items())
        }
        if not places:
            raise BadInput(
                f"exclude, entry {number}: no row of the sweep has {entry}: mend it, or remove it"
            )
        named |= places
    if len(named) == len(rows):
        raise BadInput("exclude: no row of the sweep is left")
    yield from (place for place in range(len(rows)) if place not in named)


def _pairs(entry: str, number: int, columns: Sequence[str]) -> dict[str, object]:
    pairs: dict[str, object] = {}
    for part in entry.split(","):
        name, sign, value = (word.strip() for word in part.partition("="))
        near = "" if name in columns else nearest(name, columns)
        if not sign or name not in columns:
            raise BadInput(
                f"exclude, entry {number}: {part!r}: {near}write NAME=VALUE,... with "
                f"swept names ({', '.join(columns)})"
            )
        pairs[name] = typed(value)
    return pairs
