"""A worker process beside a process that belongs to others, such as a worker of a Dask cluster."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
from typing import IO, Any

from qdsweep.engines import evaluator
from qdsweep.engines.base import Answer, Batch
from qdsweep.engines.evaluator import Order
from qdsweep.host.parent import die_with_parent


class Child:
    """Evaluates in a process with the run's CPU settings, talking to it by pipes.

    Args:
        order: What it must know.
        name: The worker's name in the run's log.

    Attributes:
        about: Host and process.
        problem: Why it cannot work for the run; empty if it can.
    """

    def __init__(self, order: Order, name: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "qdsweep.engines.child"],
            env={**os.environ, **order.settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.about, self.problem = self._ask((order, name))

    def evaluate(self, part: Batch, first: int) -> Answer:
        """Evaluates a part; see `Evaluator.evaluate`.

        Raises:
            ConnectionError: The process has died.
        """
        answer = self._ask((part, first))
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Answer)
        return answer

    def close(self) -> None:
        """Ends it, also in the middle of an evaluation."""
        self._process.kill()
        self._process.wait()

    def _ask(self, question: tuple[Any, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            pickle.dump(question, self._process.stdin, protocol=5)
            self._process.stdin.flush()
            return pickle.load(self._process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            code = self._process.wait()
            raise ConnectionError(f"its process {self._process.pid} has ended ({code})") from None


def _serve(questions: IO[bytes], answers: IO[bytes]) -> None:
    order, name = pickle.load(questions)
    made = evaluator.start(order, name)
    answer: Any = (f"process {os.getpid()} on {os.uname().nodename}", made.problem)
    while True:
        pickle.dump(answer, answers, protocol=5)
        answers.flush()
        part, first = pickle.load(questions)
        try:
            answer = made.evaluate(part, first)
        except Exception as error:
            answer = error


if __name__ == "__main__":
    die_with_parent(signal.SIGKILL)
    # The pipes are kept from what the domain prints.
    pipes = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(EOFError):
        _serve(*pipes)
