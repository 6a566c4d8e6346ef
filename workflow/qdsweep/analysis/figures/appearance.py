"""The look that the sweep file asks for, `figures:`, applied to all figures in one place."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from qdsweep.analysis.figures.style import style
from qdsweep.analysis.labels import Called, group_names
from qdsweep.analysis.selection import Tables, arrange, read_tables
from qdsweep.records.plan import Plan, read_plan
from qdsweep.records.sweep_dir import SweepDir


@dataclass(frozen=True)
class Look(Called):
    """What the sweep file says of its figures.

    Attributes:
        column_width: Width of a figure in print [mm]; None: as it comes.
    """

    column_width: float | None

    def style(self, tables: Tables) -> AbstractContextManager[None]:
        """Draws figures of `tables`, which are dressed, with this look."""
        colors = {
            tables.position[name.label]: name.color
            for name in self.names.values()
            if name.color is not None and name.label in tables.position
        }
        return style(self.column_width, colors)


def read_dressed(sweep_dir: Path) -> tuple[Plan, Tables, Look]:
    """Reads a sweep as its report shows it: labels for groups, in the order that was asked for.

    Raises:
        BadInput: A file is missing, or `figures` names what the sweep does not have.
    """
    tables, plan = read_tables(sweep_dir), read_plan(SweepDir(sweep_dir))
    names = group_names(plan)
    look = Look(names.names, names.labels, plan.figures.column_width)
    return look.dressed_plan(plan), _dress_tables(tables, look), look


def _dress_tables(tables: Tables, look: Look) -> Tables:
    arranged = arrange(*map(look.dressed, (tables.summary, tables.table, tables.curves)))
    shown = [name for name in look.names.values() if name.label in arranged.position]
    series = {name.label: name.series for name in shown}
    order = list(dict.fromkeys(series.values()))
    return replace(
        arranged,
        rank=tables.rank,
        metrics=tables.metrics,
        series=series,
        facets={name.label: name.facet for name in shown},
        position={label: order.index(part) for label, part in series.items()},
    )
