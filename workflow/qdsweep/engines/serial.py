"""The serial engine: evaluates in the main process."""

import time
from collections.abc import Iterator

from qdsweep.domains.base import Domain, Evaluation
from qdsweep.engines.base import Batch, cut, evaluate

# Long enough that cutting costs nothing, short enough to save often and to stop at once.
PART_SECONDS = 0.5


class Serial:
    """Evaluates part by part; the parts grow until one takes about half a second."""

    name = "serial"
    workers = 1

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self._size = 1

    def evaluate(self, batch: Batch, rows: list[slice]) -> Iterator[tuple[slice, Evaluation]]:
        """See `Engine.evaluate`."""
        waiting = list(reversed(rows))
        while waiting:
            part, *rest = cut([waiting.pop()], self._size)
            if rest:
                waiting.append(slice(rest[0].start, rest[-1].stop))
            start = time.perf_counter()
            result = evaluate(self.domain, batch.part(part))
            seconds = time.perf_counter() - start
            if seconds < PART_SECONDS / 2:
                self._size *= 2
            elif seconds > 2 * PART_SECONDS:
                self._size = max(1, self._size // 2)
            yield part, result

    def close(self) -> None:
        """Nothing to end."""
