"""Threads of the main process. They change the speed of a run, never its results."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Result = TypeVar("_Result")
_pool: ThreadPoolExecutor | None = None


def use_threads(number: int) -> None:
    """Sets how many threads this process computes with; 1 is only the caller's own.

    numpy and torch compute with one thread in each of them, as in the main thread.
    """
    global _pool
    if _pool is not None:
        _pool.shutdown()
    _pool = ThreadPoolExecutor(number) if number > 1 else None


def in_order(calls: Sequence[Callable[[], _Result]]) -> list[_Result]:
    """Makes independent calls, several at a time, and returns their results in order."""
    if _pool is None or len(calls) == 1:
        return [call() for call in calls]
    return [future.result() for future in [_pool.submit(call) for call in calls]]
