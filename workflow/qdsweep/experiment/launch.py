"""Starts a run: CPU settings before numpy, the lock, the log, and the exit code."""

import logging
import os
import shutil
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.config.cluster import Cluster
from qdsweep.config.experiment import Experiment
from qdsweep.config.requirements import check_installed, require_packages_of
from qdsweep.errors import STOPPED, BadInput, QdsweepError, StorageError, raised
from qdsweep.experiment.attempt import Attempt, Options
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.files import read_json_if_whole, try_to_remove
from qdsweep.host import process
from qdsweep.host.lock import Lock
from qdsweep.host.machine import apply_baseline
from qdsweep.host.owner import describe, this_process
from qdsweep.host.slurm import job_details
from qdsweep.host.wall_time import WallTime
from qdsweep.records.aside import abandoned_in, put_back
from qdsweep.records.dependencies import (
    changed_text,
    differing,
    recorded,
    refuse_other_code,
)
from qdsweep.records.metrics_file import read_rows
from qdsweep.records.paths import RunDir
from qdsweep.records.status import fingerprint_of, read_status, require_fingerprint
from qdsweep.sweep.ids import Identity

if TYPE_CHECKING:
    from qdsweep.engines.allocation import Helpers


def start(experiment: Experiment, out: Path, cluster: Cluster, options: Options) -> int:
    """Computes a run and returns the exit code.

    Args:
        experiment: The experiment.
        out: The run's folder.
        cluster: The cluster config.
        options: The options of the run.

    Returns:
        0 if it is finished, 75 if it was stopped on purpose.

    Raises:
        QdsweepError: The run failed; the message has the reason.
    """
    wall_time = WallTime(options.max_seconds)
    apply_baseline(experiment.cpu_baseline)
    out = out.absolute()  # a domain may change the working directory

    def main() -> int:
        return _start(Attempt.of(experiment, RunDir(out), cluster, options, wall_time))

    if cluster.engine_name != "mpi":
        return main()
    from qdsweep.experiment import ranks

    if process.RANKS in os.environ:
        return ranks.work_as_rank(cluster, out, main)
    try:
        put_back(RunDir(out))  # before the ranks use state/
        return ranks.start_ranks(cluster, out)
    except BadInput as error:
        if not options.terminal:
            from qdsweep.experiment.endings import record_refusal

            record_refusal(RunDir(out), error, options.attempt)
        raise


def _start(attempt: Attempt) -> int:
    run = attempt.run
    with Stop() as stop:
        try:
            put_back(run)
            run.state.path.mkdir(parents=True, exist_ok=True)
            with Lock(run.state.lock):
                _refuse_other(attempt.identity, run)
                from qdsweep.experiment.run_log import start_log

                start_log(run.state.log, terminal=attempt.options.terminal)
                code = _locked(attempt, stop)
                stop.keep_handlers()
                return code
        except OSError as error:
            raise StorageError(error, run.path) from None


def _refuse_other(identity: Identity, run: RunDir) -> None:
    """Refuses the folder of another run, before anything is written there."""
    status = read_status(run.state)
    other = status.id or identity.id
    if other != identity.id:
        raise BadInput(
            f"{run.path} is the folder of the run {other}, according to {run.state.status}, and "
            f"this run is {identity.id}. Give another --out. If you have computed no other run "
            "there, that file is damaged: remove it"
        )
    require_fingerprint(run.path, fingerprint_of(run.state, status), identity.fingerprint)


