"""Starts a run: settings before numpy, the lock, the log, the exit code."""

import logging
import sys
from pathlib import Path

from qdsweep.config.cluster import Cluster
from qdsweep.config.experiment import Experiment
from qdsweep.cpu import apply_baseline
from qdsweep.errors import BadInput, QdsweepError
from qdsweep.experiment.lock import Lock, describe, this_process
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.sweep.ids import run_id

STOPPED = 75  # EX_TEMPFAIL: the same command goes on


def start(
    experiment: Experiment,
    out: Path,
    cluster: Cluster,
    *,
    terminal: bool,
    allow_version_change: bool = False,
) -> int:
    """Computes a run and returns the exit code.

    Args:
        experiment: The experiment.
        out: The run's folder.
        cluster: Where it is computed.
        terminal: Whether a person is watching: log there too, and draw a bar on a terminal.
        allow_version_change: Go on from a reload file of other library versions.

    Returns:
        0 finished, 75 stopped on purpose.

    Raises:
        QdsweepError: It failed; the message says why.
    """
    apply_baseline(experiment.cpu_baseline)
    from qdsweep.experiment.outputs import publish, read_json
    from qdsweep.experiment.report import start_log

    folder = out / "state"
    with Stop() as stop:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"--out {out}: the folder cannot be made ({error})") from None
        with Lock(folder / "lock"):
            start_log(folder / "run.log", terminal=terminal)
            log = logging.getLogger("qdsweep")
            log.info("%s, %s", run_id(experiment), describe(this_process()))
            log.info("budget: %s", " ".join(f"{n} {unit}" for unit, n in experiment.budget.items()))
            try:
                if _is_finished(experiment, read_json(folder / "summary.json")):
                    log.info("is finished already: nothing to compute")
                    return 0
                from qdsweep.experiment.run import compute  # imports ribs: seconds

                compute(
                    experiment,
                    out,
                    cluster,
                    stop,
                    allow_version_change=allow_version_change,
                    bar=terminal and sys.stderr.isatty(),
                )
            except Interrupted:
                return STOPPED
            except QdsweepError as error:
                log.error("%s", error)
                raise
            except Exception as error:
                log.exception("an error that was not foreseen:")
                raise QdsweepError(
                    f"{type(error).__name__}: {error} (the traceback is in {folder / 'run.log'})"
                ) from error
            finally:
                publish(out)
    return 0


def _is_finished(experiment: Experiment, summary: dict[str, object]) -> bool:
    """Whether the results in state/ are of this experiment and at least of this budget."""
    if summary.get("id") != run_id(experiment):
        return False
    return all(int(str(summary[unit])) >= n for unit, n in experiment.budget.items())
