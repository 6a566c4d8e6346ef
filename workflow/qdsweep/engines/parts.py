"""How a batch is cut into parts for workers."""

from collections import deque

from qdsweep.engines.base import cut

# Parts that a worker may have at a time: while it evaluates one, the next one is on its way. It
# has more while nobody could hand it another.
PER_WORKER = 2
# The longest part, and the shortest one while there are rows for all: each costs an engine up to a
# millisecond [s].
SECONDS = 0.25
LEAST_SECONDS = 0.005
# If the times of rows differ by less than this (relative spread), equal shares are best.
EVEN = 0.1


class Parts:
    """The rows that wait for a worker, given out in parts of at most some tenths of a second.

    If all rows take about the same time, every worker gets an equal share. Else parts become
    smaller towards the end of the batch, so that no worker waits long for the last one (guided
    self-scheduling, Polychronopoulos and Kuck 1987). The times of rows are kept from batch to
    batch.
    """

    def __init__(self) -> None:
        self._waiting: deque[slice] = deque()
        self._left = self._total = self._given = 0
        self._row_seconds: float | None = None
        self._spread = 1.0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def begin(self, rows: list[slice]) -> None:
        """Begins with the rows of a new batch, and forgets what is left of the last one."""
        self._waiting = deque(rows)
        self._left = self._total = sum(part.stop - part.start for part in rows)
        self._given = 0

    def give_back(self, part: slice) -> None:
        """Takes back a part whose worker was lost."""
        self._waiting.appendleft(part)
        self._left += part.stop - part.start

    def learn(self, part: slice, seconds: float) -> None:
        """Takes note of how long a part took [s]; recent parts count more."""
        now = max(1e-9, seconds / (part.stop - part.start))
        if self._row_seconds is None:
            self._row_seconds = now
        self._spread += 0.1 * (abs(now - self._row_seconds) / self._row_seconds - self._spread)
        self._row_seconds += 0.1 * (now - self._row_seconds)

    def plenty(self, workers: int) -> bool:
        """Returns whether there is more than one part for every worker."""
        return self._left > workers * self._size(workers)

    def take(self, workers: int) -> slice:
        """Returns the next part.

        Args:
            workers: Number of workers that share the rows that are left.
        """
        rows = self._waiting.popleft()
        part, *rest = cut([rows], self._size(workers))
        self._given += 1
        if rest:
            self._waiting.appendleft(slice(rest[0].start, rows.stop))
        self._left -= part.stop - part.start
        return part

    def _size(self, workers: int) -> int:
        if self._row_seconds is None:
            return 1  # no time is known yet
        longest = SECONDS / self._row_seconds
        if self._spread > EVEN:
            fair = -(-self._left // workers)
            least = min(fair, int(LEAST_SECONDS / self._row_seconds))
            return max(1, min(max(-(-fair // PER_WORKER), least), int(longest)))
        rounds = max(1, round(self._total / workers / longest))
        size, larger = divmod(self._total, rounds * workers)
        return max(1, size + (self._given < larger))
