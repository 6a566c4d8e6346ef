"""Loads results in Python: a run with its pyribs archive, or the tables of a sweep.

Solutions are evaluated as in their run and with its CPU settings, from any Python process. The
examples take the sweep of `make demo`.
"""

import weakref
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from qdsweep.config.archive_kinds import ARCHIVES, FIXED
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.domains import make_domain
from qdsweep.domains.base import Domain, Evaluation
from qdsweep.engines.batch import Batch, Failure
from qdsweep.engines.failures import EvaluationFailed, WorkerLost, evaluate_safely
from qdsweep.errors import BadInput, QdsweepError
from qdsweep.files import damaged, read_arrays, read_csv, require
from qdsweep.host.machine import missing_settings
from qdsweep.records.archive import field_names
from qdsweep.records.metrics_file import read_metrics
from qdsweep.records.paths import Results, RunDir, RunFiles, SweepDir, is_imported
from qdsweep.records.plan import read_plan
from qdsweep.records.results import read_config, read_summary
from qdsweep.records.sources import identity_in
from qdsweep.records.sums import require_as_written
from qdsweep.runs.elite import (
    Elite,
    context_for,
    describe_nearest,
    elite_of,
    possible_seeds,
    said,
)
from qdsweep.text import nearest
from qdsweep.versions import __version__

if TYPE_CHECKING:
    import pandas as pd
    from ribs.archives import ArchiveBase

    from qdsweep.engines.children import Children


def start_worker(experiment: Experiment) -> "Children | None":
    """Starts a process with the CPU settings of an experiment.

    The settings must precede the import of numpy, which a notebook has usually already imported.

    Returns:
        The process; None if this process has the settings.
    """
    missing = missing_settings(experiment.cpu_baseline)
    if not missing:
        return None
    from qdsweep.engines.children import Children
    from qdsweep.engines.worker import Order

    directory, version = str(Path.cwd()), __version__
    order = Order(experiment.domain, _scored(experiment), version, {}, missing, directory, None)
    return Children(order, 1, "replay")


def evaluate_again(
    experiment: Experiment, domain: Domain, worker: "Children | None", batch: Batch
) -> Evaluation:
    """Evaluates a batch in the worker, if there is one, or in this process.

    Raises:
        QdsweepError: An evaluation fails.
    """
    if worker is None:
        return evaluate_safely(domain, batch, 0, _scored(experiment)).evaluation
    from qdsweep.engines.children import pack_part, unpack

    try:
        result = unpack(worker.ask(pack_part(batch, 0))).result
    except WorkerLost:
        raise QdsweepError(
            "the process that evaluates has died. Usual causes: out of memory, a crash"
        ) from None
    if isinstance(result, Failure):
        raise EvaluationFailed(result)
    return result.evaluation


def _scored(experiment: Experiment) -> float | None:
    return experiment.on_failure.objective if experiment.on_failure else None


