"""Ornaments: what a run or a stage can do without, such as text plots, figures and films.

An ornament that fails is left out with a warning, and ends nothing. Refused input, a full disk and
a lack of memory concern more than an ornament, so these errors are raised.
"""

import logging
import traceback
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, TypeVar
from weakref import WeakSet

from qdsweep.errors import QdsweepError

log = logging.getLogger("qdsweep")

P = ParamSpec("P")
R = TypeVar("R")
_OF_ALL = (QdsweepError, OSError, MemoryError)


def leave_out(what: str, error: Exception) -> str:
    """Warns that an ornament is left out, with the traceback in the log; returns the reason."""
    why = f"{type(error).__name__}: {error}"  # a page shows it, so it has no paths of code
    text = f"left out: {what}: {why}"
    if log.hasHandlers():  # in a run
        log.warning("%s", text, exc_info=error)
    else:  # the standard output is the terminal: rules redirect the error output into their log
        print(f"qdsweep: warning: {text}", flush=True)
        traceback.print_exception(error)
    return why


def failure_of(make: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> Exception | None:
    """Makes one of many ornaments of a kind; returns its error, or None if it was made."""
    try:
        make(*args, **kwargs)
    except _OF_ALL:
        raise
    except Exception as error:  # code of libraries and of users raises anything
        return error
    return None


class Ornament(Generic[P, R]):
    """A function that makes an ornament.

    A method that failed is not called again for the same object, so there is one warning.

    Args:
        make: The function.
        what: The name of the ornament in the warning, with `{0}` for the first argument.
        instead: Returns the result if it fails, from the reason and the arguments.
        warn: Reports the name and the error, and returns the reason.
    """

    every: ClassVar[list["Ornament[..., Any]"]] = []
    """All ornaments."""

    def __init__(
        self,
        make: Callable[P, R],
        what: str,
        instead: Callable[Concatenate[str, P], R],
        warn: Callable[[str, Exception], str] | None = None,
    ) -> None:
        self.make, self.what, self.instead, self.warn = make, what, instead, warn
        self._failed: WeakSet[Any] = WeakSet()
        update_wrapper(self, make)
        self.every.append(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Returns the result of the function, or the one instead of it."""
        return self._made(None, *args, **kwargs)

    def __get__(self, owner: Any, kind: type) -> Any:
        """Returns the method of an object."""
        return self if owner is None else partial(self._made, owner, owner)

    def _made(self, owner: Any, *args: Any, **kwargs: Any) -> R:
        why = ""
        if owner is None or owner not in self._failed:
            try:
                return self.make(*args, **kwargs)
            except _OF_ALL:
                raise
            except Exception as error:  # code of libraries and of users raises anything
                why = (self.warn or leave_out)(self.what.format(*args), error)
        if owner is not None:
            self._failed.add(owner)
        return self.instead(why, *args, **kwargs)


def ornament(
    what: str,
    instead: Callable[..., Any] = lambda why, *args, **kwargs: None,
    warn: Callable[[str, Exception], str] | None = None,
) -> Callable[[Callable[P, R]], Ornament[P, R]]:
    """Declares a function as an ornament; see `Ornament`."""
    return lambda make: Ornament(make, what, instead, warn)
