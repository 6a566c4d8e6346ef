"""How a batch is cut into parts for workers."""

from collections import deque

from qdsweep.engines.base import cut

PER_WORKER = 2
SECONDS = 0.25


class Parts:
    """The rows that wait for a worker, given out in parts of some tenths of a second.

    Parts shrink towards the end of a batch, so that no worker waits long for the last one
    (guided self-scheduling, Polychronopoulos and Kuck 1987). How long a row takes is remembered
    from one batch to the next.
    """

    def __init__(self) -> None:
        self._waiting: deque[slice] = deque()
        self._row_seconds: float | None = None

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def begin(self, rows: list[slice]) -> None:
        """Takes the rows of a batch, in the place of what is left of the last one."""
        self._waiting = deque(rows)

    def give_back(self, part: slice) -> None:
        """Takes back a part whose worker was lost."""
        self._waiting.appendleft(part)

    def learn(self, part: slice, seconds: float) -> None:
        """Notes how long a part took [s]."""
        self._row_seconds = seconds / (part.stop - part.start)

    def take(self, workers: int) -> slice:
        """Takes the next part.

        Args:
            workers: How many workers share what is left.
        """
        left = sum(part.stop - part.start for part in self._waiting)
        size = -(-left // (PER_WORKER * workers))
        if self._row_seconds is None:
            size = 1  # nothing is known yet
        elif self._row_seconds > 0:
            size = min(size, int(SECONDS / self._row_seconds))
        rows = self._waiting.popleft()
        part, *rest = cut([rows], max(1, size))
        if rest:
            self._waiting.appendleft(slice(rest[0].start, rows.stop))
        return part
