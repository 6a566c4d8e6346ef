"""The results for Python: a run with its pyribs archive, or the table of a sweep.

>>> run = load("results/runs/lp_sphere-cma_me-s1-0123456789")
>>> run.archive.stats.qd_score, run.metrics["coverage"].iloc[-1], run.config["seed"]
>>> run.replay(run.best()).objective

Solutions are evaluated as in their run, with its CPU settings, in whatever process Python runs.
"""

import weakref
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.config.imported import is_imported
from qdsweep.domains import make_domain
from qdsweep.domains.base import Domain, Evaluation
from qdsweep.engines.base import Batch, Failure
from qdsweep.engines.failures import EvaluationFailed, WorkerLost, evaluate_safely
from qdsweep.errors import BadInput, QdsweepError
from qdsweep.experiment.elite import (
    Elite,
    context_for,
    describe_nearest,
    elite_of,
    possible_seeds,
    said,
)
from qdsweep.files import damaged, read_arrays, read_csv, require
from qdsweep.host.machine import missing_settings
from qdsweep.records.metrics import read_metrics
from qdsweep.records.paths import Results, RunDir, RunFiles
from qdsweep.records.results import read_config, read_summary
from qdsweep.records.sources import identity_in
from qdsweep.records.sums import require_as_written
from qdsweep.versions import __version__

if TYPE_CHECKING:
    import pandas as pd
    from ribs.archives import ArchiveBase

    from qdsweep.engines.children import Children


