"""Finds the row of a failed evaluation. The run then stops or scores the row (`on_failure`)."""

import os
import re
import socket
import time
import traceback
from errno import EAGAIN, EDQUOT, EMFILE, ENFILE, ENOMEM, ENOSPC
from typing import Any, NamedTuple

import numpy as np

from qdsweep.domains.base import (
    Domain,
    Evaluation,
    Floats,
    concatenate,
    copied,
    evaluated,
    real_numbers,
)
from qdsweep.domains.experience import find_fault, find_fault_of_unroll, read_record
from qdsweep.engines.batch import Batch, Failure, Outcome
from qdsweep.errors import QdsweepError, raised

# A part that has lost this many workers (out of memory, a crash in C) ends the run. So does a
# solution for which the machine lacks something this many times.
MAX_LOSSES = 3


class Shortage(NamedTuple):
    """Something that a machine may lack for an evaluation.

    Attributes:
        numbers: The system's errors.
        texts: Texts of other errors, in lower case.
        remedy: The advice to the user.
    """

    numbers: tuple[int, ...]
    texts: tuple[str, ...]
    remedy: str


# What is lacking -> how it shows. It does not depend on the solution, so `on_failure` must not
# score it.
SHORTAGES = {
    "memory": Shortage(
        (ENOMEM,),
        ("out of memory", "not enough memory", "bad_alloc", "t allocate memory"),
        "Give a worker more memory (mem_mb_per_worker), or use fewer workers",
    ),
    "disk space": Shortage(
        (ENOSPC, EDQUOT), (), "Free space or quota where the domain writes, or set TMPDIR"
    ),
    "file handles": Shortage(
        (EMFILE, ENFILE), (), "Close files in the domain, or raise the limit (ulimit -n)"
    ),
    "processes or threads": Shortage(
        (EAGAIN,), ("can't start new thread",), "Use fewer workers, or raise the limit (ulimit -u)"
    ),
}


def lacking(error: BaseException) -> str:
    """Returns what the machine lacks according to an error or its causes; empty if nothing."""
    chain: list[BaseException | None] = [error]
    for cause in chain:  # which grows
        if cause is None:
            continue
        for what, shortage in SHORTAGES.items():
            if _is_of(cause, what, shortage):
                return what
        causes = (cause.__cause__, cause.__context__, *getattr(cause, "exceptions", ()))
        chain += [each for each in causes if not any(each is known for known in chain)]
    return ""


def _is_of(error: BaseException, what: str, shortage: Shortage) -> bool:
    if isinstance(error, MemoryError):
        return what == "memory"
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in shortage.numbers
    text = str(error).lower()
    names = (os.strerror(number).lower() for number in shortage.numbers)
    return any(part in text for part in (*shortage.texts, *names))


def describe_failure(failure: Failure) -> str:
    """Returns a failure in one line."""
    return (
        f"solution {failure.row} of the batch (evaluation seed {failure.seed}, "
        f"{failure.worker}): {failure.problem}"
    )


class EvaluationFailed(QdsweepError):
    """An evaluation failed and the experiment has no `on_failure`, or the machine lacks something.

    In the second case it may succeed later or elsewhere.
    """

    def __init__(self, failure: Failure) -> None:
        message = describe_failure(failure)
        if failure.lacks:
            message = (
                f"this machine lacks {failure.lacks} for {message}. The part had only this row. "
                f"{SHORTAGES[failure.lacks].remedy}. The same command resumes"
            )
        super().__init__(message)
        self.failure = failure

    def __reduce__(self) -> Any:
        return EvaluationFailed, (self.failure,)


class NoWorkers(QdsweepError):
    """No worker came, or all were lost. Another attempt may succeed."""


class UnfitWorker(NoWorkers):
    """A worker cannot work for the run, and neither can similar workers."""


class WorkerFailed(QdsweepError):
    """A worker's own code failed, not an evaluation."""


class WorkerLost(Exception):
    """A worker died or cannot be reached. Another worker evaluates its part."""


class WorkerDied(QdsweepError):
    """Restarted workers die again.

    Attributes:
        is_crash: Whether the last one ended its process or crashed, and was not killed.
    """

    def __init__(self, losses: int, row: int, lost: str) -> None:
        # Short notes omit what is in parentheses.
        last = re.sub(r" \((exit code \d+|SIG\w+)\)$", r" with \1", lost)
        super().__init__(
            f"a worker died {losses} times in one batch (while it evaluated solutions {row} and "
            f"later), at last {last}. Usual causes: out of memory, a crash in a library of the "
            "domain, os._exit"
        )
        self.is_crash = re.search(r"\((exit code|SIG(?!KILL|TERM))", lost) is not None


