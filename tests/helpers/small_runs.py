"""A small experiment and its state, in this process."""

import io
from pathlib import Path

from support import TINY

from qdsweep.algorithms import make_algorithm
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.domains import make_domain
from qdsweep.engines.base import Batch, nothing
from qdsweep.engines.pool import Serial
from qdsweep.experiment import reload
from qdsweep.experiment.state import State
from qdsweep.experiment.stop import Stop
from qdsweep.records.archive import archive_digest


def experiment(**changes: object) -> Experiment:
    return compose(TINY, changes)


def fresh(exp: Experiment, folder: Path) -> tuple[State, Serial]:
    domain = make_domain(exp.domain)
    return State(make_algorithm(exp, domain, folder), steps=0), Serial(domain)


def payload_of(state: State) -> bytes:
    """What a reload file holds of a state."""
    buffer = io.BytesIO()
    reload.dump(state, buffer)
    return buffer.getvalue()


def digest_of(state: State) -> str:
    return archive_digest(state.algorithm.archive.rows())


class StopsAfter(Serial):
    """Evaluates a number of parts, one row each, then asks the run to stop."""

    def __init__(self, domain, stop: Stop, parts: int) -> None:
        super().__init__(domain)
        self.stop, self.parts = stop, parts

    def evaluate(self, batch: Batch, rows: list[slice], meanwhile=nothing):
        meanwhile()
        for part in (slice(i, i + 1) for wide in rows for i in range(wide.start, wide.stop)):
            if self.parts == 0:
                self.stop.ask("test")
            self.parts -= 1
            yield from super().evaluate(batch, [part])
