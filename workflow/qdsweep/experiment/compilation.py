"""The time of numba's compilation in this process, which counts in no phase of an iteration.

pyribs compiles parts of its CMA emitters at their first call in each process. Forks of the warm
process need no compilation.
"""

import time

from numba.core import event


class _Stopwatch(event.Listener):
    """Adds up the time of numba's events. Nested events count once."""

    def __init__(self) -> None:
        self.seconds = self._since = 0.0
        self._depth = 0

    def on_start(self, event: event.Event) -> None:
        if self._depth == 0:
            self._since = time.perf_counter()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._since


_stopwatch = _Stopwatch()
# numba holds this lock while it compiles a function or loads a compiled one, not while it calls it.
event.register("numba:compiler_lock", _stopwatch)


def compiled() -> float:
    """Returns the time of numba's compilation in this process since this import [s]."""
    return _stopwatch.seconds
