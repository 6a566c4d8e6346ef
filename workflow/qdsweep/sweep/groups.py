"""The groups of a sweep: rows that differ in nothing but the seed."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from qdsweep.config.experiment import BUDGETS
from qdsweep.sweep.drawn import SAMPLE

MEMBER = "member"
"""The column with the number of a member of a population."""
CHANGES = "changes"
"""The column with the values of its lineage, since its start."""
UNGROUPED = ("seed", SAMPLE, CHANGES)
SHOWN_WITHOUT_NAME = ("experiment", "algorithm", "domain")


def group_columns(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Returns the swept names that tell groups apart.

    They are all but the seed, the number of a draw, a lineage and a constant budget.

    Args:
        columns: The swept names.
        rows: The swept values of each row, as text.
    """
    varying = _varying(columns, rows)
    return [
        name
        for name in columns
        if name not in UNGROUPED and (name not in BUDGETS or name in varying)
    ]


def group_labels(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, str]],
    default: str,
    names: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Returns a short name of each row's group, such as `cma_me, sigma0 0.5`.

    Args:
        columns: The swept names.
        rows: The swept values of each row, as text.
        default: The name of the one group of a sweep that varies only its seed.
        names: Swept name -> what it is called in place of its last part.
    """
    named = label_columns(columns, rows)
    return [values_label(row, named, names) or default for row in rows]


def label_columns(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Returns the swept names that stand in a group's label.

    They are those whose values differ, without those that follow from the algorithm, domain and
    experiment of a row (as `num_emitters` does in `::: algorithm map_elites cma_me :::+
    num_emitters 1 15`). If nothing differs, they are all names.

    Args:
        columns: The swept names.
        rows: The swept values of each row, as text.
    """
    names, varying = group_columns(columns, rows), _varying(columns, rows)
    named = [name for name in names if name in varying]
    whole = [name for name in named if name in SHOWN_WITHOUT_NAME]
    count = len({tuple(row[name] for name in whole) for row in rows})

    def is_fixed(name: str) -> bool:
        return count == len({(*(row[each] for each in whole), row[name]) for row in rows})

    return [name for name in named if name in whole or not is_fixed(name)] or names


def _varying(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> set[str]:
    return {name for name in columns if len({row[name] for row in rows}) > 1}


def values_label(
    values: Mapping[str, str],
    names: Sequence[str],
    called: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Returns the values of some swept names in a row, such as `cma_me, sigma0 0.5`."""
    parts = [
        values[name]
        if name in SHOWN_WITHOUT_NAME
        else f"{called.get(name, name.split('.')[-1])} {values[name]}"
        for name in names
        if values[name] != ""  # a key that was not drawn
    ]
    return ", ".join(parts)
