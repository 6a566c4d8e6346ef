"""Where every file of a sweep is, and the folder results/ as a whole."""

from collections.abc import Iterator
from pathlib import Path

from qdsweep.records.folder import Folder, Place
from qdsweep.records.run_dir import RunDir


class SweepDir(Folder):
    """The folder of a sweep, results/sweeps/NAME."""

    plan = Place("plan.json")
    confirm = Place("confirm.json")
    search = Place("search")
    """Markers and tables of decisions of a search."""
    search_rows = Place("search.json")
    """The rows of a search, once it has found them."""
    search_table = Place("search.csv")
    runs = Place("runs.tsv")
    summary = Place("summary.csv")
    curves = Place("curves.csv")
    seed_curves = Place("curves_by_seed.csv")
    """Only where `figures.band` needs them."""
    cache = Place(".aggregated.npz")
    kept = Place(".kept")
    """Pictures that take long to make, by what they are made of."""
    finished = Place(".finished.npz")
    """What is known of finished runs, in a large sweep."""
    color_limits = Place(".color_limits.json")
    """Of the pictures in `archives`, by scale."""
    report = Place("report.html")
    table = Place("table.json")
    """The table of groups; it lies beside the folder with the others."""
    tables = Place("tables")
    plots = Place("plots")
    archives = Place("plots/archives")
    evolution = Place("plots/evolution")
    rollouts = Place("plots/rollouts")

    def sums(self, stage: str) -> Path:
        """Returns the place of the checksums of what a stage has written."""
        return self.path / "state" / f"{stage}.sha256"

    @property
    def results(self) -> "Results":
        """The folder results/ that it is in."""
        return Results(self.path.parent.parent)


class Results(Folder):
    """The folder results/."""

    runs = Place("runs")
    sweeps = Place("sweeps")
    centroids = Place("centroids")
    sources = Place("sources")

    def run(self, run: str) -> RunDir:
        """Returns the folder of a run."""
        return RunDir(self.runs / run)

    def sweep(self, name: str) -> SweepDir:
        """Returns the folder of a sweep."""
        return SweepDir(self.sweeps / name)

    def known_runs(self) -> Iterator[RunDir]:
        """Yields the runs that there are, sorted by id."""
        return map(RunDir, sorted(self.runs.glob("*")))

    def known_sweeps(self) -> list[SweepDir]:
        """Returns the sweeps that were started, the last one first."""
        folders = [SweepDir(plan.parent) for plan in self.sweeps.glob("*/plan.json")]
        return sorted(folders, key=lambda sweep: -sweep.plan.stat().st_mtime)