@dataclass(frozen=True)
class Run:
    """The results of a finished run, see `load`. Each part is read at its first use.

    Attributes:
        path: The run's folder.

    Example:
        >>> from qdsweep import load
        >>> run = load("cma_me, seed 1")
        >>> elite = run.best()
        >>> run.replay(elite).objective == elite.objective
        array([ True])
        >>> run.evaluate(elite.solution, seeds=[1, 2, 3]).objective.shape
        (3,)
    """

    path: Path

    @property
    def files(self) -> RunFiles:
        """The paths of the run's files."""
        return RunFiles(self.path)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The content of summary.json, such as id, status, final metrics, timings and versions."""
        return read_summary(self.files)

    @cached_property
    def config(self) -> dict[str, Any]:
        """The resolved experiment (config.yaml)."""
        return read_config(self.files.config)

    @cached_property
    def metrics(self) -> "pd.DataFrame":
        """The metrics, one row per iteration (metrics.csv)."""
        return read_metrics(self.files.metrics)

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of archive.npz, such as index, objective, measures, solution and fields."""
        return read_arrays(self.files.archive)

    @cached_property
    def cells(self) -> np.ndarray:
        """The cell of each elite, ``(n,)``; its row where cells move or there are none."""
        index = read_arrays(self.files.archive, "index")["index"]
        has_fixed_cells = ARCHIVES[self.summary["archive"]["type"]].cells in FIXED
        return index if has_fixed_cells else np.arange(len(index))

    @property
    def measure_names(self) -> list[str]:
        """The names of the measures. External runs may have none, so they get numbers."""
        names: list[str] | None = self.summary["archive"].get("measures")
        return names or [f"measure {i + 1}" for i in range(self.arrays["measures"].shape[1])]

    @cached_property
    def archive(self) -> "ArchiveBase":
        """The final archive as an archive of pyribs, with every elite in its cell.

        Raises:
            BadInput: The archive cannot be rebuilt; the message names the file.
        """
        from qdsweep.algorithms.ribs.archives import rebuild_archive

        try:
            return rebuild_archive(self.summary["archive"], self.arrays)
        except BadInput as error:
            raise BadInput(f"{self.files.archive}: {error}") from None
        except KeyError as error:
            raise damaged(self.files.archive, error) from None

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment, for the current code.

        Raises:
            BadInput: The current code would compute another run, or the run was imported.
        """
        if is_imported(self.summary["id"]):
            raise BadInput(f"{self.path} was imported, so its elites cannot be evaluated again")
        experiment = compose(str(self.files.config))
        new_id = identity_in(experiment, RunDir(self.path)).id
        if self.summary.get("id") != new_id:
            raise BadInput(
                f"{self.path} is {self.summary.get('id')}, but its config.yaml now gives {new_id}: "
                "the file or the source of its domain or emitters has changed. Compute the run "
                "again before you evaluate its elites"
            )
        return experiment

    @cached_property
    def domain(self) -> Domain:
        """The domain, with its measures, their ranges, and `evaluate`.

        Raises:
            BadInput: See `experiment`.
        """
        return make_domain(self.experiment.domain)

    def elites(self) -> "pd.DataFrame":
        """Returns all elites as a table, one row per elite.

        Returns:
            The columns are `index` (the cell), `objective`, the measures by the domain's names, and
            each field of one number, such as `evaluation_seed`. If a name is taken, the column ends
            in `_elite`. The table's index is the elite's row: `run.elite(row).solution` is its
            solution.

        Example:
            >>> from qdsweep import load
            >>> elites = load("cma_me, seed 1").elites()
            >>> list(elites)
            ['index', 'objective', 'impact x-position', 'impact y-velocity', 'evaluation_seed']
            >>> elites.nlargest(3, "objective")["objective"].is_monotonic_decreasing
            True
        """
        import pandas as pd

        arrays = self.arrays
        further = [*zip(self.measure_names, arrays["measures"].T, strict=True)]
        further += [(name, arrays[name]) for name in field_names(arrays) if arrays[name].ndim == 1]
        columns = {name: arrays[name] for name in ("index", "objective")}
        for name, values in further:
            is_taken = name in columns or name in ("id", "row")  # the others of `load_elites`
            columns[f"{name}_elite" if is_taken else name] = values
        return pd.DataFrame(columns).rename_axis("row")

    def best(self) -> Elite:
        """Returns the elite with the highest objective, as pyribs' `best_elite`.

        Raises:
            BadInput: The archive is empty.
        """
        return self.elite(int(np.argmax(self.arrays["objective"])) if self._count else 0)

    def at(self, measures: ArrayLike) -> Elite:
        """Returns the elite of the cell that contains a point, as pyribs' `retrieve_single`.

        In an archive without cells, it is the elite nearest to the point.

        Args:
            measures: ``(m,)`` the point, in the units of the measures.

        Raises:
            BadInput: The cell is empty, and the message names the nearest elites. Or the point does
                not have m finite numbers. Or it is outside of the ranges, where pyribs returns the
                elite of a cell at the edge.
        """
        point = np.asarray(measures, dtype=np.float64)
        names = self.measure_names
        if point.shape != (len(names),) or not np.isfinite(point).all():
            raise BadInput(
                f"{point.tolist()} is not a point of the measure space: give {len(names)} finite "
                f"numbers, {', '.join(names)}"
            )
        ranges = self.summary["archive"]["ranges"]
        if self.summary["archive"]["cells"] is not None:
            outside = [
                f"{name} = {value:.6g}, range {low:.6g} to {high:.6g}"
                for name, value, (low, high) in zip(names, point, ranges, strict=True)
                if not low <= value <= high
            ]
            if outside:
                edge = ",".join(map(repr, np.clip(point, *np.array(ranges).T).tolist()))
                raise BadInput(
                    f"{said(point)} is outside of the archive: {'; '.join(outside)}. The nearest "
                    f"cell is the one at the edge, at {edge}"
                )
        if self._count:
            cell = self.archive.index_of_single(point)
            for row in np.flatnonzero(self.arrays["index"] == cell):
                return self.elite(int(row))
        near = describe_nearest(self.arrays, point, ranges) or "none, the archive is empty"
        raise BadInput(
            f"the cell at {said(point)} ({', '.join(names)}) has no elite; the nearest: {near}"
        )

    def elite(self, row: int) -> Elite:
        """Returns the elite in a row of archive.npz.

        Args:
            row: The number of the row, from 0.

        Raises:
            BadInput: There is no such row.
        """
        if not 0 <= row < self._count:
            raise BadInput(f"there is no elite {row}: the archive has {self._count}, from 0 on")
        return elite_of(self.arrays, row)

    def replay(self, elite: Elite) -> Evaluation:
        """Evaluates an elite again with the seed of its evaluation.

        Args:
            elite: An elite of this run.

        Returns:
            Its evaluation, of one row. It has the elite's objective and measures, bit for bit,
            with the run's library versions and on a CPU that its `cpu_baseline` allows.

        Raises:
            BadInput: The seed is unknown, see `seed_of`.
            QdsweepError: The evaluation fails.
        """
        return self.evaluate(elite.solution, self.seed_of(elite), elite)

    def evaluate(
        self, solutions: ArrayLike, seeds: ArrayLike, elite: Elite | None = None
    ) -> Evaluation:
        """Evaluates solutions as in the run, with the same CPU settings.

        Args:
            solutions: ``(n, d)`` solutions, or one ``(d,)`` for all seeds.
            seeds: ``(n,)`` evaluation seeds, or one for all solutions.
            elite: The elite whose context to use. It is only needed where the domain learns from
                all evaluations of a run (`normalize_observations`).

        Returns:
            Objectives ``(n,)``, measures ``(n, m)`` and the domain's fields.

        Raises:
            BadInput: The domain has a context, and no elite is given.
            QdsweepError: An evaluation fails.
        """
        rows = np.atleast_2d(np.asarray(solutions, dtype=np.float64))
        numbers = np.atleast_1d(np.asarray(seeds, dtype=np.uint32))
        n = max(len(rows), len(numbers))
        rows = np.ascontiguousarray(np.broadcast_to(rows, (n, rows.shape[1])))
        context = context_for(self.domain, elite, self.experiment.domain.name)
        batch = Batch(rows, np.broadcast_to(numbers, n), context=context)
        return evaluate_again(self.experiment, self.domain, self._worker, batch)

    def elite_in(self, cell: int) -> Elite | None:
        """Returns the elite of one of `cells`; None if it has none."""
        (rows,) = np.nonzero(self.cells == cell)
        return self.elite(int(rows[0])) if len(rows) else None

    def seed_of(self, elite: Elite) -> int:
        """Returns the seed of an elite's evaluation.

        Earlier releases did not store it, and some own algorithms do not keep it. The history of
        such a run has the elite's iteration. The seed is the one of this iteration that gives the
        elite's objective and measures.

        Args:
            elite: An elite of this run.

        Raises:
            BadInput: The seed is unknown.
        """
        if elite.evaluation_seed is not None:
            return elite.evaluation_seed
        seeds = possible_seeds(self.experiment, elite, self.files, self.metrics)
        if len(seeds) == 1:
            return int(seeds[0])
        if len(seeds):
            result = self.evaluate(elite.solution, seeds, elite)
            same_measures = (result.measures == elite.measures).all(1)
            seeds = seeds[(result.objective == elite.objective) & same_measures]
        if not len(seeds):
            raise BadInput(
                f"the evaluation seed of elite {elite.row} of {self.path} is unknown: archive.npz "
                "does not store it, and history.npz does not lead to it. Causes: your own "
                "algorithm does not keep it (`qdsweep check --algorithm` prints the remedy), or an "
                "earlier release started the run"
            )
        return int(seeds[0])

    @property
    def _count(self) -> int:
        return len(self.arrays["objective"])

    @cached_property
    def _worker(self) -> "Children | None":
        worker = start_worker(self.experiment)
        if worker is not None:
            weakref.finalize(self, worker.close)
        return worker


def load(run: str | PathLike[str], results: str | PathLike[str] = "results") -> Run:
    """Returns the results of a run.

    Args:
        run: The run's folder, its id, or its name in `qdsweep status`, such as `cma_me, seed 1`.
        results: The folder of the results, for an id or a name.

    Returns:
        The run, whose parts are read at their first use.

    Raises:
        BadInput: There is no such run, several runs have the name, or the run has not written its
            results yet.

    Example:
        >>> from qdsweep import load
        >>> run = load("cma_me, seed 1")
        >>> run.config["seed"], len(run.metrics) == run.summary["iterations"]
        (1, True)
        >>> run.archive.dims
        array([50, 50], dtype=int32)
    """
    path = Path(run) if Path(run).exists() else _find(str(run), Results(Path(results)))
    if SweepDir(path).plan.exists():
        folder = path.absolute().parents[1]
        elsewhere = "" if folder == Path(results).absolute() else f", {str(folder)!r}"
        raise BadInput(
            f"{path} is a sweep, not a run. load_sweep({path.name!r}{elsewhere}) returns its "
            "table, with the ids of its runs"
        )
    files = RunFiles(path)
    for file in (files.summary, files.config, files.metrics, files.archive):
        require(file, f"{path} is not a finished run: run `snakemake` again to finish it.")
    return Run(path)


def _find(name: str, results: Results) -> Path:
    """Returns the folder of the run with an id or a name in a sweep, or of a sweep's name."""
    if (folder := results.run(name).path).exists():
        return folder
    planned = [
        (run, sweep.name) for sweep in results.known_sweeps() for run in read_plan(sweep).runs()
    ]
    ids = {run.id: sweep for run, sweep in planned if run.label == name}
    if len(ids) == 1:
        return results.run(*ids).path
    if ids:
        which = ", ".join(f"{run} (sweep {sweep})" for run, sweep in ids.items())
        raise BadInput(f"{name!r} is the name of several runs. Give the id of one: {which}")
    if results.sweep(name).plan.exists():
        return results.sweep(name).path
    known = [*(run.label for run, _ in planned), *(run.name for run in results.known_runs())]
    raise BadInput(
        f"{name!r} is not a run: there is no such folder, id or name in {results.path}; "
        f"{nearest(name, known)}runs.tsv of a sweep lists the ids of its runs"
    )


