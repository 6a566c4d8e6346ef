"""hypothesis drives a run through kills, corruption, lengthening and other engines."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support import TINY

from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.engines.base import cut, nothing
from qdsweep.engines.pool import Serial
from qdsweep.experiment import run as run_module
from qdsweep.experiment.run import compute
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.files import read_json
from qdsweep.records.metrics import read_rows
from qdsweep.records.paths import RunDir

# Every iteration is saved, so that a kill can come anywhere between two saves.
EXPERIMENT = {**TINY, "reload": {"min_seconds": 0.0, "max_cost": 1.0}}
LENGTHS = (4, 7, 11, 16)
Results = tuple[str, list[list[str]], list[list[float]]]
_straight: dict[int, Results] = {}


class Killed(BaseException):
    """What a kill looks like from inside: nothing is saved any more."""


class Chunky(Serial):
    """Cuts batches in parts of a given size, and ends as told after some parts."""

    def __init__(self, domain, stop: Stop, size: int, parts: int | None, kill: bool) -> None:
        super().__init__(domain)
        self.stop, self.size, self.parts, self.kill = stop, size, parts, kill

    def evaluate(self, batch, rows, meanwhile=nothing):
        meanwhile()
        for part in cut(rows, self.size):
            if self.parts == 0:
                if self.kill:
                    raise Killed
                self.stop.ask("the test")
            if self.parts is not None:
                self.parts -= 1
            self._size = self.size
            yield from super().evaluate(batch, [part])


def results(out: Path) -> Results:
    rows = [row.split(",")[:9] for row in read_rows(out / "state/metrics.csv")]
    with np.load(out / "state/history.npz") as arrays:
        insertions = [arrays[name].tolist() for name in ("iteration", "index", "objective")]
    return read_json(out / "state/summary.json")["archive_digest"], rows, insertions


def straight(iterations: int) -> Results:
    if iterations not in _straight:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder)
            (out / "state").mkdir()
            experiment = compose(EXPERIMENT, {"iterations": iterations})
            compute(experiment, RunDir(out), Cluster(), Stop())
            _straight[iterations] = results(out)
    return _straight[iterations]


class Run(RuleBasedStateMachine):
    """A run's folder and what can happen to it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.out = Path(self.folder.name)
        (self.out / "state").mkdir()
        self.length = 0
        self.finished = False

    def teardown(self) -> None:
        self.folder.cleanup()

    def go(self, size: int, parts: int | None, kill: bool) -> None:
        experiment = compose(EXPERIMENT, {"iterations": LENGTHS[self.length]})
        stop = Stop()
        engine = Chunky(make_domain(experiment.domain), stop, size, parts, kill)
        make, run_module.make_engine = run_module.make_engine, lambda *_: engine
        try:
            compute(experiment, RunDir(self.out), Cluster(), stop)
            self.finished = True
        except (Interrupted, Killed):
            self.finished = False
        finally:
            run_module.make_engine = make

    @rule(size=st.integers(1, 20), parts=st.integers(0, 40), kill=st.booleans())
    def begin_and_end_early(self, size: int, parts: int, kill: bool) -> None:
        self.go(size, parts, kill)

    @rule(size=st.integers(1, 20))
    def run_to_the_end(self, size: int) -> None:
        self.go(size, None, False)
        assert self.finished

    @precondition(lambda self: self.length < len(LENGTHS) - 1)
    @rule()
    def lengthen(self) -> None:
        self.length += 1
        self.finished = False

    @rule(place=st.floats(0, 0.999), flip=st.booleans())
    def spoil_the_newest_reload_file(self, place: float, flip: bool) -> None:
        newest = max((self.out / "state").glob("reload-*.pkl"), default=None)
        if newest is None:
            return
        content = bytearray(newest.read_bytes())
        at = int(place * len(content))
        if flip and content:
            content[at] ^= 0x40
        newest.write_bytes(content if flip else content[:at])
        self.finished = False

    @rule(share=st.floats(0, 1))
    def tear_the_metrics(self, share: float) -> None:
        path = self.out / "state/metrics.csv"
        if path.exists():
            content = path.read_bytes()
            path.write_bytes(content[: int(share * len(content))])
            self.finished = False

    @rule()
    def lose_the_state(self) -> None:
        shutil.rmtree(self.out / "state")
        (self.out / "state").mkdir()
        self.finished = False

    @invariant()
    def a_finished_run_equals_a_straight_one(self) -> None:
        if self.finished:
            assert results(self.out) == straight(LENGTHS[self.length])


Run.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestRun = Run.TestCase
