"""Where every file of a run is: results/runs/ID and what lies in it."""

from collections.abc import Iterator
from pathlib import Path

from qdsweep.files import link, write_text
from qdsweep.records.folder import Folder, Place
from qdsweep.records.sums import sums_of


class RunFiles(Folder):
    """The results of a run; its folder, its `state/` and a snapshot of it have the same ones."""

    config = Place("config.yaml")
    metrics = Place("metrics.csv")
    archive = Place("archive.npz")
    history = Place("history.npz")
    summary = Place("summary.json")


class StateDir(RunFiles):
    """The folder `state/` of a run, which Snakemake does not know and which is the truth."""

    sums = Place("SHA256SUMS")
    """Of the results of a finished run; nothing else has any."""
    log = Place("run.log")
    status = Place("status.json")
    lock = Place("lock")
    last_stop = Place("last_stop.json")
    failure = Place("failure.json")
    failed_solution = Place("failed_solution.npz")
    insertions = Place("history.bin")
    """The history of a run that is not finished."""
    workers = Place("workers")
    """A folder with the logs of workers."""
    connection = Place("connection/scheduler.json")
    """Where workers find the main process; its folder is readable for the owner alone."""

    @property
    def partial(self) -> RunFiles:
        """The last snapshot of a run that was not finished."""
        return RunFiles(self.path / "partial")

    def reload(self, iteration: int) -> Path:
        """Returns the place of the reload file of an iteration."""
        return self.path / f"reload-{iteration:09d}.pkl"

    def reloads(self) -> list[Path]:
        """Returns the reload files that there are, the newest first."""
        return sorted(self.path.glob("reload-*.pkl"), reverse=True)

    def seal(self) -> None:
        """Writes the checksums of a finished run's results, which every reader compares."""
        results = (self.config, self.metrics, self.archive, self.history, self.summary)
        write_text(self.sums, sums_of(self.path, results))

    def unseal(self) -> None:
        """Removes them, before a file of the run changes."""
        self.sums.unlink(missing_ok=True)

    def samples(self, stem: str) -> Path:
        """Returns the place of what a re-evaluation has evaluated so far."""
        return self.path / f"{stem}.npz"

    def corrected_sums(self, stem: str) -> Path:
        """Returns the place of the checksums of a re-evaluation."""
        return self.path / f"{stem}.sha256"

    def torn(self) -> Iterator[Path]:
        """Yields the second halves of writes that a kill has cut off."""
        return self.path.glob(".*.tmp")


class RunDir(RunFiles):
    """The folder of a run."""

    log = Place("run.log")
    reload = Place("reload.pkl")
    rollouts = Place("rollouts")

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
        """Returns the place of the summary of a re-evaluation.

        Its arrays (.npz) and its log (.log) lie beside it.

        Args:
            stem: `Reevaluate.stem`.
        """
        return self.path / f"{stem}.json"

    def publish(self) -> None:
        """Gives the results in `state/` their declared names.

        Snakemake deletes declared files when it starts a job. Each is a second name (a hard link)
        of a file in `state/`, so that they come back in no time.
        """
        state = self.state
        for source, target in (
            (state.config, self.config),
            (state.metrics, self.metrics),
            (state.archive, self.archive),
            (state.history, self.history),
            (state.summary, self.summary),
            (state.log, self.log),
            *((newest, self.reload) for newest in state.reloads()[:1]),
        ):
            if source.exists():
                link(source, target)


def run_of_connection(connection: Path) -> RunDir | None:
    """Returns the run that a connection file belongs to; None where it is no such file."""
    run = RunDir(connection.parent.parent.parent)
    return run if run.state.connection == connection else None
