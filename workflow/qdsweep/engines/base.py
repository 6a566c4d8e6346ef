"""What an engine is: it evaluates a batch, in parts, somewhere."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from qdsweep.domains.base import Domain, Evaluation, Floats, Seeds

if TYPE_CHECKING:
    from qdsweep.engines.failures import Outcome


class Batch(NamedTuple):
    """Solutions to evaluate.

    Attributes:
        solutions: ``(n, d)`` solutions.
        seeds: ``(n,)`` their evaluation seeds.
        gradients: Whether the jacobian is wanted too.
    """

    solutions: Floats
    seeds: Seeds
    gradients: bool = False

    def part(self, rows: slice) -> "Batch":
        """Some of the rows."""
        return Batch(self.solutions[rows], self.seeds[rows], self.gradients)


class Engine(Protocol):
    """Evaluates batches. The result of a row depends on nothing but the row.

    Attributes:
        name: As the cluster config calls it.
        workers: Number of workers, each on one core.
    """

    name: str
    workers: int

    def evaluate(self, batch: Batch, rows: list[slice]) -> Iterator[tuple[slice, "Outcome"]]:
        """Evaluates some rows of a batch and yields them in parts, in any order.

        Args:
            batch: The whole batch.
            rows: What of it is to be evaluated.

        Raises:
            EvaluationFailed: An evaluation failed, and the experiment has no `on_failure`.
        """
        ...

    def close(self) -> None:
        """Ends the workers."""
        ...


def evaluate(domain: Domain, batch: Batch) -> Evaluation:
    """Evaluates a batch here and now, with the jacobian where it is wanted."""
    result = domain.evaluate(batch.solutions, batch.seeds)
    if batch.gradients:
        result = result._replace(jacobian=domain.jacobian(batch.solutions))  # type: ignore[attr-defined]
    return result


def cut(rows: list[slice], size: int) -> list[slice]:
    """Cuts slices into slices of at most `size` rows."""
    return [
        slice(start, min(start + size, part.stop))
        for part in rows
        for start in range(part.start, part.stop, size)
    ]
