"""Computes a run from its reload file, or from its start, and writes its folder."""

import contextlib
import logging
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import InitVar, dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

from qdsweep.algorithms import import_plugins, make_algorithm, try_changes
from qdsweep.config.domain import Plugin
from qdsweep.config.experiment import Experiment
from qdsweep.config.memory import require_memory_of
from qdsweep.config.own_code import find_source
from qdsweep.domains import make_domain
from qdsweep.domains.base import Domain, Evaluation
from qdsweep.engines import make_engine
from qdsweep.engines.batch import Engine
from qdsweep.engines.failures import EvaluationFailed, NoWorkers, WorkerDied
from qdsweep.errors import BadInput
from qdsweep.experiment import reload
from qdsweep.experiment.attempt import Attempt
from qdsweep.experiment.fresh_seeds import find_noise
from qdsweep.experiment.loop import run_loop, timed
from qdsweep.experiment.outputs import (
    all_versions,
    describe_archive,
    describe_domain,
    final_rows,
    write_results,
)
from qdsweep.experiment.own_metrics import OwnMetrics
from qdsweep.experiment.recorded_changes import Insertions
from qdsweep.experiment.run_log import Progress
from qdsweep.experiment.saver import Saver
from qdsweep.experiment.state import State, measure
from qdsweep.experiment.stop import Hanging, Interrupted, Stop
from qdsweep.host.clock import AWAKE
from qdsweep.host.machine import Load, processor, require_baseline
from qdsweep.host.owner import this_process
from qdsweep.host.process import image
from qdsweep.host.threads import use_threads
from qdsweep.records.dependencies import (
    accepted,
    refuse_earlier_imports,
    refuse_hidden_files,
    sources_of_experiment,
)
from qdsweep.records.metrics_file import Metrics
from qdsweep.records.paths import RunDir, StateDir
from qdsweep.records.results import UNKNOWN, Stochastic, Summary, stochastic_of, write_config
from qdsweep.records.status import StatusFile, read_status, write_status
from qdsweep.versions import installed_versions

if TYPE_CHECKING:
    from qdsweep.engines.allocation import Helpers

log = logging.getLogger("qdsweep")

STATUS_SECONDS = 1.0
# The bits of a result may depend on these; the domain adds its own libraries.
DECISIVE = ("numpy", "scipy", "ribs", "scikit-learn")


def compute(attempt: Attempt, stop: Stop, helpers: "Helpers | None" = None) -> None:
    """Computes a run to the end of its budget, from its newest reload file if it has one.

    Args:
        attempt: The attempt. The caller has locked the run's folder.
        stop: Decides when to stop before the end.
        helpers: Starts the workers, if the engine needs it.

    Raises:
        Interrupted: The run was asked to stop. Its state is saved.
        QdsweepError: The run cannot continue.
    """
    experiment, run = attempt.experiment, attempt.run
    sources = sources_of_experiment(experiment)  # before they are imported
    refuse_earlier_imports(experiment.plugins)
    of_workers = installed_versions((*DECISIVE, *experiment.domain.libraries))
    versions = of_workers | installed_versions(experiment.algorithm.libraries)
    if experiment.algorithm.needs_gpu:
        from qdsweep.algorithms.pytorch import gpu  # imports torch

        versions |= gpu.gpu_versions()
    domain = make_domain(experiment.domain, experiment.seed)
    if hasattr(domain, "remark"):
        log.info(domain.remark)
    require_memory_of(experiment, domain.solution_dim)
    import_plugins(experiment)
    refuse_hidden_files(experiment.plugins)
    require_baseline()
    # Threads would share the GPU, which computes one share after the other anyway.
    use_threads(1 if experiment.algorithm.needs_gpu else attempt.cluster.learner_workers)
    saved = reload.newest(attempt, versions)
    run.state.unseal()
    if saved is None:
        log.info("a new run")
        _refuse_fields(experiment, domain)
        try_changes(experiment, domain, run.centroids)
        algorithm = make_algorithm(experiment, domain, run.centroids)
        context = np.zeros(domain.context_dim) if hasattr(domain, "context_dim") else None
        state = State(algorithm, steps=0, context=context)
    else:
        _refuse_other_domain(saved.header, domain, run)
        state = saved.state
        log.info("resumes after iteration %d from the reload file", state.iterations)
    _require_time(run.state, attempt.options.max_seconds)
    own = OwnMetrics(experiment, state)
    write_config(run.state.config, experiment)
    with stop.interruptible():
        engine = make_engine(attempt.cluster, experiment, domain, run.path, helpers, of_workers)
    log.info("engine %s, %d worker(s)", engine.name, engine.workers)
    is_own = bool(experiment.algorithm.plugins)
    history = Insertions(run, state, saved.header if saved else {}, is_own=is_own)
    recorder = Recorder(
        attempt=attempt,
        domain=domain,
        versions=versions,
        sources=sources,
        state=state,
        own=own,
        engine=engine,
        history=history,
        stop=stop,
    )
    with recorder.recording(state):
        try:
            with stop.interruptible():
                engine.wait()
            run_loop(
                experiment,
                state,
                engine,
                stop,
                recorder.after_iteration,
                recorder.saver.save_if_due,
                recorder.after_tell,
            )
            recorder.find_noise(state, stop)
        finally:
            engine.close()  # the last save then has the whole machine


