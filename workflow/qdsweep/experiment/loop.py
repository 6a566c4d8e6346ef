"""The QD loop: ask, evaluate, tell, and occasionally a reload file."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsweep.algorithms.base import Candidates
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Evaluation, copied
from qdsweep.engines.batch import Batch, Engine, is_repeated
from qdsweep.engines.failures import describe_failure
from qdsweep.errors import BadInput, QdsweepError
from qdsweep.experiment.compilation import compiled
from qdsweep.experiment.state import Pending, State, added, evaluation_seeds, reached
from qdsweep.experiment.stop import Stop
from qdsweep.host.clock import AWAKE

log = logging.getLogger("qdsweep")
# A run whose budget is in steps ends after this many evaluations in a row without a step.
IDLE = 1000


def run_loop(
    experiment: Experiment,
    state: State,
    engine: Engine,
    stop: Stop,
    after_iteration: Callable[[State, dict[str, float]], None],
    save_if_due: Callable[[State], float] = lambda state: 0.0,
    after_tell: Callable[[Evaluation], None] = lambda evaluation: None,
) -> None:
    """Runs an experiment from `state` to the end of its budget.

    Args:
        experiment: The experiment.
        state: Its state, changed in place. It can be saved when this function returns or raises
            `Interrupted`.
        engine: Evaluates the solutions.
        stop: Decides when to stop before the end.
        after_iteration: Writes metrics. It is called with the state and the seconds of each phase
            of the iteration.
        save_if_due: Writes a reload file if one is due, and returns the time that it took [s]. It
            is called while the workers evaluate.
        after_tell: Called with each evaluation that the algorithm has received.

    Raises:
        Interrupted: The run was asked to stop.
        EvaluationFailed: An evaluation failed and the experiment has no `on_failure`.
        Hanging: No evaluation ended within the experiment's `timeout`.
        QdsweepError: The budget is in environment steps, and none is made.
    """
    # A reload file of an earlier release has the steps of the current iteration's first batches.
    while not (state.is_between_iterations and reached(state, experiment.budget)):
        require_steps(experiment, state)
        apply_schedule(experiment, state)
        while ask(experiment, state):
            evaluate(experiment, state, engine, stop, save_if_due)
            tell(experiment, state, after_tell)
        seconds = state.end_iteration()
        after_iteration(state, seconds)


def require_steps(experiment: Experiment, state: State) -> None:
    """Refuses a budget in environment steps if they are not counted, or none is made.

    Raises:
        BadInput: The budget is in steps, but the number of steps is unknown.
        QdsweepError: The budget is in steps, and the last `IDLE` evaluations made none.
    """
    if experiment.steps is None:
        return
    if state.idle >= IDLE:
        raise QdsweepError(
            f"steps = {experiment.steps}: this budget has no end, because the last {state.idle} "
            "evaluations made no environment step. The log has their failures. Correct the domain "
            f"{experiment.domain.name}, or give evaluations or iterations instead"
        )
    if state.steps is None:
        raise BadInput(
            f"steps = {experiment.steps}: the domain {experiment.domain.name} returned no "
            "Evaluation.steps, or an earlier release, which did not count them, started the run. "
            "Give evaluations or iterations instead"
        )


def apply_schedule(experiment: Experiment, state: State) -> None:
    """Makes the changes of the schedule, if the next iteration is the first one with them.

    A reload file between two iterations does not have them yet. A reload file within an iteration
    has them.
    """
    if state.is_between_iterations:
        for key, value in experiment.changes_after(state.iterations).items():
            state.algorithm.change(key, value)
            log.info("after iteration %d: %s = %s", state.iterations, key, value)


def ask(experiment: Experiment, state: State) -> bool:
    """Asks for the iteration's next batch, and gives each solution its evaluation seed.

    Returns:
        Whether there is a batch to evaluate, either from the reload file or a new one.
    """
    if state.pending is not None:
        return True
    with timed(state.current.seconds, "ask"):
        candidates = state.algorithm.ask()
        if candidates is None:
            return False
        # The user's algorithm may return a list, or single precision.
        solutions = np.asarray(candidates.solutions)
        if experiment.algorithm.plugins:  # the user's code may use its arrays again
            solutions = _copy(solutions)
            candidates = candidates._replace(
                exploration=copied(candidates.exploration), unroll=copied(candidates.unroll)
            )
        if not (is_repeated(solutions) and solutions.dtype == np.float32):
            solutions = solutions.astype(np.float64, copy=False)
        seeds = evaluation_seeds(
            experiment.domain.evaluation_seed,
            experiment.seed,
            state.iterations,
            state.asked,
            len(solutions),
        )
        state.asked += len(solutions)
        wanted = candidates.experience, candidates.exploration, candidates.unroll
        batch = Batch(solutions, seeds, candidates.gradients, state.context, *wanted)
        state.pending = Pending.of(batch)
    return True


def _copy(solutions: NDArray[Any]) -> NDArray[Any]:
    """Returns a copy of ``(n, d)`` solutions, of which a repeated row stays one row of memory."""
    if is_repeated(solutions):
        return np.broadcast_to(solutions[:1].copy(), solutions.shape)
    return solutions.copy()


def evaluate(
    experiment: Experiment,
    state: State,
    engine: Engine,
    stop: Stop,
    save_if_due: Callable[[State], float],
) -> None:
    """Evaluates the missing rows of the pending batch, while the algorithm trains."""
    pending, seconds = state.pending, state.current.seconds
    assert pending is not None
    with timed(seconds, "evaluate") as lap, stop.interruptible(experiment.timeout):

        def meanwhile() -> None:
            with stop.deferred():
                if not state.trained:
                    state.algorithm.meanwhile()
                    state.trained = True
                lap()  # the reload file has the time until now
                took = save_if_due(state)
                seconds["reload"] += took
                seconds["evaluate"] -= took

        for rows, outcome in engine.evaluate(pending.batch, pending.missing(), meanwhile):
            with stop.deferred():  # a row and its failure belong together
                pending.put(rows, outcome.evaluation, [each.row for each in outcome.failures])
                stop.begin()
                for failure in outcome.failures:
                    log.warning("scored, not evaluated: %s", describe_failure(failure))


def tell(experiment: Experiment, state: State, after_tell: Callable[[Evaluation], None]) -> None:
    """Passes the results of the pending batch to the algorithm, and updates the context."""
    assert state.pending is not None
    current = state.current
    with timed(current.seconds, "tell"):
        batch, evaluation = state.pending.batch, state.pending.evaluation()
        if state.context is not None and evaluation.tally is not None:
            from qdsweep.domains.normalizer import merge

            join = merge if experiment.domain.merges_moments else np.add
            for tally in evaluation.tally:  # in the order of the rows, whichever worker was first
                state.context = join(state.context, tally)
        wanted = batch.experience, batch.exploration, batch.unroll
        candidates = Candidates(batch.solutions, batch.gradients, batch.seeds, *wanted)
        told = copied(evaluation._replace(jacobian=None, experience=None))
        state.algorithm.tell(candidates, evaluation)  # the user's code may write into it
        steps = told.steps
        current.steps = added(current.steps, None if steps is None else int(steps.sum()))
        current.failures += int(state.pending.failed.sum())
        state.pending = None
        after_tell(told)


@contextmanager
def timed(seconds: dict[str, float], phase: str) -> Iterator[Callable[[], None]]:
    """Adds the time of the block to a phase, without numba's compilation.

    Yields:
        A function that adds the time so far.
    """
    start, before = AWAKE.now(), compiled()

    def lap() -> None:
        nonlocal start, before
        now, total = AWAKE.now(), compiled()
        seconds["compile"] += total - before
        seconds[phase] += now - start - (total - before)
        start, before = now, total

    try:
        yield lap
    finally:
        lap()
