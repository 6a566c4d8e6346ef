"""The paths of all files under results/: those of a run, of a sweep, and of all of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from qdsweep.files import TEMPORARY, abandoned, link, write_text
from qdsweep.records.sums import damaged_files, sums_of

IMPORTED_PREFIX = "imported-"
"""The first part of the id of every imported run."""


@dataclass(frozen=True)
class Folder:
    """A folder whose files are attributes.

    Attributes:
        path: Where it is; nothing needs to be there.
    """

    path: Path

    @property
    def name(self) -> str:
        """The folder's own name."""
        return self.path.name


class Entry:
    """A file inside a `Folder`, or a folder without a class of its own.

    Args:
        name: Its path, relative to the folder.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, folder: Folder, kind: type[Folder] | None = None) -> Path:
        return folder.path / self.name


class RunFiles(Folder):
    """The results of a run; its folder, its `state/` and a snapshot of it have the same ones."""

    config = Entry("config.yaml")
    metrics = Entry("metrics.csv")
    archive = Entry("archive.npz")
    history = Entry("history.npz")
    summary = Entry("summary.json")


class StateDir(RunFiles):
    """The folder `state/` of a run, which Snakemake does not know and which is the truth."""

    sums = Entry("SHA256SUMS")
    """Of the results of a finished run or of a snapshot; nothing else has any."""
    log = Entry("run.log")
    status = Entry("status.json")
    lock = Entry("lock")
    last_stop = Entry("last_stop.json")
    failure = Entry("failure.json")
    failed_solution = Entry("failed_solution.npz")
    insertions = Entry("history.bin")
    """The history of a run that is not finished."""
    noise = Entry("noise.npz")
    """Some elites, evaluated once more to find out whether evaluations depend on their seed.

    They are those of an earlier end of the run where these did.
    """
    workers = Entry("workers")
    """A folder with the logs of workers."""
    connection = Entry("connection/scheduler.json")
    """Where workers find the main process; only the owner can read its folder."""

    @property
    def partial(self) -> "StateDir":
        """The last snapshot of a run that was not finished."""
        return StateDir(self.path / "partial")

    def reload(self, iteration: int) -> Path:
        """Returns the path of the reload file of an iteration."""
        return self.path / f"reload-{iteration:09d}.pkl"

    def reloads(self) -> list[Path]:
        """Returns the reload files that there are, the newest first."""
        return sorted(self.path.glob("reload-*.pkl"), reverse=True)

    @property
    def has_results(self) -> bool:
        """Whether anything was computed: it has results, or a reload file."""
        return self.summary.exists() or any(self.path.glob("reload-*.pkl"))

    def seal(self) -> None:
        """Writes the checksums of a finished run's results, which every reader compares."""
        results = (self.config, self.metrics, self.archive, self.history, self.summary)
        write_text(self.sums, sums_of(self.path, results))

    def damaged(self) -> list[Path]:
        """Returns the results that are not as they were when their checksums were written."""
        return damaged_files(self.sums, self.path)

    def unseal(self) -> None:
        """Removes them, before a file of the run changes."""
        self.sums.unlink(missing_ok=True)

    def samples(self, stem: str) -> Path:
        """Returns the path of what a re-evaluation has evaluated so far."""
        return self.path / f"{stem}.npz"

    def corrected_sums(self, stem: str) -> Path:
        """Returns the path of the checksums of a re-evaluation."""
        return self.path / f"{stem}.sha256"

    def torn(self) -> Iterator[Path]:
        """Yields the second halves of writes that a kill has cut off."""
        return self.path.glob(TEMPORARY)


class RunDir(RunFiles):
    """The folder of a run."""

    log = Entry("run.log")
    reload = Entry("reload.pkl")
    rollouts = Entry("rollouts")

    @property
    def state(self) -> StateDir:
        """Its `state/`."""
        return StateDir(self.path / "state")

    @property
    def results(self) -> RunFiles:
        """Where its results are: its own folder, or the last snapshot of an unfinished run."""
        partial = self.state.partial
        return partial if not self.summary.exists() and partial.summary.exists() else self

    @property
    def centroids(self) -> Path:
        """A folder for centroids: one for all runs of results/runs, else one of the run's own."""
        runs = self.path.parent
        return runs.parent / "centroids" if runs.name == "runs" else self.state.path

    def corrected(self, stem: str) -> Path:
        """Returns the path of the summary of a re-evaluation.

        Its arrays (.npz) and its log (.log) are next to it.

        Args:
            stem: `Reevaluate.stem`.
        """
        return self.path / f"{stem}.json"

    def publish(self) -> None:
        """Gives the results in `state/` their declared names.

        Snakemake removes the declared files of a job that fails. Each is a second name (a hard
        link) of a file in `state/`, so that they come back at once.
        """
        for source, target in self._published():
            if source.exists():
                link(source, target)

    def withdraw(self) -> None:
        """Removes the declared names of results that are about to change."""
        for _, target in self._published():
            target.unlink(missing_ok=True)

    def _published(self) -> list[tuple[Path, Path]]:
        state = self.state
        return [
            (state.config, self.config),
            (state.metrics, self.metrics),
            (state.archive, self.archive),
            (state.history, self.history),
            (state.summary, self.summary),
            (state.log, self.log),
            *((newest, self.reload) for newest in state.reloads()[:1]),
        ]


