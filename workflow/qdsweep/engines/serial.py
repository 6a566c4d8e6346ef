"""The serial engine: evaluates in the main process."""

from collections.abc import Callable, Iterator

from qdsweep.domains.base import Domain
from qdsweep.engines.base import Batch, Outcome, cut, nothing
from qdsweep.engines.failures import evaluate_safely

# Long enough for cutting to cost nothing, short enough to save often and to stop at once [s].
PART_SECONDS = 0.5


class Serial:
    """Evaluates part by part; the parts grow until one takes about half a second."""

    name = "serial"
    workers = 1

    def __init__(self, domain: Domain, objective_on_failure: float | None = None) -> None:
        self.domain = domain
        self.objective_on_failure = objective_on_failure
        self._size = 1

    def wait(self) -> None:
        """Returns at once: this process is the worker."""

    def evaluate(
        self, batch: Batch, rows: list[slice], meanwhile: Callable[[], None] = nothing
    ) -> Iterator[tuple[slice, Outcome]]:
        """Evaluates here; see `Engine.evaluate`."""
        meanwhile()
        waiting = list(reversed(rows))
        while waiting:
            part, *rest = cut([waiting.pop()], self._size)
            if rest:
                waiting.append(slice(rest[0].start, rest[-1].stop))
            outcome = evaluate_safely(
                self.domain, batch.part(part), part.start, self.objective_on_failure
            )
            if outcome.seconds < PART_SECONDS / 2:
                self._size *= 2
            elif outcome.seconds > 2 * PART_SECONDS:
                self._size = max(1, self._size // 2)
            yield part, outcome

    def close(self) -> None:
        """Does nothing: there is no worker to end."""
