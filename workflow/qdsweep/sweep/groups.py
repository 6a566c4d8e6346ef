"""The groups of a sweep, whose rows differ only in the seed."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from qdsweep.config.experiment import BUDGET_NAMES
from qdsweep.config.model import same_value, value_text
from qdsweep.errors import BadInput
from qdsweep.sweep.drawn import SAMPLE
from qdsweep.text import nearest

MEMBER = "member"
"""The column with the number of a member of a population."""
CHANGES = "changes"
"""The column with the values of its lineage since its start."""
IMPORTED_MARK = " (imported)"
"""The end of the names of an imported group."""
UNGROUPED = ("seed", SAMPLE, CHANGES)
OF_SWEEPS = "sweep"
"""The column with the names of sweeps, where several are compared."""
SHOWN_WITHOUT_NAME = ("experiment", "algorithm", "domain")


def group_columns(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Returns the swept parameters that distinguish groups.

    They are all except the seed, the number of a draw, a lineage and a constant budget.

    Args:
        columns: The swept parameters.
        rows: The swept values of each row, as text.
    """
    varying = _varying(columns, rows)
    # Without a population, it is an argument of the user's.
    ungrouped = {*UNGROUPED} - ({CHANGES} if MEMBER not in columns else set())
    return [
        name
        for name in columns
        if name not in ungrouped and (name not in BUDGET_NAMES or name in varying)
    ]


def group_labels(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, str]],
    default: str,
    names: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Returns a short name for each row's group, such as `cma_me, sigma0 0.5`.

    Args:
        columns: The swept parameters.
        rows: The swept values of each row, as text.
        default: The name of the only group, if a sweep varies only its seed.
        names: Swept parameter -> its displayed name, which replaces that of `brief_names`.
    """
    named, called = label_columns(columns, rows), {**brief_names(columns), **names}
    return [values_label(row, named, called) or default for row in rows]


def brief_names(columns: Sequence[str]) -> dict[str, str]:
    """Returns swept parameter -> its name in labels: its last part, or more if another has that.

    The `sigma` of two groups of emitters are `emitters.0.sigma` and `emitters.1.sigma`.
    """
    brief = {}
    for name in columns:
        parts = name.split(".")
        ends = [".".join(parts[-n:]) for n in range(1, len(parts)) if not parts[-n].isdecimal()]
        others = [other for other in columns if other != name]
        clear = (
            end for end in ends if not any(f".{other}".endswith(f".{end}") for other in others)
        )
        brief[name] = next(clear, name)
    return brief


def label_columns(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Returns the swept parameters that are part of a group's label.

    They are those whose values differ. Parameters that follow from the algorithm, domain and
    experiment of a row are omitted, such as `num_emitters` in `::: algorithm map_elites cma_me :::+
    num_emitters 1 15`. If nothing differs, they are all parameters.

    Args:
        columns: The swept parameters.
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
    """Returns the values of some swept parameters in a row, such as `cma_me, sigma0 0.5`."""
    parts = [
        values[name]
        if name in SHOWN_WITHOUT_NAME
        else f"{called.get(name, name.split('.')[-1])} {values[name]}"
        for name in names
        if values[name] != ""  # a key that was not drawn
    ]
    return ", ".join(parts)


class Groups:
    """The groups of a sweep, which are chosen by swept values.

    Args:
        columns: The swept parameters.
        rows: The swept values of each row.
        default: The name of the only group, if a sweep varies only its seed.
    """

    def __init__(
        self, columns: Sequence[str], rows: Sequence[Mapping[str, Any]], default: str = "all runs"
    ) -> None:
        texts = [{name: value_text(row[name]) for name in columns} for row in rows]
        self.columns = columns
        self.names = group_columns(columns, texts)
        self.rows = rows
        self.labels = group_labels(columns, texts, default)

    def choose(self, number: int, where: Mapping[str, Any]) -> str:
        """Returns the group of an entry of `published`.

        Args:
            number: The entry's number, from 1, for messages.
            where: Swept parameter -> value.

        Raises:
            BadInput: A name or a value is unknown, or the entry matches no group or several.
        """
        entry = f"published, entry {number}: where"
        for name, value in where.items():
            self._check(entry, name, value)
        chosen = [
            label
            for label, row in zip(self.labels, self.rows, strict=True)
            if all(same_value(row[name], value) for name, value in where.items())
        ]
        groups = list(dict.fromkeys(chosen))
        shown = json.dumps(dict(where))
        if not groups:
            raise BadInput(f"{entry} = {shown}: no run of the sweep has all of these values")
        if len(groups) > 1:
            missing = [name for name in self.names if name not in where]
            raise BadInput(
                f"{entry} = {shown} matches {len(groups)} groups: {_few(groups)}; also give "
                f"{' and '.join(missing)}"
            )
        return groups[0]

    def _check(self, entry: str, name: str, value: Any) -> None:
        if name not in self.names:
            known = ", ".join(self.names) or "nothing but the seed"
            raise BadInput(
                f"{entry}.{name}: {nearest(name, self.names)}names that distinguish the groups of "
                f"this sweep: {known}"
            )
        values = [row[name] for row in self.rows]
        if not any(same_value(known, value) for known in values):
            texts = list(dict.fromkeys(map(value_text, values)))
            raise BadInput(
                f"{entry}.{name} = {json.dumps(value)}: {nearest(value_text(value), texts)}"
                f"the sweep has {_few(texts)}"
            )


def _few(texts: Sequence[str]) -> str:
    shown = "; ".join(texts[:8])
    return f"{shown}; ... ({len(texts)} in total)" if len(texts) > 8 else shown