def evaluate_safely(
    domain: Domain, batch: Batch, first: int, objective_on_failure: float | None
) -> Outcome:
    """Evaluates rows. If it fails, it finds the failing row by evaluating rows one by one.

    Args:
        domain: The domain.
        batch: The rows.
        first: The row of the whole batch at which this batch starts, for messages.
        objective_on_failure: The objective of a failed solution, or None to raise. Its measures
            are the lower ends of their ranges, and its fields and gradients are 0.

    Raises:
        EvaluationFailed: An evaluation failed and there is no `objective_on_failure`, or the
            machine lacks something.
    """
    start, lacks = time.perf_counter(), ""
    try:
        result = evaluate_here(domain, batch)
        problem = find_problem(domain, batch, result)
    except (Exception, SystemExit) as error:
        problem, lacks = " ".join(raised(error).split()), lacking(error)
        trace = traceback.format_exc()
    else:
        if problem is None:
            return Outcome(result, [], time.perf_counter() - start)
        trace = ""
    count = len(batch.solutions)
    if count > 1:  # rows are independent, so one at a time gives the same results
        parts = [
            evaluate_safely(domain, batch.part(slice(i, i + 1)), first + i, objective_on_failure)
            for i in range(count)
        ]
        return Outcome(
            concatenate([part.evaluation for part in parts]),
            [failure for part in parts for failure in part.failures],
            time.perf_counter() - start,
        )
    failure = Failure(
        first,
        int(batch.seeds[0]),
        batch.solutions[0].copy(),
        problem,
        trace,
        f"process {os.getpid()} on {socket.gethostname()}",
        lacks,
    )
    if objective_on_failure is None or lacks:
        raise EvaluationFailed(failure)
    scored = _scored(domain, batch, objective_on_failure)
    return Outcome(scored, [failure], time.perf_counter() - start)


def evaluate_here(domain: Domain, batch: Batch) -> Evaluation:
    """Evaluates a batch in this process, with the jacobian if the batch asks for it."""
    # The user's code may write into what it gets, and use its own arrays again.
    own = not type(domain).__module__.startswith("qdsweep.")
    seeds = copied(batch.seeds) if own else batch.seeds
    context = copied(batch.context) if own else batch.context
    wanted: dict[str, Any] = {"experience": True} if batch.experience else {}
    if batch.exploration is not None:
        wanted["exploration"] = copied(batch.exploration) if own else batch.exploration
    if batch.unroll is not None:
        wanted["unroll"] = copied(batch.unroll) if own else batch.unroll
    more = () if context is None else (context,)
    result = evaluated(domain.evaluate(_given(batch, own=own), seeds, *more, **wanted))
    # Every part is float64. Otherwise the first part would decide the type of the batch.
    evaluation = Evaluation(
        _floats("objective", result.objective),
        _floats("measures", result.measures),
        {name: _floats(name, values) for name, values in result.fields.items()},
        tally=None if batch.context is None else _floats("tally", result.tally),
        experience=[
            read_record(copied(record) if own else record, domain.actor.kind)  # type: ignore[attr-defined]
            for record in result.experience or ()
        ]
        if batch.experience
        else None,
        steps=None if result.steps is None else np.asarray(result.steps).astype(np.int64),
    )
    if not batch.gradients:
        return evaluation
    jacobian = domain.jacobian(_given(batch, own=own))  # type: ignore[attr-defined]
    return evaluation._replace(jacobian=_floats("jacobian", jacobian))


def _given(batch: Batch, *, own: bool) -> Floats:
    """Returns the read-only solutions of a batch, for the user's `own` code as a copy."""
    # One policy for all episodes is a broadcast row. Domains get an ordinary array.
    solutions = np.ascontiguousarray(batch.solutions, dtype=np.float64)
    solutions = solutions.copy() if own else solutions.view()
    solutions.flags.writeable = False  # the arrays belong to the emitters
    return solutions


def _floats(name: str, values: Any) -> Floats:
    return real_numbers(name, values).astype(np.float64)


def find_problem(domain: Domain, batch: Batch, result: Evaluation) -> str | None:
    """Returns the fault in a result's shapes or numbers, or None."""
    count, measures = len(batch.solutions), len(domain.measures)
    expected: dict[str, tuple[Any, tuple[int, ...]]] = {
        "objective": (result.objective, (count,)),
        "measures": (result.measures, (count, measures)),
    }
    if batch.gradients:
        expected["jacobian"] = (result.jacobian, (count, 1 + measures, domain.solution_dim))
    if batch.context is not None:
        expected["tally"] = (result.tally, (count, len(batch.context)))
    if result.steps is not None:
        expected["steps"] = (result.steps, (count,))
    if batch.experience:
        if len(result.experience or ()) != count:
            return f"experience is not {count} records, one per row"
        for record in result.experience or ():
            fault = find_fault(record, domain.actor)  # type: ignore[attr-defined]
            if fault:
                return f"experience: {fault}"
    if batch.unroll is not None and (fault := find_fault_of_unroll(result, batch.unroll)):
        return f"experience: {fault}"
    for name, shape in domain.fields.items():
        if name not in result.fields:
            return f"the field {name} is missing"
        expected[name] = (result.fields[name], (count, *shape))
    for name, (values, wanted) in expected.items():
        if np.shape(values) != wanted:
            return f"{name} has the shape {np.shape(values)}, not {wanted}"
        if not np.isfinite(values).all():
            return f"{name} is NaN or infinite"
    return None


def _scored(domain: Domain, batch: Batch, objective: float) -> Evaluation:
    lowest = [low for low, _ in domain.measures.values()]
    return Evaluation(
        np.array([objective]),
        np.array([lowest]),
        {name: np.zeros((1, *shape)) for name, shape in domain.fields.items()},
        np.zeros((1, 1 + len(lowest), domain.solution_dim)) if batch.gradients else None,
        None if batch.context is None else np.zeros((1, len(batch.context))),
        [None] if batch.experience else None,
    )
