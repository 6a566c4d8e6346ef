"""Re-evaluation: evaluates every elite of a finished run again, with fresh seeds.

With noisy evaluations a search keeps elites whose scores are too high by chance, so its archive
overestimates them. Flageat and Cully (Uncertain Quality-Diversity, arXiv:2302.00463) evaluate every
elite many times and insert it with its mean result into an empty archive, the corrected archive.
"""

import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsweep.algorithms.base import Arrays
from qdsweep.config.cluster import Cluster
from qdsweep.config.experiment import Experiment
from qdsweep.config.sweep import Reevaluate
from qdsweep.domains import make_domain
from qdsweep.domains.base import Evaluation, Floats
from qdsweep.engines import make_engine
from qdsweep.engines.batch import Batch, Engine
from qdsweep.engines.failures import EvaluationFailed, describe_failure
from qdsweep.errors import STOPPED, BadInput, QdsweepError, StorageError
from qdsweep.experiment.fresh_seeds import batches, elite_contexts, fresh_seeds
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.files import atomic, read_arrays
from qdsweep.host.clock import AWAKE
from qdsweep.host.wall_time import WallTime
from qdsweep.records.dependencies import changed_text, differing, recorded
from qdsweep.records.paths import RunDir
from qdsweep.runs.load import Run
from qdsweep.versions import installed_versions

log = logging.getLogger("qdsweep")

SAVE_SECONDS = 60.0
# Time to close the workers and to write the evaluations [s].
_WALL_TIME_MARGIN = 10.0