def start_worker(experiment: Experiment) -> "Children | None":
    """Starts a process with the CPU settings of an experiment.

    They act when numpy is imported, which a notebook has usually done before.

    Returns:
        The process; None where this one has the settings.
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
    """Evaluates a batch, in the worker if there is one.

    Raises:
        QdsweepError: An evaluation fails.
    """
    if worker is None:
        return evaluate_safely(domain, batch, 0, _scored(experiment)).evaluation
    from qdsweep.engines.children import pack, unpack

    try:
        result = unpack(worker.ask(pack(batch, 0))).result
    except WorkerLost:
        raise QdsweepError(
            "the process that evaluates has died: out of memory, or a crash"
        ) from None
    if isinstance(result, Failure):
        raise EvaluationFailed(result)
    return result.evaluation


def _scored(experiment: Experiment) -> float | None:
    return experiment.on_failure.objective if experiment.on_failure else None


@dataclass(frozen=True)
class Run:
    """A run's results. Each part is read at its first use.

    Attributes:
        path: The run's folder.
    """

    path: Path

    @property
    def files(self) -> RunFiles:
        """Paths of the files."""
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
        """A row for each iteration (metrics.csv)."""
        return read_metrics(self.files.metrics)

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of archive.npz, such as index, objective, measures, solution and fields."""
        return read_arrays(self.files.archive)

    @cached_property
    def archive(self) -> "ArchiveBase":
        """The final archive as an archive of pyribs, every elite in its cell.

        Raises:
            BadInput: The cells cannot be rebuilt; the message names the file.
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
        """The experiment, for today's code.

        Raises:
            BadInput: Today's code would compute another run, or the run was imported.
        """
        if is_imported(self.summary["id"]):
            raise BadInput(f"{self.path} was imported: nothing here evaluates its elites again")
        experiment = compose(str(self.files.config))
        new_id = identity_in(experiment, RunDir(self.path)).id
        if self.summary.get("id") != new_id:
            raise BadInput(
                f"{self.path} is {self.summary.get('id')}, but its config.yaml stands for {new_id} "
                "now: the source of its domain or emitters has changed since, or the file was; "
                "run it again before its elites are evaluated again"
            )
        return experiment

    @cached_property
    def domain(self) -> Domain:
        """The domain, with its measures, its ranges, and `evaluate`."""
        return make_domain(self.experiment.domain)

    def best(self) -> Elite:
        """Returns the elite of the highest objective."""
        return self.elite(int(np.argmax(self.arrays["objective"])) if self._count else 0)

    def at(self, measures: ArrayLike) -> Elite:
        """Returns the elite of the cell that contains a point; without cells, the nearest one.

        Args:
            measures: ``(m,)`` the point, in the measures' own units. As in pyribs, a point outside
                of their ranges belongs to the cell at the edge.

        Raises:
            BadInput: The cell is empty; the message names the nearest elites.
        """
        point = np.asarray(measures, dtype=np.float64)
        names = self.summary["archive"]["measures"]
        if point.shape != (len(names),) or not np.isfinite(point).all():
            raise BadInput(
                f"{point.tolist()} is no point of the measures: {len(names)} numbers are needed, "
                f"{', '.join(names)}"
            )
        if self._count:
            cell = self.archive.index_of_single(point)
            for row in np.flatnonzero(self.arrays["index"] == cell):
                return self.elite(int(row))
        ranges = self.summary["archive"]["ranges"]
        nearest = describe_nearest(self.arrays, point, ranges) or "none, the archive is empty"
        raise BadInput(
            f"the cell at {said(point)} ({', '.join(names)}) has no elite; the nearest: {nearest}"
        )

    def elite(self, row: int) -> Elite:
        """Returns the elite of a row of archive.npz.

        Raises:
            BadInput: There is no such row.
        """
        if not 0 <= row < self._count:
            raise BadInput(f"there is no elite {row}: the archive has {self._count}, from 0 on")
        return elite_of(self.arrays, row)

    def replay(self, elite: Elite) -> Evaluation:
        """Evaluates an elite again with the seed of its evaluation.

        Returns:
            Its evaluation, of one row. It has the elite's objective and measures, bit for bit,
            under the library versions of the run and on a CPU that its `cpu_baseline` admits.

        Raises:
            BadInput: The seed is unknown, see `seed_of`.
        """
        return self.evaluate(elite.solution, self.seed_of(elite), elite)

    def evaluate(
        self, solutions: ArrayLike, seeds: ArrayLike, elite: Elite | None = None
    ) -> Evaluation:
        """Evaluates solutions as the run did, with the same settings of the CPU.

        Args:
            solutions: ``(n, d)`` solutions, or one ``(d,)`` for all seeds.
            seeds: ``(n,)`` evaluation seeds, or one for all solutions.
            elite: Gives what the domain had learned when it evaluated this elite, where the
                domain learns from all evaluations of a run (`normalize_observations`).

        Raises:
            BadInput: The domain learns, and no elite is given.
            QdsweepError: An evaluation fails.
        """
        rows = np.atleast_2d(np.asarray(solutions, dtype=np.float64))
        numbers = np.atleast_1d(np.asarray(seeds, dtype=np.uint32))
        n = max(len(rows), len(numbers))
        rows = np.ascontiguousarray(np.broadcast_to(rows, (n, rows.shape[1])))
        context = context_for(self.domain, elite, self.experiment.domain.name)
        batch = Batch(rows, np.broadcast_to(numbers, n), context=context)
        return evaluate_again(self.experiment, self.domain, self._worker, batch)

    def seed_of(self, elite: Elite) -> int:
        """Returns the seed that an elite was evaluated with.

        Runs of earlier releases did not store it. The history then has the elite's iteration, and
        the seed is the one of this iteration that gives the elite's objective and measures.

        Raises:
            BadInput: It is unknown.
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
                f"the evaluation seed of elite {elite.row} of {self.path} is unknown: the run was "
                "begun by an earlier release, which did not keep it, and its history does not tell"
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


def load(run_dir: str | PathLike[str]) -> Run:
    """Returns the results of a run.

    Args:
        run_dir: `results/runs/ID`.

    Raises:
        BadInput: The folder does not exist, or the run has not written its results yet.
    """
    path = require(
        Path(run_dir), "Give the folder of a run, results/runs/ID; runs.tsv of a sweep lists ids."
    )
    files = RunFiles(path)
    for file in (files.summary, files.config, files.metrics, files.archive):
        require(file, f"{path} is not a finished run: run `snakemake` again to finish it.")
    return Run(path)


def load_sweep(name: str, results: str | PathLike[str] = "results") -> "pd.DataFrame":
    """Returns a row for each run of a sweep: summary.csv.

    Args:
        name: The sweep's name.
        results: The folder of the results.

    Raises:
        BadInput: There is no such sweep, or it has no tables yet.
    """
    folder = Results(Path(results))
    known = sorted(sweep.name for sweep in folder.known_sweeps())
    sweep = folder.sweep(name)
    require(sweep.path, f"The sweeps there: {', '.join(known) or 'none'}.")
    require_as_written(sweep.summary, sums=sweep.sums("aggregate"))
    return read_csv(sweep.summary, "Run `snakemake`, which makes it.")
