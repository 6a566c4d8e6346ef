"""A sweep as its report shows it, read once: figures and sections of the page are made of it."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.analysis.legend import Called, group_names, sweep_marks
from qdsweep.analysis.search_progress import Searched, read_search
from qdsweep.analysis.selection import SweepTables, arrange, read_tables
from qdsweep.files import read_csv
from qdsweep.records.paths import RunDir, SweepDir
from qdsweep.records.plan import ConfirmingRow, read_confirm
from qdsweep.runs.load import Run

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class SweepData(SweepTables):
    """Plan, tables, selection and marks of a sweep, with the names that readers see.

    Attributes:
        sweep: The folder of the sweep.
        runs_dir: `results/runs`.
        called: What the report calls groups and values, in its order.
    """

    sweep: SweepDir
    runs_dir: Path
    called: Called

    @classmethod
    def read(cls, sweep_dir: Path, runs_dir: Path) -> "SweepData":
        """Reads a sweep.

        Raises:
            BadInput: A file is missing, or `figures` names what the sweep does not have.
        """
        tables = read_tables(sweep_dir)
        plan, called, seeds = tables.plan, group_names(tables.plan), tables.seed_curves
        dressed = map(called.dressed, (tables.summary, tables.table, tables.curves))
        arranged = arrange(called.dressed_plan(plan), *dressed)
        shown = [name for name in called.names.values() if name.label in arranged.series]
        own = {
            "marks": sweep_marks(plan, called.names),
            "series": {name.label: name.series for name in shown},
            "facets": {name.label: name.facet for name in shown},
            "seed_curves": None if seeds is None else called.dressed(seeds),
        }
        fields = vars(arranged) | own
        return cls(**fields, sweep=SweepDir(sweep_dir), runs_dir=runs_dir, called=called)

    @cached_property
    def search(self) -> Searched | None:
        """How the search of the sweep went; None where it has none."""
        return read_search(self.sweep, self.plan)

    @cached_property
    def confirming(self) -> list[ConfirmingRow]:
        """The runs that confirm the best groups."""
        return read_confirm(self.sweep)

    @cached_property
    def median_runs(self) -> dict[str, Run]:
        """The run with the median score of each group of the sweep's own."""
        groups = (group for group in self.series if group not in self.plan.imported_groups)
        return {
            group: Run(self.run(str(self.median_run(group)["id"])).results.path) for group in groups
        }

    def run(self, run: str) -> RunDir:
        """Returns the folder of a run."""
        return RunDir(self.runs_dir / run)

    def stage_table(self, name: str) -> "pd.DataFrame | None":
        """Returns `tables/NAME.csv` with the groups of CSV tables; None where there is none."""
        path = self.sweep.tables / f"{name}.csv"
        # Names stay text, even one that looks like a number or like "null".
        text = dict.fromkeys(("algorithm", "group", "name", "of", "scale"), str)
        return read_csv(path, "Run `snakemake` first.", dtype=text) if path.exists() else None