def load_sweep(name: str, results: str | PathLike[str] = "results") -> "pd.DataFrame":
    """Returns the table summary.csv of a sweep.

    Args:
        name: The sweep's name.
        results: The folder of the results.

    Returns:
        A table with one row per run. The columns are its id, swept parameters and final metrics.

    Raises:
        BadInput: There is no such sweep, or it has no tables yet.

    Example:
        >>> from qdsweep import load_sweep
        >>> scores = load_sweep("demo").groupby("algorithm")["norm_qd_score"].mean()
        >>> scores.index.to_list()
        ['cma_mae', 'cma_me', 'map_elites']
    """
    folder = Results(Path(results))
    known = sorted(sweep.name for sweep in folder.known_sweeps())
    sweep = folder.sweep(name)
    where = folder.path.absolute()
    require(sweep.path, f"The known sweeps in {where}: {', '.join(known) or 'none'}.")
    require_as_written(sweep.summary, sums=sweep.sums("aggregate"))
    return read_csv(sweep.summary, "Run `snakemake` to write it.")


def load_elites(name: str, results: str | PathLike[str] = "results") -> "pd.DataFrame":
    """Returns the elites of all runs of a sweep as one table.

    Args:
        name: The sweep's name.
        results: The folder of the results.

    Returns:
        A table with one row per elite. It has the swept parameters and the id of its run, as
        `load_sweep`, then its row and the columns of `Run.elites`. An elite's column whose name is
        also that of a swept parameter ends in `_elite`. The elites are those at the end of each
        run, which is later than the sweep's budget if that was lowered. Runs without results have
        no rows.

    Raises:
        BadInput: There is no such sweep, or it has no tables yet.

    Example:
        >>> from qdsweep import load, load_elites
        >>> best = load_elites("demo").nlargest(1, "objective").iloc[0]
        >>> float(best["objective"]) == load(best["id"]).elite(best["row"]).objective
        True
    """
    import pandas as pd

    table, folder = load_sweep(name, results), Results(Path(results))
    swept = table.columns[: table.columns.get_loc("id") + 1]
    # Rows that differ only in their budget share a run. It belongs to the largest budget.
    reached = table.dropna(subset="evaluations").sort_values("evaluations", kind="stable")
    rows = reached.drop_duplicates("id", keep="last").sort_index()[swept]
    runs = {run: Run(folder.run(run).results.path).elites() for run in rows["id"]}
    elites = pd.concat(runs, names=["id"]).reset_index()
    return rows.merge(elites, on="id", suffixes=("", "_elite"))
