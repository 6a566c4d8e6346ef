"""A small experiment and its state, in this process."""

import io
from pathlib import Path

import numpy as np
from support import TINY

from qdsweep.algorithms import make_algorithm
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.domains import make_domain
from qdsweep.engines.batch import Batch, cut_rows, nothing
from qdsweep.engines.pool import Serial
from qdsweep.experiment import reload
from qdsweep.experiment.state import State
from qdsweep.experiment.stop import Stop
from qdsweep.records.archive import archive_digest


def experiment(**changes: object) -> Experiment:
    return compose(TINY, changes)


def fresh(exp: Experiment, folder: Path) -> tuple[State, Serial]:
    domain = make_domain(exp.domain)
    context = np.zeros(domain.context_dim) if hasattr(domain, "context_dim") else None
    algorithm = make_algorithm(exp, domain, folder)
    return State(algorithm, steps=0, context=context), Serial(domain)


def payload_of(state: State) -> bytes:
    """Returns the payload of a state's reload file."""
    buffer = io.BytesIO()
    reload.dump(state, buffer)
    return buffer.getvalue()


def digest_of(state: State) -> str:
    return archive_digest(state.algorithm.archive.rows())


class Killed(BaseException):
    """A kill, as seen from inside the run: nothing more is saved."""


class StopsAfter(Serial):
    """Evaluates a number of parts, then asks the run to stop.

    Args:
        domain: The domain.
        stop: The object that ends the run.
        parts: Number of parts to evaluate before the stop; None for all.
        size: Rows per part.
        kill: Whether the run ends without a save, as after a kill.
        scored: The objective of a failed solution; None if it ends the run.
    """

    def __init__(
        self,
        domain,
        stop: Stop,
        parts: int | None,
        size: int = 1,
        kill: bool = False,
        scored: float | None = None,
    ) -> None:
        super().__init__(domain, scored)
        self.stop, self.parts, self.size, self.kill = stop, parts, size, kill

    def evaluate(self, batch: Batch, rows: list[slice], meanwhile=nothing):
        meanwhile()
        for part in cut_rows(rows, self.size):
            if self.parts == 0:
                if self.kill:
                    raise Killed
                self.stop.ask("test")
            if self.parts is not None:
                self.parts -= 1
            self._size = self.size
            self.tick()
            yield from super().evaluate(batch, [part])

    def tick(self) -> None:
        """Is called before each part, so that a test's clock may move."""
