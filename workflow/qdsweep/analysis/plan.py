"""The rows of a sweep and the groups that they form, read from plan.json."""

import json
from dataclasses import dataclass
from pathlib import Path

from qdsweep.analysis.files import read_json
from qdsweep.config.sweep import Reevaluate
from qdsweep.config.values import value_text
from qdsweep.metrics import BY_NAME, RANK, Metric
from qdsweep.sweep.groups import BUDGETS as BUDGETS
from qdsweep.sweep.groups import group_columns, group_labels


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
        rank: The metric that groups are ranked by.
    """

    name: str
    experiment: str
    sweep: str
    columns: list[str]
    group_columns: list[str]
    rows: list[Row]
    rank: Metric = RANK

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
    labels = group_labels(columns, values, raw["experiment"])
    rows = [
        Row(
            values=texts,
            run=row["id"],
            iterations=row.get("iterations"),
            evaluations=row.get("evaluations"),
            group=label,
        )
        for row, texts, label in zip(raw["rows"], values, labels, strict=True)
    ]
    names = group_columns(columns, values)
    rank = BY_NAME[raw.get("rank", RANK.name)]
    return Plan(raw["name"], raw["experiment"], raw["sweep"], columns, names, rows, rank)


def read_reevaluate(sweep_dir: Path) -> Reevaluate | None:
    """Reads `reevaluate:` of the sweep from its plan.json."""
    raw = read_json(sweep_dir / "plan.json", "Run `snakemake` first.").get("reevaluate")
    return None if raw is None else Reevaluate.model_validate_json(json.dumps(raw))
