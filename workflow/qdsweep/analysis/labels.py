"""What the report calls the groups of a sweep, and their order: `figures` of the sweep file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from qdsweep.config.sweep import Figures
from qdsweep.errors import BadInput
from qdsweep.records.plan import Plan, Row
from qdsweep.sweep.encoding import encoding
from qdsweep.sweep.groups import values_label
from qdsweep.sweep.labels import Name, figure_names

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Called:
    """The names of a sweep's groups for a reader. CSV tables keep the swept values.

    Attributes:
        names: Group as in CSV tables -> group as a reader sees it, in the report's order.
        labels: Group, or swept value -> what the report calls it.
        swept: Last part of a swept name -> what the report calls it.
    """

    names: dict[str, Name]
    labels: dict[str, str]
    swept: dict[str, str]

    def label(self, group: str) -> str:
        """Returns what the report calls a group."""
        return self.names[group].label

    def value(self, text: str) -> str:
        """Returns what the report calls a swept value."""
        return self.labels.get(text, text)

    def called(self, text: str) -> str:
        """Returns what the report calls an algorithm of several groups, part by part."""
        if text in self.labels:
            return self.labels[text]
        return ", ".join(map(self._part, text.split(", ")))

    def _part(self, part: str) -> str:
        name, blank, value = part.partition(" ")
        if blank and part not in self.labels:
            return f"{self.swept.get(name, name)} {self.labels.get(value, value)}"
        return self.labels.get(part, part)

    def scale(self, scale: str) -> str:
        """Returns a scale with what the report calls its domain."""
        domain, mark, rest = scale.partition("; ")
        return f"{self.labels.get(domain, domain)}{mark}{rest}"

    def dressed(self, table: "pd.DataFrame") -> "pd.DataFrame":
        """Returns the rows of a table in the report's order, with its names of groups."""
        place = {group: position for position, group in enumerate(self.names)}
        table = table[table["group"].isin(place)]
        table = table.sort_values("group", key=lambda groups: groups.map(place), kind="stable")
        named = {"group": [self.label(group) for group in table["group"]]}
        if "scale" in table:
            named["scale"] = table["scale"].map(self.scale, na_action="ignore")
        return table.assign(**named)

    def dressed_plan(self, plan: Plan) -> Plan:
        """Returns a plan with the report's names of groups and values, in its order."""
        place = {name.label: position for position, name in enumerate(self.names.values())}
        rows = [
            replace(
                row,
                group=self.label(row.group),
                values={
                    name: self.labels.get(text, text) if name in plan.group_columns else text
                    for name, text in row.values.items()
                },
            )
            for row in plan.rows
        ]
        return replace(plan, rows=sorted(rows, key=lambda row: place[row.group]))


def group_names(plan: Plan) -> Called:
    """Returns what the report calls the groups of a sweep.

    Raises:
        BadInput: `figures` names what the sweep does not have, or a colour that is none.
    """
    figures = plan.figures
    rows = [row.values for row in plan.computed]
    try:
        names = figure_names(figures, plan.columns, rows, plan.experiment)
    except BadInput as error:
        raise BadInput(f"the plan of the sweep {plan.name}: {error}") from None
    panels = encoding(figures, plan.columns, rows).facets
    others = (row for row in plan.rows if row.imported)
    names |= {row.group: _imported_name(row, panels, figures) for row in others}
    swept = {name.split(".")[-1]: called for name, called in figures.names.items()}
    return Called(names, figures.labels, swept)


def _imported_name(row: Row, panels: Sequence[str], figures: Figures) -> Name:
    """Returns the name of imported runs: in a panel of their own where a value is not known."""
    values = {name: figures.labels.get(row.values[name], row.values[name]) for name in panels}
    facet = values_label(values, panels, figures.names) if all(values.values()) else ""
    return Name(row.group, row.group, facet, None)