@dataclass(frozen=True)
class Samples:
    """The evaluations so far. A kill loses those since the last save.

    Row ``r * n + i`` is repeat r of elite i, the i-th row of archive.npz.

    Attributes:
        path: Their file in `state/`, from which the published files are written.
        about: The archive's digest and the versions.
        objective: ``(times * n,)`` objectives, NaN where they are missing.
        measures: ``(times * n, m)`` measures.
        core_seconds: ``()`` core-seconds of the saved evaluations.
    """

    path: Path
    about: dict[str, Any]
    objective: Floats
    measures: Floats
    core_seconds: Floats

    @property
    def missing(self) -> NDArray[np.int64]:
        """The rows without an evaluation."""
        return np.flatnonzero(np.isnan(self.objective))

    def by_repeat(self, times: int) -> tuple[Floats, Floats]:
        """Returns objectives ``(times, n)`` and measures ``(times, n, m)``."""
        shape = (times, len(self.objective) // times)
        return self.objective.reshape(shape), self.measures.reshape(*shape, self.measures.shape[1])

    def put(self, rows: NDArray[np.int64], evaluation: Evaluation) -> None:
        """Stores the results of some rows."""
        self.measures[rows] = evaluation.measures
        self.objective[rows] = evaluation.objective  # last, because it marks the row as done

    def save(self) -> None:
        """Writes the samples. A kill leaves either the old file or the new one."""
        arrays = {name: getattr(self, name) for name in ("objective", "measures", "core_seconds")}
        with atomic(self.path) as file:
            np.savez_compressed(file, about=json.dumps(self.about, sort_keys=True), **arrays)


def read_samples(path: Path, about: dict[str, Any], rows: int, measures: int) -> Samples:
    """Reads the samples of an earlier attempt with the same archive.

    Complete samples stay valid under any versions. Incomplete samples are not completed under other
    versions.
    """
    try:
        arrays = read_arrays(path)
        then = json.loads(str(arrays["about"]))
        spent = arrays.get("core_seconds", np.zeros(()))
        samples = Samples(path, then, arrays["objective"], arrays["measures"], spent)
        same_archive = then["archive_digest"] == about["archive_digest"]
        if same_archive and (then == about or not len(samples.missing)):
            return samples
    except (BadInput, ValueError, KeyError):
        pass  # it does not exist yet, or is damaged
    missing = np.full(rows, np.nan), np.full((rows, measures), np.nan)
    return Samples(path, about, *missing, np.zeros(()))


def core_seconds_of(run: RunDir, settings: Reevaluate) -> float:
    """Reads the core-seconds of the evaluations of a run's elites; 0 if they are unknown.

    Raises:
        BadInput: The file is damaged.
    """
    path = run.state.samples(settings.stem)
    if not path.exists():
        return 0.0
    arrays = read_arrays(path, remedy="remove it; then its core-seconds are not counted")
    return float(arrays.get("core_seconds", 0))  # earlier releases do not store them


def reevaluate(run_dir: Path, settings: Reevaluate, cluster: Cluster, stop: Stop) -> Samples:
    """Evaluates every elite of a finished run again.

    The run's files do not change. Evaluations are stored in `state/`, from which a killed
    re-evaluation resumes. The result depends neither on kills nor on the engine.

    Args:
        run_dir: The run's folder, absolute.
        settings: The number of evaluations per elite, and the seed of the fresh evaluation seeds.
        cluster: The cluster config, of one node.
        stop: Decides when to stop before the end.

    Raises:
        BadInput: The run is not finished, or cannot be evaluated again.
        Interrupted: It was asked to stop. The same call resumes.
        QdsweepError: An evaluation failed.
    """
    experiment, summary, arrays = read_run(run_dir)
    domain = make_domain(experiment.domain)
    contexts = elite_contexts(domain, arrays, experiment.domain.name)
    versions = installed_versions(("numpy", *experiment.domain.libraries))
    about = {"archive_digest": summary["archive_digest"], "versions": versions}
    elites, measures = arrays["measures"].shape
    path = RunDir(run_dir).state.samples(settings.stem)
    path.parent.mkdir(exist_ok=True)
    samples = read_samples(path, about, settings.times * elites, measures)
    if len(samples.missing):
        seeds = fresh_seeds(settings, summary["id"], elites)
        engine = make_engine(cluster, experiment, domain, None, None, versions)
        log.info(
            f"{run_dir.name}: {elites} elites, {len(samples.missing)} of {len(samples.objective)} "
            f"evaluations left; engine {engine.name}, {engine.workers} worker(s)"
        )
        work = batches(samples.missing, arrays["solution"], seeds, contexts)
        try:
            with stop.interruptible():
                engine.wait()
            _evaluate(work, engine, samples, stop, experiment.timeout, elites)
        finally:
            engine.close()
            samples.save()
    return samples


def read_run(run_dir: Path) -> tuple[Experiment, dict[str, Any], Arrays]:
    """Reads experiment, summary.json and archive.npz of a finished run.

    Raises:
        BadInput: It is not finished, or its domain or what that uses has changed since.
    """
    run = RunDir(run_dir)
    for path in (run.config, run.summary, run.archive):
        if not path.exists():
            raise BadInput(
                f"{run_dir} is not a finished run ({path.name} is missing). Finish it first, with "
                "snakemake or `qdsweep run`"
            )
    if files := differing(recorded(run.state)):
        raise BadInput(
            f"{run_dir}: {changed_text(files)} since the run used it, so its elites would be "
            "evaluated with other code. Restore it, or start the sweep with --config "
            "outdated=recompute or outdated=accept"
        )
    results = Run(run_dir)
    return results.experiment, results.summary, results.arrays


def _evaluate(
    work: Iterator[tuple[NDArray[np.int64], Batch]],
    engine: Engine,
    samples: Samples,
    stop: Stop,
    timeout: float | None,
    elites: int,
) -> None:
    saved_at = counted_to = AWAKE.now()
    for rows, batch in work:
        try:
            with stop.interruptible(timeout):
                for part, outcome in engine.evaluate(batch, [slice(0, len(rows))]):
                    samples.put(rows[part], outcome.evaluation)
                    now = AWAKE.now()
                    samples.core_seconds[...] += (now - counted_to) * engine.workers
                    counted_to = now
                    stop.begin()
                    stop.progress()
                    for failure in outcome.failures:
                        log.warning("scored, not evaluated: %s", describe_failure(failure))
                    if AWAKE.now() - saved_at >= SAVE_SECONDS:
                        with stop.deferred():
                            samples.save()
                        saved_at = AWAKE.now()
                        log.info("%d evaluations left", len(samples.missing))
        except EvaluationFailed as error:
            failure = error.failure
            if failure.lacks:
                raise
            raise QdsweepError(
                f"elite {rows[failure.row] % elites} of archive.npz fails with another evaluation "
                f"seed ({failure.seed}, {failure.worker}): {failure.problem}. Fix the domain, or "
                "score such solutions with `on_failure` (this gives another run)"
            ) from None


def start_reevaluation(
    run_dir: Path, times: int, seed: int, cluster: Cluster, *, common: bool = False
) -> int:
    """Evaluates a run's elites again, writes the corrected archive, and logs the overestimation.

    Returns:
        0 finished, 75 stopped on purpose.

    Raises:
        QdsweepError: It failed; the message has the reason.
    """
    if times < 1 or seed < 0:
        raise BadInput(f"--times {times} --seed {seed}: times must be at least 1, seed at least 0")
    settings = Reevaluate(times=times, seed=seed, common=common)
    run_dir = run_dir.absolute()  # a domain may change the working directory
    logging.basicConfig(format="%(asctime)s %(message)s", stream=sys.stderr)
    log = logging.getLogger("qdsweep")
    log.setLevel(logging.INFO)
    wall_time = WallTime(cluster.max_seconds)
    try:
        with Stop() as stop:
            from qdsweep.elites.corrected_archive import write_corrected_archive

            stop.before(partial(wall_time.end, _WALL_TIME_MARGIN))
            samples = reevaluate(run_dir, settings, cluster, stop)
            about = write_corrected_archive(run_dir, settings, *samples.by_repeat(times))
            stop.keep_handlers()
    except Interrupted as interruption:
        log.warning("stopped by %s and saved; the same command resumes from here", interruption)
        return STOPPED
    except OSError as error:
        raise StorageError(error, run_dir) from None
    print(result_line(about))
    return 0


def result_line(about: dict[str, Any]) -> str:
    """Returns the result in one line."""
    reported, corrected = about["reported"], about["corrected"]
    text = f"{about['id']}: QD score {reported['qd_score']:,.6g} as reported, "
    text += f"{corrected['qd_score']:,.6g} corrected ({about['times']} evaluations per elite)"
    text += f", {about['delivered']['qd_score']:,.6g} delivered"
    if corrected["coverage"] is not None:
        before, after = 100 * reported["coverage"], 100 * corrected["coverage"]
        text += f", coverage {before:.2f} % and {after:.2f} %"
    if about["hit_rate"] is not None:
        text += f", hit rate {100 * about['hit_rate']:.1f} %"
    if not about["seed_matters"]:
        text += "; no evaluation depends on its seed, so no correction was needed"
    return text
