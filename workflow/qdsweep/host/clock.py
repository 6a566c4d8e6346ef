"""A clock that leaves out the time in which this process was suspended.

SIGSTOP, Slurm's suspend, `docker pause` and a laptop's sleep stop a process, but not its clock. A
process cannot see it, but a gap between two looks at the clock shows it.
"""

import threading
import time

# The interval of looks while a run is computed [s].
_LOOK_SECONDS = 0.5
# A gap with a larger share of CPU time is one long computation, which lets no other thread look.
_IDLE_BELOW = 0.25


class Clock:
    """The time since the machine's start without suspensions, by looks at intervals.

    A gap counts as a suspension if it is longer than two intervals, and this process used hardly
    any CPU time in it. A thread looks regularly between `watch` and `leave`. At other times nothing
    counts as a suspension.

    Args:
        interval: The usual interval of looks [s].
    """

    def __init__(self, interval: float = _LOOK_SECONDS) -> None:
        self._interval = interval
        self._suspended = 0.0
        self._is_watched = False
        self._seen = 0.0, 0.0
        self._left = threading.Event()

    def now(self) -> float:
        """Looks at the clock, and returns its time [s]."""
        return time.monotonic() - self.suspended()

    def suspended(self) -> float:
        """Looks at the clock, and returns the sum of all suspensions that were seen [s]."""
        if self._is_watched:
            now = time.monotonic(), time.process_time()
            before, self._seen = self._seen, now
            gap, used = now[0] - before[0], now[1] - before[1]
            if gap > 2 * self._interval and used < _IDLE_BELOW * gap:
                self._suspended += gap - self._interval
        return self._suspended

    def watch(self) -> None:
        """Starts the looks."""
        self._seen = time.monotonic(), time.process_time()
        self._is_watched = True
        self._left = left = threading.Event()

        def look() -> None:
            while not left.wait(self._interval):
                self.suspended()

        threading.Thread(target=look, daemon=True).start()

    def leave(self) -> None:
        """Ends the looks."""
        self._left.set()
        self._is_watched = False


# That of the run of this process.
AWAKE = Clock()
