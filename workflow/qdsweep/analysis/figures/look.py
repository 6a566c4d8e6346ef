"""The look that the sweep file asks for, `figures:`, applied to all figures in one place."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.analysis.figures.style import style
from qdsweep.analysis.files import read_json
from qdsweep.analysis.plan import Plan, read_plan
from qdsweep.analysis.selection import Tables, arrange, read_tables
from qdsweep.config.sweep import Figures
from qdsweep.sweep.figures import Name, figure_names

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Look:
    """What the sweep file says of its figures.

    Attributes:
        names: Group as in the tables -> group as in figures, in the order that figures have.
        column_width: Width of a figure in print [mm]; None: as it comes.
        labels: Group, or swept value -> what figures call it.
    """

    names: dict[str, Name]
    column_width: float | None
    labels: dict[str, str]

    def style(self, tables: Tables) -> AbstractContextManager[None]:
        """Draws figures of `tables`, which are dressed, with this look."""
        colors = {
            tables.position[name.label]: name.color
            for name in self.names.values()
            if name.color is not None and name.label in tables.position
        }
        return style(self.column_width, colors)

    def called(self, text: str) -> str:
        """Returns what figures call an algorithm of several groups, or a part of their names."""
        if text in self.labels:
            return self.labels[text]
        return ", ".join(self.labels.get(part, part) for part in text.split(", "))


def read_dressed(sweep_dir: Path) -> tuple[Plan, Tables, Look]:
    """Reads a sweep as its figures show it: labels for groups, in the order that was asked for.

    Args:
        sweep_dir: `results/sweeps/NAME`.

    Raises:
        BadInput: A file is missing, or `figures` names what the sweep does not have.
    """
    tables, plan = read_tables(sweep_dir), read_plan(sweep_dir)
    look = read_look(sweep_dir, plan)
    return _dress_plan(plan, look), _dress_tables(tables, look.names), look


def read_look(sweep_dir: Path, plan: Plan) -> Look:
    """Reads the key `figures` of plan.json.

    Args:
        sweep_dir: `results/sweeps/NAME`.
        plan: Its plan, as it was read.

    Raises:
        BadInput: It names what the sweep does not have, or a colour that is none.
    """
    raw = read_json(sweep_dir / "plan.json", "The workflow writes it: run `snakemake` first.")
    figures = Figures.model_validate(raw.get("figures") or {})
    rows = [row.values for row in plan.rows]
    names = figure_names(figures, plan.columns, rows, plan.experiment)
    return Look(names, figures.column_width, figures.labels)


def _dress_plan(plan: Plan, look: Look) -> Plan:
    place = {name.label: position for position, name in enumerate(look.names.values())}
    rows = [
        replace(
            row,
            group=look.names[row.group].label,
            values={name: look.labels.get(text, text) for name, text in row.values.items()},
        )
        for row in plan.rows
    ]
    return replace(plan, rows=sorted(rows, key=lambda row: place[row.group]))


def _dress_tables(tables: Tables, names: dict[str, Name]) -> Tables:
    place = {group: position for position, group in enumerate(names)}

    def dressed(table: "pd.DataFrame") -> "pd.DataFrame":
        table = table[table["group"].isin(place)]
        table = table.sort_values("group", key=lambda groups: groups.map(place), kind="stable")
        return table.assign(group=[names[group].label for group in table["group"]])

    arranged = arrange(*map(dressed, (tables.summary, tables.table, tables.curves)))
    shown = [name for name in names.values() if name.label in arranged.position]
    series = {name.label: name.series for name in shown}
    order = list(dict.fromkeys(series.values()))
    return replace(
        arranged,
        series=series,
        facets={name.label: name.facet for name in shown},
        position={label: order.index(part) for label, part in series.items()},
    )
