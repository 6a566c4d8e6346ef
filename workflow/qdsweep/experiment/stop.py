"""Stopping on purpose: signals set a flag, and interrupt nothing but evaluations."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Interrupted(BaseException):
    """Raised inside `Stop.interruptible` when the run is to stop.

    Not an `Exception`: a domain's `except Exception` must not swallow it.
    """


class Stop:
    """Whether and why a run is to stop. A context manager that holds the signal handlers."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.asked_at = 0.0
        self._interruptible = False
        self._previous: dict[int, object] = {}

    def __enter__(self) -> "Stop":
        for number in SIGNALS:
            self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def ask(self, reason: str) -> None:
        """Asks the run to stop; an evaluation that is under way is given up."""
        if self.reason is None:
            self.reason = reason
            self.asked_at = time.monotonic()
        if self._interruptible:
            self._interruptible = False
            raise Interrupted(self.reason)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.ask(signal.Signals(number).name)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """In this block a signal raises `Interrupted` at once; elsewhere it only sets a flag."""
        if self.reason is not None:
            raise Interrupted(self.reason)
        self._interruptible = True
        try:
            yield
        finally:
            self._interruptible = False