def _refuse_fields(experiment: Experiment, domain: Domain) -> None:
    """Raises BadInput if a field of the user's domain has the name of a result of qdsweep."""
    if isinstance(experiment.domain, Plugin):
        import qdsweep.algorithms.ribs  # noqa: F401 - before pyribs: without scikit-learn
        from qdsweep.domains.plugin import refuse_fields

        target = experiment.domain.type
        refuse_fields(domain, f"{find_source(target)}: domain.type = {target}")


def _require_time(files: StateDir, max_seconds: float | None) -> None:
    """Refuses a limit that is shorter than each earlier start of the run with a save."""
    starts = [
        attempt["first_evaluation"] + attempt.get("save", 0.0)
        for attempt in read_status(files).attempts
        if "first_evaluation" in attempt
    ]
    if max_seconds is not None and starts and max_seconds < min(starts):
        raise BadInput(
            f"max_seconds = {max_seconds:g}: a start of this run took {min(starts):.1f} s until "
            "its first evaluation and a save, so it would hardly progress. Use a longer limit"
        )


def _refuse_other_domain(header: dict[str, Any], domain: Domain, run: RunDir) -> None:
    """Raises BadInput if a plug-in, whose code is the same, reads other numbers from elsewhere."""
    now = describe_domain(domain)
    for name, value in header.get("domain", now).items():
        if value != now[name]:
            raise BadInput(
                f"{run.state.path}: the domain's {name} was {value} when the reload file was "
                f"written, and is {now[name]} now. Restore what the domain reads, or compute the "
                f"run again in another folder"
            )


