"""The QD loop: ask, evaluate, tell, and now and then a reload file."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Floats
from qdsweep.engines.base import Batch, Engine
from qdsweep.engines.failures import describe_failure
from qdsweep.experiment.state import Pending, State, evaluation_seeds, reached
from qdsweep.experiment.stop import Stop

log = logging.getLogger("qdsweep")


def search(
    experiment: Experiment,
    state: State,
    engine: Engine,
    stop: Stop,
    after_iteration: Callable[[State, dict[str, float]], None],
    save_if_due: Callable[[State], float] = lambda state: 0.0,
    told: Callable[[Floats], None] = lambda measures: None,
) -> None:
    """Runs an experiment from `state` to the end of its budget.

    Args:
        experiment: The experiment.
        state: Where it stands; it is changed in place, and can be saved whenever this returns
            or raises `Interrupted`.
        engine: Evaluates the solutions.
        stop: Says when to stop before the end.
        after_iteration: Called with the state and the seconds of each phase of the iteration;
            writes metrics.
        save_if_due: Called while the workers evaluate; writes a reload file when the time has
            come, and returns the seconds that it took.
        told: Called with the measures that the emitters were just told.

    Raises:
        Interrupted: The run was asked to stop.
        EvaluationFailed: An evaluation failed and the experiment has no `on_failure`.
        Hanging: Nothing was evaluated for the experiment's `timeout`.
    """
    # An emitter of gradients asks twice: for solutions with their jacobian, then for others.
    batches = (True, False) if experiment.algorithm.needs_jacobian else (False,)
    while not reached(state, experiment.budget):
        seconds = dict.fromkeys(("ask", "evaluate", "tell", "reload"), 0.0)

        def save(seconds: dict[str, float] = seconds) -> None:
            with stop.deferred():
                took = save_if_due(state)
            seconds["reload"] += took
            seconds["evaluate"] -= took

        for gradients in batches:
            if state.pending is None:
                with timed(seconds, "ask"):
                    state.pending = ask(experiment, state, gradients)
            pending = state.pending
            if pending.batch.gradients != gradients:
                continue  # reloaded in the second batch of the iteration
            with timed(seconds, "evaluate"), stop.interruptible(experiment.timeout):
                for rows, outcome in engine.evaluate(pending.batch, pending.missing(), save):
                    pending.put(rows, outcome.evaluation)
                    stop.progress()
                    for failure in outcome.failures:
                        state.failures += 1
                        log.warning("scored, not evaluated: %s", describe_failure(failure))
            assert pending.done.all(), "an engine has lost some rows"
            with timed(seconds, "tell"):
                tell(state, pending)
                told(pending.results["measures"])
        state.iterations += 1
        state.evaluations += state.asked
        state.asked = 0
        after_iteration(state, seconds)


def ask(experiment: Experiment, state: State, gradients: bool) -> Pending:
    """Asks the emitters for solutions and gives each its evaluation seed."""
    scheduler = state.scheduler
    solutions = scheduler.ask_dqd() if gradients else scheduler.ask()
    seeds = evaluation_seeds(
        experiment.domain.evaluation_seed,
        experiment.seed,
        state.iterations,
        state.asked,
        len(solutions),
    )
    state.asked += len(solutions)
    return Pending.of(Batch(solutions, seeds, gradients, state.context))


def tell(state: State, pending: Pending) -> None:
    """Tells the emitters the results, in the order in which they asked."""
    told = state.scheduler.tell_dqd if pending.batch.gradients else state.scheduler.tell
    results = dict(pending.results)
    if state.context is not None:
        for tally in results.pop("tally"):  # in this order, whoever evaluated what
            state.context = state.context + tally
    told(**results)
    state.pending = None


@contextmanager
def timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    """Adds the time of the block to a phase."""
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds[phase] += time.perf_counter() - start
