"""The rows of a sweep and the groups that they form, read from plan.json."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qdsweep.analysis.files import read_json
from qdsweep.analysis.text import value_text

BUDGETS = ("iterations", "evaluations")
SHOWN_WITHOUT_NAME = ("experiment", "algorithm", "domain")


@dataclass(frozen=True)
class Row:
    """One row of a sweep: its swept values as text, its run, its budget and its group."""

    values: dict[str, str]
    run: str
    iterations: int | None
    evaluations: int | None
    group: str


@dataclass(frozen=True)
class Plan:
    """A sweep as the workflow planned it.

    Attributes:
        name: The sweep's name.
        experiment: The experiment that is swept.
        sweep: The text of the sweep grammar.
        columns: Names of the swept values.
        group_columns: Those that tell groups apart: all but `seed` and a constant budget.
        rows: In the order of the sweep.
    """

    name: str
    experiment: str
    sweep: str
    columns: list[str]
    group_columns: list[str]
    rows: list[Row]

    @property
    def groups(self) -> dict[str, list[Row]]:
        """The rows of each group, in the order of the sweep."""
        groups: dict[str, list[Row]] = {}
        for row in self.rows:
            groups.setdefault(row.group, []).append(row)
        return groups


def read_plan(sweep_dir: Path) -> Plan:
    """Reads plan.json of a sweep's folder.

    Raises:
        BadInput: There is none.
    """
    raw = read_json(sweep_dir / "plan.json", "The workflow writes it: run `snakemake` first.")
    columns = list(raw["columns"])
    values = [{name: value_text(row["values"][name]) for name in columns} for row in raw["rows"]]
    varying = {name for name in columns if len({row[name] for row in values}) > 1}
    group_columns = [
        name for name in columns if name != "seed" and (name not in BUDGETS or name in varying)
    ]
    # A label names only what differs; where nothing does, everything that was swept.
    named = [name for name in group_columns if name in varying] or group_columns
    rows = [
        Row(
            values=texts,
            run=row["id"],
            iterations=row.get("iterations"),
            evaluations=row.get("evaluations"),
            group=_label(texts, named) or raw["experiment"],
        )
        for row, texts in zip(raw["rows"], values, strict=True)
    ]
    return Plan(raw["name"], raw["experiment"], raw["sweep"], columns, group_columns, rows)


def _label(values: dict[str, Any], names: list[str]) -> str:
    """Returns a short name of a group, such as `cma_me, sigma0 0.5`."""
    parts = [
        values[name] if name in SHOWN_WITHOUT_NAME else f"{name.split('.')[-1]} {values[name]}"
        for name in names
    ]
    return ", ".join(parts)