@dataclass(eq=False, kw_only=True)
class Recorder:
    """Writes the files of a run: metrics, history, status, log, results."""

    attempt: Attempt
    domain: Domain
    versions: dict[str, str]
    sources: dict[str, str]
    state: InitVar[State]
    own: OwnMetrics
    engine: Engine
    history: Insertions
    stop: InitVar[Stop]

    def __post_init__(self, state: State, stop: Stop) -> None:
        """Opens metrics.csv and the progress, and starts the record of the attempt."""
        self.experiment, self.files = self.attempt.experiment, self.attempt.run.state
        self.metrics = Metrics(self.files.metrics, state.iterations, self.own.columns)
        ((unit, _),) = self.experiment.budget.items()
        done = getattr(state, unit)
        self.progress = Progress(
            self.experiment.budget,
            done,
            self.files.metrics,
            bar=self.attempt.options.terminal and sys.stderr.isatty(),
            best_ever=not self.experiment.keeps_best,
        )
        before = read_status(self.files)
        earlier = accepted(self.files)
        self.accepted: StatusFile = {"accepted": earlier} if earlier else {}
        if before.is_damaged:
            log.warning("%s is damaged: earlier attempts are not known", self.files.status)
        self.attempts = before.attempts
        for attempt in self.attempts:
            if "how" not in attempt:  # it ended without a record
                from qdsweep.experiment.endings import explain_kill

                attempt["how"] = explain_kill(self.files, attempt)
                log.warning("the last attempt was %s", attempt["how"])
        self.attempts.append(
            {
                **this_process(),
                "cpu": processor(),
                "image": image(),
                "started": now(),
                "from": state.iterations,
                **({"metrics": self.own.code} if self.own.code else {}),
            }
        )
        self.saver = Saver(
            attempt=self.attempt,
            domain=self.domain,
            versions=self.versions,
            metrics=self.metrics,
            history=self.history,
            stop=stop,
            record=self.attempts[-1],
            path=self.files.reload(state.iterations),
        )
        self.load = Load(self.attempt.cluster.workers_per_node)
        self.status_at = AWAKE.now()
        self.row: dict[str, Any] = measure(state)
        self.stochastic: Stochastic = UNKNOWN
        self.archive = describe_archive(state.algorithm.archive, self.domain)

    def after_tell(self, evaluation: Evaluation) -> None:
        """Records an evaluation that the algorithm has just received."""
        self.history.told(evaluation.measures)
        self.own.told(evaluation)

    def after_iteration(self, state: State, seconds: dict[str, float]) -> None:
        """Records an iteration."""
        if "first_evaluation" not in self.attempts[-1]:
            self._note_start(seconds)
            require_baseline()  # the user's code may import libraries only when it is called
        self._add_row(state, seconds)
        if AWAKE.now() - self.status_at >= STATUS_SECONDS:
            self.write_status(state, "running")
        self.progress.show(self.row)

    def _note_start(self, seconds: dict[str, float]) -> None:
        """Records the time to the first evaluation, with imports, workers and the first ask."""
        began = psutil.Process().create_time()
        later = seconds["evaluate"] + seconds["tell"] + seconds["compile"]
        since = time.time() - began - later
        self.attempts[-1]["first_evaluation"] = round(since, 2)
        log.info(
            "first evaluation after %.1f s of this process and %.1f s of compilation",
            since,
            seconds["compile"],
        )

    def _add_row(self, state: State, seconds: dict[str, float]) -> None:
        own = {}
        if self.own.columns:
            seconds["metrics"] = 0.0
            with timed(seconds, "metrics"):
                own = self.own.measure()
        for phase, value in seconds.items():
            state.seconds[phase] = state.seconds.get(phase, 0.0) + value
        phases = {f"seconds_{phase}": value for phase, value in seconds.items()}
        self.row = measure(state) | own | phases
        self.metrics.add(self.row)
        self.history.add(state.iterations)

    def find_noise(self, state: State, stop: Stop) -> None:
        """Finds out whether evaluations depend on their seed, for summary.json.

        A longer budget does not change that they do, so a run that resumes keeps this.
        """
        files = self.files.noise
        with contextlib.suppress(BadInput):  # damaged: as if it were not there
            if self.attempts[-1]["from"] and stochastic_of(self.files, {}) is True:
                self.stochastic = True
                return
        files.unlink(missing_ok=True)
        self.stochastic = find_noise(
            self.experiment, self.domain, partial(final_rows, state), self.engine, stop, files
        )

    def write_status(self, state: State, status: str) -> None:
        """Writes status.json, the only file of a live run that `qdsweep status` reads.

        `qdsweep explore` reads all iterations up to that of status.json from the other files.
        """
        self.metrics.flush()
        self.history.flush()
        self.status_at = AWAKE.now()
        self.attempts[-1]["load"] = self.load.look()
        ((unit, amount),) = self.experiment.budget.items()
        first: StatusFile = {
            "id": self.attempt.identity.id,
            "fingerprint": self.attempt.identity.fingerprint,
            "status": status,
            "budget": {unit: amount},
        }
        reached = {key: value for key, value in self.row.items() if not key.startswith("seconds_")}
        others: StatusFile = {
            "eta_seconds": self.progress.eta(getattr(state, unit)),
            "archive": self.archive,
            "seconds": state.seconds,
            "engine": self.engine.name,
            "workers": self.engine.workers,
            "updated": now(),
            "attempts": self.attempts,
            **self.accepted,
        }
        if self.experiment.has_own_modules:
            others["sources"] = self.sources
        named = {"own_metrics": self.own.columns} if self.own.columns else {}
        # The first ones again, because a user's algorithm may return metrics of any name.
        write_status(self.files, {**first, **reached, **named, **others, **first})

    @contextmanager
    def recording(self, state: State) -> Iterator[None]:
        """Saves the state after the loop, and records in status and log how the loop ended."""
        self.saver.watch_wall_time()
        self.write_status(state, "running")
        try:
            yield
        except (Interrupted, EvaluationFailed, Hanging, NoWorkers, WorkerDied) as error:
            # These errors are raised while solutions are evaluated, when the state is consistent.
            self.saver.save(state)
            stopped = isinstance(error, Interrupted)
            self._end(state, "stopped" if stopped else "failed", str(error))
            log.info("saved in iteration %d", state.iterations + 1)
            raise
        except BaseException as error:
            with contextlib.suppress(OSError):  # a full disk must not hide the error
                self._end(state, "failed", f"{type(error).__name__}: {error}")
            raise
        else:
            self.saver.save(state)
            self._write_results(state)
            self._end(state, "finished", "finished")
            self.progress.plot()
            log.info("finished: %s", self.progress.line(self.row))
        finally:
            self.own.report()
            self.metrics.close()
            self.history.close()
            self.progress.close()

    def _end(self, state: State, status: str, how: str) -> None:
        self.attempts[-1] |= {"ended": now(), "how": how, "iteration": state.iterations}
        self.write_status(state, status)

    def _write_results(self, state: State) -> None:
        """Writes archive.npz and summary.json, and removes files that are no longer needed."""
        self.attempts[-1] |= {"ended": now(), "how": "finished", "iteration": state.iterations}
        about: Summary = {
            "status": "finished",
            "versions": all_versions(self.versions, self.engine.name),
            "image": image(),
            "engine": self.engine.name,
            "workers": self.engine.workers,
            "attempts": self.attempts,
            "stochastic": self.stochastic,
        }
        if self.own.sources or self.experiment.has_own_modules:
            about["sources"] = self.own.sources | self.sources
        if "accepted" in self.accepted:
            about["accepted"] = self.accepted["accepted"]
        own = {name: self.row.get(name) for name in self.own.columns}
        self.history.finish()  # first, because with summary.json the run counts as finished
        summary = write_results(
            self.files, self.attempt.identity, self.experiment, self.domain, state, about, own
        )
        count = summary["objectives_outside"]
        if any(count.values()):
            log.warning(
                "of %d elites, %d are below objective_range %s and %d are above it. Elites below it"
                " count as negative in the QD score",
                summary["num_elites"],
                count["below"],
                summary["archive"]["objective_range"],
                count["above"],
            )
        self.files.seal()
        for superfluous in (self.files.partial.path, self.files.workers):
            shutil.rmtree(superfluous, ignore_errors=True)
        reload.keep_only(self.files, [self.saver.path])


def now() -> str:
    """Returns the current time in the format of the files."""
    return datetime.now(UTC).isoformat(timespec="seconds")
