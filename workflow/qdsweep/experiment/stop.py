"""Stops a run before its end: on a signal, before its time limit, or if evaluations hang."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

from qdsweep.errors import QdsweepError
from qdsweep.host.clock import AWAKE
from qdsweep.host.signals import SIGNALS

# The reason of a stop before the time limit.
OUT_OF_TIME = "the end of the wall time"
# The longest time of a timer [s]. For longer times it is set again.
_LONGEST = 1e8


class Interrupted(BaseException):
    """Raised inside `Stop.interruptible` when the run is to stop.

    It is not an `Exception`, because a domain's `except Exception` must not catch it.
    """


class _TooLong(BaseException):
    """Raised in an evaluation that is too long; `Stop.interruptible` converts it to `Hanging`."""


class Hanging(QdsweepError):
    """No evaluation ended within the experiment's `timeout`."""


class Stop:
    """Decides whether a run is to stop. It is a context manager with the signal handlers.

    A signal sets a flag. Only evaluations are interrupted, because they are pure and can be
    repeated.

    Attributes:
        reason: The reason to stop, or None.
        longest_delay: The longest block of `deferred` so far [s].
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self.longest_delay = 0.0
        self._interruptible = False
        self._deadline: Callable[..., float | None] | None = None
        self._has_begun = False
        self._timeout: float | None = None
        self._progress_at = 0.0
        self._previous: dict[int, object] = {}

    def __enter__(self) -> "Stop":
        AWAKE.watch()
        for number in SIGNALS:
            self._previous[number] = signal.signal(number, self._handle)
        self._previous[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._alarm)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        AWAKE.leave()
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def keep_handlers(self) -> None:
        """Leaves the handlers in place: a signal before the process ends changes nothing."""
        self._previous.clear()

    def ask(self, reason: str) -> None:
        """Asks the run to stop, and interrupts the current evaluation."""
        if self.reason is None:
            self.reason = reason
        if self._interruptible:
            self._interruptible = False
            raise Interrupted(self.reason)

    def before(self, deadline: Callable[..., float | None]) -> None:
        """Asks the run to stop at a time.

        Args:
            deadline: Returns the time of the clock `AWAKE` [s], or None for never. It is given
                `has_begun`: whether a part was evaluated.
        """
        self._deadline = deadline
        self._arm()

    def begin(self) -> None:
        """Notes that a part was evaluated in this start."""
        if not self._has_begun:
            self._has_begun = True
            self._arm()

    @contextmanager
    def interruptible(self, timeout: float | None = None) -> Iterator[None]:
        """Lets a signal raise `Interrupted` at once in this block. Elsewhere it only sets a flag.

        Args:
            timeout: The longest time without a call of `progress` [s]; None for no limit.

        Raises:
            Interrupted: The run is to stop.
            Hanging: There was no progress within `timeout`.
        """
        if self.reason is not None:
            raise Interrupted(self.reason)
        self._timeout = timeout
        self._interruptible = True
        try:
            self.progress()
            yield
        except _TooLong:
            raise Hanging(
                f"no evaluation ended within timeout = {timeout:g} s: an evaluation hangs, or the "
                "timeout is too short for one"
            ) from None
        finally:
            self._interruptible = False
            self._timeout = None

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Delays interruptions to the end of this block, inside `interruptible`."""
        self._interruptible = False
        start = AWAKE.now()
        yield
        self.longest_delay = max(self.longest_delay, AWAKE.now() - start)
        if self.reason is not None:
            raise Interrupted(self.reason)
        self._interruptible = True
        self.progress()  # long training must not count as a hanging evaluation

    def progress(self) -> None:
        """Restarts the timeout, because an evaluation has ended."""
        if self._timeout is not None:
            self._progress_at = AWAKE.now()
            self._arm()

    def _due(self) -> float | None:
        return None if self._deadline is None else self._deadline(has_begun=self._has_begun)

    def _arm(self) -> None:
        """Sets the only timer of this process to the earliest of its times."""
        end = self._due()
        due = [] if end is None else [end]
        if self._timeout is not None and self._interruptible:
            due.append(self._progress_at + self._timeout)
        wait = max(0.001, min(due) - AWAKE.now()) if due else 0.0
        signal.setitimer(signal.ITIMER_REAL, min(wait, _LONGEST))

    def _alarm(self, number: int, frame: FrameType | None) -> None:
        now = AWAKE.now()
        end = self._due()
        if end is not None and now >= end:
            self._deadline = None
            self.ask(OUT_OF_TIME)
        timeout = self._timeout
        if self._interruptible and timeout is not None and now >= self._progress_at + timeout:
            self._interruptible = False
            raise _TooLong
        self._arm()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.ask(signal.Signals(number).name)
