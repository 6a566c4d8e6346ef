"""Evaluates solutions again as their run did: with its CPU settings, wherever Python started."""

from pathlib import Path
from typing import TYPE_CHECKING

import qdsweep
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Domain, Evaluation
from qdsweep.engines.base import Batch, Failure
from qdsweep.engines.failures import EvaluationFailed, WorkerLost, evaluate_safely
from qdsweep.errors import QdsweepError
from qdsweep.host.cpu import missing_settings

if TYPE_CHECKING:
    from qdsweep.engines.children import Children


def start_worker(experiment: Experiment) -> "Children | None":
    """Starts a process with the CPU settings of an experiment.

    They act when numpy is imported, which a notebook has done long before.

    Returns:
        The process; None where this one has the settings.
    """
    missing = missing_settings(experiment.cpu_baseline)
    if not missing:
        return None
    from qdsweep.engines.children import Children
    from qdsweep.engines.evaluator import Order

    directory, version = str(Path.cwd()), qdsweep.__version__
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
