"""How long numba has compiled in this process: that is the time of no phase of an iteration.

pyribs compiles the parts of its CMA emitters when they are first called. Each process that does so
pays for it anew, unless it is a fork of the warm one.
"""

import time

from numba.core import event


class _Stopwatch(event.Listener):
    """Adds up the time of numba's events; those inside of others count once."""

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
# Held to compile a function, and to load one that was compiled before; not to call it.
event.register("numba:compiler_lock", _stopwatch)


def compiled() -> float:
    """Returns how long numba has compiled in this process, since this module was imported [s]."""
    return _stopwatch.seconds
