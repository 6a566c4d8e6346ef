"""The interface of an engine, which evaluates a batch in parts, here or elsewhere."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from qdsweep.domains.base import Evaluation, Exploration, Floats, Seeds, Unroll


class Batch(NamedTuple):
    """Solutions to evaluate.

    Attributes:
        solutions: ``(n, d)`` solutions. One policy for all rows may be in single precision.
        seeds: ``(n,)`` their evaluation seeds.
        gradients: Whether to also compute the jacobian.
        context: ``(k,)`` context of the run, if the domain has one.
        experience: Whether to also return a record of each row.
        exploration: How the policies explore; None for greedy ones.
        unroll: The episodes that rows continue; None where all play whole ones.

    Example:
        A worker evaluates a part, whose rows keep their seeds:

        >>> import numpy as np
        >>> from qdsweep.engines.batch import Batch
        >>> batch = Batch(np.zeros((6, 2)), np.arange(6, dtype=np.uint32))
        >>> batch.part(slice(2, 5)).seeds
        array([2, 3, 4], dtype=uint32)
    """

    solutions: Floats
    seeds: Seeds
    gradients: bool = False
    context: Floats | None = None
    experience: bool = False
    exploration: Exploration | None = None
    unroll: Unroll | None = None

    def part(self, rows: slice) -> "Batch":
        """Returns the batch of a slice of the rows."""
        part = self._replace(solutions=self.solutions[rows], seeds=self.seeds[rows])
        if self.unroll is not None:
            part = part._replace(unroll=self.unroll.part(rows))
        if self.exploration is None:
            return part
        return part._replace(exploration=self.exploration.part(rows))

    def __reduce__(self) -> tuple[Callable[..., "Batch"], tuple[Any, ...]]:
        """Pickles one policy for all episodes (a broadcast row) only once."""
        solutions, *rest = self
        if is_repeated(solutions):
            return _repeated, (len(solutions), solutions[:1].copy(), *rest)
        return Batch, tuple(self)


def is_repeated(solutions: NDArray[Any]) -> bool:
    """Returns whether the rows ``(n, d)`` are one row of memory."""
    return len(solutions) > 1 and solutions.strides[0] == 0


def _repeated(count: int, solution: Floats, *rest: Any) -> Batch:
    return Batch(np.broadcast_to(solution, (count, solution.shape[1])), *rest)


class Failure(NamedTuple):
    """A solution whose evaluation failed.

    Attributes:
        row: Its row in the batch.
        seed: Its evaluation seed.
        solution: ``(d,)`` the solution.
        problem: The error, in one line.
        trace: The traceback, or an empty text.
        worker: Host and process that evaluated it.
        lacks: What the machine lacks, such as "memory", if the solution is not the cause.

    Example:
        >>> import numpy as np
        >>> from qdsweep.engines.batch import Batch
        >>> from qdsweep.engines.failures import EvaluationFailed
        >>> from qdsweep.engines.pool import Serial
        >>> class Broken:
        ...     def evaluate(self, solutions, seeds):
        ...         raise MemoryError
        >>> batch = Batch(np.zeros((1, 2)), np.array([7], np.uint32))
        >>> try:
        ...     list(Serial(Broken(), timeout=0.1).evaluate(batch, [slice(0, 1)]))
        ... except EvaluationFailed as error:
        ...     print(error.failure.row, error.failure.seed, error.failure.lacks)
        0 7 memory
    """

    row: int
    seed: int
    solution: Floats
    problem: str
    trace: str
    worker: str
    lacks: str = ""


class Outcome(NamedTuple):
    """Results of some rows.

    Attributes:
        evaluation: The results.
        failures: The failures of rows that were scored by `on_failure`.
        seconds: The time of the evaluations [s].

    Example:
        With `on_failure`, here -1.0, a failed solution is scored:

        >>> import numpy as np
        >>> from qdsweep.engines.batch import Batch
        >>> from qdsweep.engines.failures import evaluate_safely
        >>> class Broken:
        ...     measures, fields = {"x": (0.0, 1.0)}, {}
        ...
        ...     def evaluate(self, solutions, seeds):
        ...         raise ValueError("the robot fell over")
        >>> outcome = evaluate_safely(Broken(), Batch(np.zeros((1, 2)), np.zeros(1)), 0, -1.0)
        >>> outcome.evaluation.objective, len(outcome.failures)
        (array([-1.]), 1)
    """

    evaluation: Evaluation
    failures: list[Failure]
    seconds: float


class Answer(NamedTuple):
    """The answer of a worker to a part.

    Attributes:
        result: The results, or the failed evaluation if the experiment has no `on_failure`, or if
            the machine lacks something.
        lines: The worker's output and log since its last answer.
        worker: Its name in the run's log.

    Example:
        >>> import numpy as np
        >>> from qdsweep.engines.batch import Answer, Failure
        >>> failure = Failure(0, 7, np.zeros(2), "MemoryError", "", "process 9 on node1", "memory")
        >>> Answer(failure, ["loading the map"], "node1-9").lacks
        'memory'
    """

    result: Outcome | Failure
    lines: list[str]
    worker: str

    @property
    def lacks(self) -> str:
        """What the worker's machine lacks; empty if nothing."""
        return self.result.lacks if isinstance(self.result, Failure) else ""


def nothing() -> None:
    """Does nothing. It is the default for `meanwhile`."""


class Engine(Protocol):
    """Evaluates batches. The result of a row depends only on the row.

    Attributes:
        name: Its name in the cluster config.
        workers: Number of workers, each on one core. If the number changes, it is the largest so
            far.

    Example:
        The engine of one process evaluates a batch in growing parts:

        >>> import numpy as np
        >>> from qdsweep.config.compose import read_domain
        >>> from qdsweep.domains import make_domain
        >>> from qdsweep.engines.batch import Batch
        >>> from qdsweep.engines.pool import Serial
        >>> domain = make_domain(read_domain("lp_sphere"))
        >>> batch = Batch(np.zeros((7, domain.solution_dim)), np.zeros(7, np.uint32))
        >>> [rows for rows, outcome in Serial(domain).evaluate(batch, [slice(0, 7)])]
        [slice(0, 1, None), slice(1, 3, None), slice(3, 7, None)]
    """

    name: str

    @property
    def workers(self) -> int:
        """See above."""
        ...

    def wait(self) -> None:
        """Waits until a worker is ready.

        Raises:
            NoWorkers: No worker came in time.
        """
        ...

    def evaluate(
        self, batch: Batch, rows: list[slice], meanwhile: Callable[[], None] = nothing
    ) -> Iterator[tuple[slice, Outcome]]:
        """Evaluates some rows of a batch and yields them in parts, in any order.

        Args:
            batch: The whole batch.
            rows: The rows to evaluate.
            meanwhile: Called once, as soon as the workers are busy. It costs no time if they are
                other processes.

        Raises:
            EvaluationFailed: An evaluation failed, and the experiment has no `on_failure`. Or the
                machine lacks something for it, also at the last try.
        """
        ...

    def close(self) -> None:
        """Ends the workers."""
        ...


def cut_rows(rows: list[slice], size: int) -> list[slice]:
    """Divides slices into slices of at most `size` rows."""
    return [
        slice(start, min(start + size, part.stop))
        for part in rows
        for start in range(part.start, part.stop, size)
    ]
