"""How busy the machine is: where more processes want a core than there are, times are too long."""

import os
from pathlib import Path

# From so many processes a core on, they wait for one another.
BUSY = 1.25


class Load:
    """The mean, over the looks at it, of the processes that want a core, for each core.

    Args:
        workers: Workers of this run on this machine. They count as wanting a core each, although
            they wait while the main process looks.
    """

    def __init__(self, workers: int) -> None:
        cores = os.cpu_count() or 1
        self._own = min(workers, cores)  # more share cores by what the user chose
        self._cores = cores
        self._sum = self._looks = 0.0

    def look(self) -> float:
        """Looks once, between two iterations; returns the mean so far."""
        self._sum += (others() + self._own) / self._cores
        self._looks += 1
        return round(self._sum / self._looks, 2)


def others() -> int:
    """Returns how many other threads of the machine want a core now; 0 where nobody tells."""
    try:
        runnable = Path("/proc/loadavg").read_text().split()[3].partition("/")[0]
    except OSError:
        return 0
    return max(0, int(runnable) - 1)
