"""The state of a run, from which it resumes bit for bit."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsweep.algorithms.base import Algorithm, Cells
from qdsweep.domains.base import Evaluation, Floats, Record, Seeds
from qdsweep.engines.batch import Batch
from qdsweep.metrics import PHASES


@dataclass
class Pending:
    """A batch of solutions whose results the algorithm has not received.

    Attributes:
        batch: The solutions.
        done: ``(n,)`` whether a row is evaluated.
        failed: ``(n,)`` whether its evaluation failed and was scored.
        results: Name -> ``(n, ...)`` array, undefined in rows that are not done.
        experience: Row -> its record, if experience is requested. A failed row has no record.
    """

    batch: Batch
    done: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    results: dict[str, NDArray[Any]] = field(default_factory=dict)
    experience: dict[int, Record] = field(default_factory=dict)

    @classmethod
    def of(cls, batch: Batch) -> "Pending":
        """Returns a batch without any results."""
        done, failed = np.zeros((2, len(batch.solutions)), dtype=bool)
        return cls(batch, done, failed)

    def put(self, rows: slice, evaluation: Evaluation, failed: Iterable[int] = ()) -> None:
        """Stores the results of some rows, of which those in `failed` are only scored."""
        for name, values in _named(evaluation).items():
            if name not in self.results:
                shape = (len(self.done), *values.shape[1:])
                self.results[name] = np.zeros(shape, dtype=values.dtype)
            self.results[name][rows] = values
        for row, record in enumerate(evaluation.experience or (), start=rows.start):
            if record is not None:
                self.experience[row] = record
        self.failed[list(failed)] = True
        self.done[rows] = True  # last, so that interrupted rows are evaluated again

    def evaluation(self) -> Evaluation:
        """Returns the results of all rows. A failed row has made no environment steps."""
        assert self.done.all(), "an engine has lost some rows"
        fields = dict(self.results)
        records = None
        if self.batch.experience:
            records = [self.experience.get(row) for row in range(len(self.done))]
        if self.failed.all():
            fields.setdefault("steps", np.zeros(len(self.done), dtype=np.int64))
        return Evaluation(
            fields.pop("objective"),
            fields.pop("measures"),
            fields,  # the remaining arrays
            jacobian=fields.pop("jacobian", None),
            tally=fields.pop("tally", None),
            experience=records,
            steps=fields.pop("steps", None),
        )

    def missing(self) -> list[slice]:
        """The rows without results, as slices in order."""
        edges = np.flatnonzero(np.diff(np.concatenate(([True], self.done, [True]))))
        return [slice(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def _named(evaluation: Evaluation) -> dict[str, NDArray[Any]]:
    named: dict[str, NDArray[Any]] = {
        "objective": evaluation.objective,
        "measures": evaluation.measures,
        **evaluation.fields,
    }
    if evaluation.jacobian is not None:
        named["jacobian"] = evaluation.jacobian
    if evaluation.tally is not None:
        named["tally"] = evaluation.tally
    if evaluation.steps is not None:
        named["steps"] = evaluation.steps
    return named


def no_seconds() -> dict[str, float]:
    """Returns zero seconds for each phase of an iteration and for compilation."""
    return dict.fromkeys((*PHASES, "compile"), 0.0)


def added(before: int | None, more: int | None) -> int | None:
    """Returns the sum of environment steps; None if some are unknown."""
    return None if before is None or more is None else before + more


@dataclass
class Current:
    """What the current iteration has taken so far.

    Attributes:
        seconds: Time by phase and for compilation [s].
        steps: Environment steps of its batches that the algorithm has received; None if unknown.
        failures: Evaluations of these batches that failed and were scored.
        elites: What the history needs of the elites that it has changed, see `Changes.before`.
    """

    seconds: dict[str, float] = field(default_factory=no_seconds)
    steps: int | None = 0
    failures: int = 0
    elites: tuple[Cells, Floats] | None = None


@dataclass
class State:
    """The content of a reload file.

    Attributes:
        algorithm: The algorithm, with its archives and generators.
        iterations: Finished iterations.
        evaluations: Evaluated solutions of the finished iterations.
        steps: Environment steps of the finished iterations; None if the domain, or an earlier
            release, did not count them.
        asked: Number of solutions in all batches of the current iteration.
        trained: Whether `meanwhile` of the algorithm was called in this iteration.
        failures: Number of evaluations of the finished iterations that failed and were scored.
        pending: The current batch, or None between two iterations.
        seconds: Time of the finished iterations, by phase and for compilation [s].
        current: What the current iteration has taken so far.
        idle: Number of evaluations since the last environment step.
        context: ``(k,)`` context that the domain has learned from all evaluations, if it has one.
        `told`: The evaluations of the current iteration, if the user has metrics.
    """

    algorithm: Algorithm
    iterations: int = 0
    evaluations: int = 0
    steps: int | None = None
    asked: int = 0
    trained: bool = False
    failures: int = 0
    pending: Pending | None = None
    seconds: dict[str, float] = field(default_factory=no_seconds)
    current: Current = field(default_factory=Current)
    idle: int = 0
    context: Floats | None = None
    told: list[Evaluation] = field(default_factory=list)

    @property
    def is_between_iterations(self) -> bool:
        """Whether the next iteration has not started."""
        return self.pending is None and not self.asked

    @property
    def told_evaluations(self) -> int:
        """Evaluations of the current iteration that the algorithm has received."""
        return self.asked - (0 if self.pending is None else len(self.pending.done))

    def end_iteration(self) -> dict[str, float]:
        """Counts a finished iteration, and returns its seconds by phase and for compilation."""
        current, self.current = self.current, Current()
        self.iterations += 1
        self.evaluations += self.asked
        self.steps = added(self.steps, current.steps)
        self.failures += current.failures
        self.idle = 0 if current.steps else self.idle + self.asked
        self.asked, self.trained = 0, False
        return current.seconds


def evaluation_seeds(policy: str | int, seed: int, iteration: int, first: int, count: int) -> Seeds:
    """Returns the seeds of an iteration's evaluations.

    They depend on the experiment's seed, the iteration and the index of the solution, never on
    the worker that evaluates it. There is one SeedSequence per iteration, because one per solution
    costs a hundred times more.

    Args:
        policy: "fixed" (one for all), "iteration" (one per iteration), "solution" (one each), or
            a number for every evaluation.
        seed: The experiment's seed.
        iteration: The iteration, from 0.
        first: Index of the first solution within the iteration.
        count: Number of solutions.

    Returns:
        ``(count,)`` uint32 seeds.
    """
    if isinstance(policy, int):
        return np.full(count, policy, dtype=np.uint32)
    sequence = np.random.SeedSequence(seed, spawn_key=(1, 0 if policy == "fixed" else iteration))
    if policy == "solution":
        return sequence.generate_state(first + count)[first:].astype(np.uint32)
    return np.repeat(sequence.generate_state(1).astype(np.uint32), count)


def reached(state: State, budget: dict[str, int]) -> bool:
    """Returns whether a run has used its budget."""
    return all((getattr(state, unit) or 0) >= amount for unit, amount in budget.items())


def measure(state: State) -> dict[str, Any]:
    """Returns the metrics of the result archive after the last finished iteration.

    A user's algorithm does not keep that archive if its iterations have several batches. Between
    two of them, the metrics are those of the present archive, with all evaluations that are in it.
    """
    before, evaluations, steps = state.algorithm.before, state.evaluations, state.steps
    if before is None:
        evaluations += state.told_evaluations
        steps = added(steps, state.current.steps)
    return {
        "iteration": state.iterations,
        "evaluations": evaluations,
        "steps": steps,
        **(state.algorithm.metrics() if before is None else before.metrics),
    }


def count_failures(state: State) -> int:
    """Returns the number of failed evaluations that belongs to `measure`."""
    return state.failures + (state.current.failures if state.algorithm.before is None else 0)