def _locked(attempt: Attempt, stop: Stop) -> int:
    log = logging.getLogger("qdsweep")
    experiment, run, options = attempt.experiment, attempt.run, attempt.options
    identity, files = attempt.identity, run.state
    log.info("%s, %s", identity.id, describe(this_process()))
    job = os.environ.get("SLURM_JOB_ID")
    if job is not None:
        log.info(
            "Slurm job %s; its log, which is removed after success: %s",
            job,
            job_details(job).get("StdOut", "unknown"),
        )
    image = process.image()
    if image is not None:
        log.info("image %s (SHA-256 %s)", image["path"], image["sha256"] or "unknown")
    log.info("budget: %s", " ".join(f"{n} {unit}" for unit, n in experiment.budget.items()))
    for at in experiment.late_changes:
        log.warning("schedule: the budget ends before the change after iteration %d", at)
    decisions = getattr(experiment.algorithm, "learning_starts", 0)
    steps = decisions * getattr(experiment.domain, "frame_skip", 1)
    if experiment.steps is not None and experiment.steps <= steps:
        log.warning(
            "the budget ends before the first gradient step (learning_starts: %d decisions)",
            decisions,
        )
    for torn in files.torn():  # a killed process left them, because this process has the lock
        torn.unlink(missing_ok=True)  # a listing may be outdated
    try_to_remove(abandoned_in(run))
    try:
        done = _done(attempt)
        if done is not None:
            log.info("the run is already finished%s: nothing to compute", done)
            if files_now := differing(recorded(files)):
                log.warning("%s since this run was computed", changed_text(files_now))
            return 0
        refuse_other_code(run)
        from qdsweep.experiment.endings import refuse_repetition, write_ending

        refuse_repetition(files, identity.fingerprint, options.attempt)
        check_installed(attempt.cluster)
        require_packages_of(experiment)
        helpers = _find_helpers(attempt.cluster, run.path)
        if options.terminal:
            log.info("writing to %s; imports and compilation take some seconds first", run.path)
        if not options.terminal:
            run.withdraw()
        try:
            from qdsweep.experiment.run import compute

            compute(attempt, stop, helpers)
        except BaseException as error:
            with suppress(OSError):  # a full disk must not hide the error
                write_ending(files, error, identity.fingerprint)
            raise
        finally:
            if helpers is not None:
                helpers.close()
    except Interrupted as interruption:
        log.warning(
            "stopped by %s and saved; the same command, or Snakemake's retry, resumes from here",
            interruption,
        )
        return STOPPED
    except QdsweepError as error:
        log.error("%s", error)
        if files.failure.exists():
            log.error("details of the failure: %s", files.failure)
        raise
    except OSError:
        raise
    except Exception as error:
        log.exception("an unexpected error:")
        raise QdsweepError(f"{raised(error)}; the traceback is in {files.log}") from error
    finally:
        shutil.rmtree(files.connection.parent, ignore_errors=True)  # also an earlier attempt's
        run.publish()
    return 0


def _find_helpers(cluster: Cluster, out: Path) -> "Helpers | None":
    """Returns the process that starts the workers during the imports, if the engine needs it."""
    if not cluster.has_helpers:
        return None
    from qdsweep.engines.allocation import Helpers, start_helpers

    # For an image, they have already been started from outside.
    return Helpers(process.host_facts().get("helpers") or start_helpers(cluster, out), out)


def _is_whole(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except Exception:  # zip and zlib raise many types of errors
        return False


def _done(attempt: Attempt) -> str | None:
    """Returns None if there is work to compute; otherwise a note on how far the results go."""
    log, files = logging.getLogger("qdsweep"), attempt.run.state
    damaged = files.damaged()
    for path in damaged:
        log.warning("%s has changed since it was written: the results are rebuilt", path)
    summary = read_json_if_whole(files.summary)
    if damaged or summary.get("id") != attempt.identity.id:
        return None
    rows = len(read_rows(files.metrics))
    if not _is_whole(files.archive) or rows < int(str(summary["iterations"])):
        log.warning("the results in %s are truncated: they are rebuilt", files.path)
        return None
    ((unit, amount),) = attempt.experiment.budget.items()
    reached = int(str(summary.get(unit) or 0))
    if reached < amount:
        return None
    return f" with a larger budget, {reached} {unit}" if reached > amount else ""