def run_of_connection(connection: Path) -> RunDir | None:
    """Returns the run that a connection file belongs to; None where it is no such file."""
    run = RunDir(connection.parent.parent.parent)
    return run if run.state.connection == connection else None


class SweepDir(Folder):
    """The folder of a sweep, results/sweeps/NAME."""

    plan = Entry("plan.json")
    study = Entry("study")
    """The sweep file of the last start, as it was composed, and the config files that it names."""
    confirm = Entry("confirm.json")
    search = Entry("search")
    """Markers and tables of decisions of a search."""
    search_rows = Entry("search.json")
    """The rows of a search, once it has found them."""
    search_table = Entry("search.csv")
    runs = Entry("runs.tsv")
    summary = Entry("summary.csv")
    curves = Entry("curves.csv")
    seed_curves = Entry("curves_by_seed.csv")
    """Only where `figures.band` needs them."""
    cache = Entry(".aggregated.npz")
    """The index of its runs' results."""
    kept = Entry(".kept")
    """Pictures that take long to make, by the digest of all that they depend on."""
    finished = Entry(".finished.npz")
    """The index of its finished runs, in a large sweep."""
    published = Entry(".published.npz")
    """The index of those whose published files are hard links to those in `state/`."""
    color_limits = Entry(".color_limits.json")
    """Of the pictures in `archives`, by scale."""
    report = Entry("report.html")
    table = Entry("table.json")
    """The table of groups, next to the folder with the others."""
    tables = Entry("tables")
    plots = Entry("plots")
    archives = Entry("plots/archives")
    evolution = Entry("plots/evolution")
    rollouts = Entry("plots/rollouts")

    def sums(self, stage: str) -> Path:
        """Returns the path of the checksums of what a stage has written."""
        return self.path / "state" / f"{stage}.sha256"

    def lock(self, stage: str) -> Path:
        """Returns the path of the lock of a stage."""
        return self.path / "state" / f"{stage}.lock"

    def abandoned(self) -> Iterator[Path]:
        """Yields what kills have left in it a day ago, under temporary names."""
        return abandoned(self.path, f"**/{TEMPORARY}")

    @property
    def results(self) -> "Results":
        """The folder results/ that it is in."""
        return Results(self.path.parent.parent)


class Results(Folder):
    """The folder results/."""

    runs = Entry("runs")
    sweeps = Entry("sweeps")
    centroids = Entry("centroids")
    sources = Entry("sources")
    images = Entry("images")
    """Those of a URL, pulled once."""
    comparisons = Entry("comparisons")
    """Folders like those of sweeps: the tables and figures of `qdsweep compare`."""
    merging = Entry(".merge.lock")
    """The lock of `qdsweep merge`."""
    outdated = Entry("outdated")
    """Folders of runs that `--config outdated=recompute` has set aside."""
    explore = Entry("explore")
    """Films of `qdsweep explore`: a folder for each run, and a file for each elite."""

    def run(self, run: str) -> RunDir:
        """Returns the folder of a run."""
        return RunDir(self.runs / run)

    def sweep(self, name: str) -> SweepDir:
        """Returns the folder of a sweep."""
        return SweepDir(self.sweeps / name)

    def comparison(self, name: str) -> SweepDir:
        """Returns the folder of the tables and figures of several sweeps."""
        return SweepDir(self.comparisons / name)

    def known_runs(self) -> Iterator[RunDir]:
        """Yields the runs that there are, sorted by id."""
        return map(RunDir, sorted(self.runs.glob("*")))

    def abandoned(self) -> Iterator[Path]:
        """Yields what kills have left in folders of all sweeps a day ago, under temporary names."""
        return chain.from_iterable(map(abandoned, (self.centroids, self.sources, self.images)))

    def known_sweeps(self) -> list[SweepDir]:
        """Returns the sweeps that were started, the last one first."""
        folders = [SweepDir(plan.parent) for plan in self.sweeps.glob("*/plan.json")]
        return sorted(folders, key=lambda sweep: -sweep.plan.stat().st_mtime)


def is_imported(run: str) -> bool:
    """Returns whether a run id is that of an imported run."""
    return run.startswith(IMPORTED_PREFIX)
