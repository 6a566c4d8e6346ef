"""What an executor is: `concurrent.futures` cut down to what `Pool` needs."""

from concurrent.futures import Future
from typing import Protocol

from qdsweep.engines.base import Answer, Batch


class Executor(Protocol):
    """Evaluates parts in workers that keep their domain alive (`qdsweep.engines.evaluator`).

    Attributes:
        name: Its name in the cluster config.
        wanted: How many workers the run has asked for.
        remedy: Where to look if no worker comes, for a message.
    """

    name: str
    wanted: int
    remedy: str

    @property
    def workers(self) -> int:
        """How many workers there are now."""
        ...

    def submit(self, part: Batch, first: int) -> "Future[Answer]":
        """Has a part evaluated that begins with the batch's row `first`.

        Its future raises `WorkerLost` if the worker was lost.
        """
        ...

    def problem(self) -> str | None:
        """Returns why no worker will ever come; None while one may."""
        ...

    def close(self) -> None:
        """Ends the workers, also in the middle of an evaluation."""
        ...
