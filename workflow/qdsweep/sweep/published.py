"""The group of a sweep that a published value belongs to."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from qdsweep.config.files import nearest
from qdsweep.config.values import value_text
from qdsweep.errors import BadInput
from qdsweep.sweep.groups import group_columns, group_labels


class Groups:
    """The groups of a sweep, to choose one of them by swept values.

    Args:
        columns: The swept names.
        rows: The swept values of each row.
        default: The name of the one group of a sweep that varies only its seed.
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
        """Returns the group that an entry of `published` chooses.

        Args:
            number: The entry's number, from 1, for messages.
            where: Swept names and values.

        Raises:
            BadInput: A name or a value is unknown, or the entry fits no group or several.
        """
        entry = f"published, entry {number}: where"
        for name, value in where.items():
            self._check(entry, name, value)
        chosen = [
            label
            for label, row in zip(self.labels, self.rows, strict=True)
            if all(_same(row[name], value) for name, value in where.items())
        ]
        groups = list(dict.fromkeys(chosen))
        shown = json.dumps(dict(where))
        if not groups:
            raise BadInput(f"{entry} = {shown}: no run of the sweep has all of these values")
        if len(groups) > 1:
            missing = [name for name in self.names if name not in where]
            raise BadInput(
                f"{entry} = {shown} fits {len(groups)} groups: {_few(groups)}; say also which "
                f"{' and '.join(missing)}"
            )
        return groups[0]

    def _check(self, entry: str, name: str, value: Any) -> None:
        if name not in self.names:
            known = ", ".join(self.names) or "nothing but the seed"
            raise BadInput(
                f"{entry}.{name}: {nearest(name, self.names)}names that tell the groups of this "
                f"sweep apart: {known}"
            )
        values = [row[name] for row in self.rows]
        if not any(_same(known, value) for known in values):
            texts = list(dict.fromkeys(map(value_text, values)))
            raise BadInput(
                f"{entry}.{name} = {json.dumps(value)}: {nearest(value_text(value), texts)}"
                f"the sweep has {_few(texts)}"
            )


def _same(one: Any, other: Any) -> bool:
    """Returns whether two values are the same: 1 is 1.0, but true is not 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _few(texts: Sequence[str]) -> str:
    shown = "; ".join(texts[:8])
    return f"{shown}; ... ({len(texts)} in all)" if len(texts) > 8 else shown
