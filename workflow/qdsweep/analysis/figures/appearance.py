"""The look that the sweep file asks for, `figures:`, applied to all figures in one place."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from qdsweep.analysis.figures.marks import sweep_marks
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

    def style(self) -> AbstractContextManager[None]:
        """Draws figures with this look."""
        return style(self.column_width)


def read_dressed(sweep_dir: Path) -> tuple[Plan, Tables, Look]:
    """Reads a sweep as its report shows it: labels for groups, in the order that was asked for.

    Raises:
        BadInput: A file is missing, or `figures` names what the sweep does not have.
    """
    tables, plan = read_tables(sweep_dir), read_plan(SweepDir(sweep_dir))
    names = group_names(plan)
    look = Look(**vars(names), column_width=plan.figures.column_width)
    return look.dressed_plan(plan), _dress_tables(tables, plan, look), look


def _dress_tables(tables: Tables, plan: Plan, look: Look) -> Tables:
    arranged = arrange(*map(look.dressed, (tables.summary, tables.table, tables.curves)))
    shown = [name for name in look.names.values() if name.label in arranged.series]
    runs = tables.seed_curves
    return replace(
        tables,
        summary=arranged.summary,
        table=arranged.table,
        curves=arranged.curves,
        score_scales=arranged.score_scales,
        seed_curves=None if runs is None else look.dressed(runs),
        series={name.label: name.series for name in shown},
        facets={name.label: name.facet for name in shown},
        marks=sweep_marks(plan, look.names),
    )
