"""A forked run equals the run that is computed from its start."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from small_runs import StopsAfter
from support import TINY

from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.domains import make_domain
from qdsweep.experiment import run as run_module
from qdsweep.experiment.attempt import Attempt
from qdsweep.experiment.run import compute
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.files import read_json
from qdsweep.host.lock import Lock
from qdsweep.records.metrics_file import read_lines
from qdsweep.records.paths import RunDir
from qdsweep.records.status import read_status
from qdsweep.search.fork import fork


def member(*changes: tuple[int, dict], iterations: int, algorithm: str = "cma_mae") -> Experiment:
    schedule = [{"at": at, "set": values} for at, values in changes]
    return compose({**TINY, "algorithm": algorithm, "iterations": iterations, "schedule": schedule})


def computed(experiment: Experiment, folder: Path) -> RunDir:
    run = RunDir(folder)
    run.state.path.mkdir(parents=True, exist_ok=True)
    compute(Attempt.of(experiment, RunDir(folder)), Stop())
    return run


def results(run: RunDir):
    """Returns the results of a run: digest, rows without seconds, and insertions."""
    header, *rows = [line.split(",") for line in read_lines(run.state.metrics)]
    kept = [number for number, name in enumerate(header) if not name.startswith("seconds")]
    with np.load(run.state.history) as arrays:
        insertions = [arrays[name].tolist() for name in ("iteration", "index", "objective")]
    digest = read_json(run.state.summary)["archive_digest"]
    return digest, [[row[number] for number in kept] for row in rows], insertions


def begun(run: RunDir) -> int:
    """Returns the iteration from which its only attempt resumed."""
    (attempt,) = read_status(run.state).attempts
    return attempt["from"]


@pytest.mark.parametrize(
    ("algorithm", "first", "second"),
    [
        ("cma_mae", {"learning_rate": 0.5}, {"ranker": "2rd"}),
        ("cma_mega", {"lr": 0.1}, {"batch_size": 6}),
        ("map_elites_line", {"iso_sigma": 0.1}, {"line_sigma": 0.5, "batch_size": 5}),
    ],
)
def test_children_of_children_are_those_computed_from_nothing(tmp_path, algorithm, first, second):
    donor = computed(member(iterations=4, algorithm=algorithm), tmp_path / "donor")
    child, grandchild = RunDir(tmp_path / "child"), RunDir(tmp_path / "grandchild")
    assert fork(donor, child, 4)
    assert donor.state.reload(4).samefile(child.state.reload(4))
    computed(member((4, first), iterations=7, algorithm=algorithm), child.path)
    assert fork(child, grandchild, 7)
    last = member((4, first), (7, second), iterations=10, algorithm=algorithm)
    computed(last, grandchild.path)
    assert (begun(child), begun(grandchild)) == (4, 7)
    straight = computed(last, tmp_path / "straight")
    assert begun(straight) == 0
    assert results(grandchild) == results(straight)
    # The donor is unchanged, and can be extended.
    longer = member(iterations=10, algorithm=algorithm)
    assert results(computed(longer, donor.path)) == results(computed(longer, tmp_path / "other"))


@pytest.fixture
def donor(tmp_path) -> RunDir:
    return computed(member(iterations=4), tmp_path / "donor")


@pytest.fixture
def child(tmp_path) -> RunDir:
    return RunDir(tmp_path / "child")


def test_without_the_donors_file_a_run_is_computed_from_nothing(donor, child):
    computed(member(iterations=5), donor.path)  # the file of iteration 4 is pruned
    assert not fork(donor, child, 4)
    assert not child.state.metrics.exists()


def test_across_file_systems_the_file_is_copied(donor, child, monkeypatch):
    def fails(*_: object) -> None:
        raise OSError(errno.EXDEV, "another device")

    monkeypatch.setattr(os, "link", fails)
    assert fork(donor, child, 4)
    assert child.state.reload(4).read_bytes() == donor.state.reload(4).read_bytes()
    assert not donor.state.reload(4).samefile(child.state.reload(4))


def test_a_run_that_has_started_or_is_being_computed_does_not_change(donor, child):
    with Lock(child.state.lock):
        assert not fork(donor, child, 4)
    assert fork(donor, child, 4)
    computed(member((4, {"ranker": "rd"}), iterations=6), child.path)
    before = child.state.metrics.read_bytes()
    assert not fork(donor, child, 4)
    assert child.state.metrics.read_bytes() == before


def test_a_donor_that_stopped_in_the_next_iteration_gives_nothing(tmp_path, child, monkeypatch):
    """Its file has the same name, but its solutions were asked for without the change."""
    longer = member(iterations=9)
    stop = Stop()
    engine = StopsAfter(make_domain(longer.domain), stop, 4 * 16 + 5)
    (tmp_path / "donor/state").mkdir(parents=True)
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(run_module, "make_engine", lambda *_: engine)
        compute(Attempt.of(longer, RunDir(tmp_path / "donor")), stop)
    assert fork(RunDir(tmp_path / "donor"), child, 4)
    changed = member((4, {"ranker": "rd"}), iterations=6)
    computed(changed, child.path)
    assert begun(child) == 0
    assert results(child) == results(computed(changed, tmp_path / "straight"))


def test_the_file_of_any_other_run_is_refused(donor, child):
    assert fork(donor, child, 4)
    for wrong in (
        member(iterations=6).model_copy(update={"seed": 9}),
        member((3, {"ranker": "rd"}), iterations=6),
        member((2, {"ranker": "rd"}), (4, {"ranker": "imp"}), iterations=6),
    ):
        with refused(child.state.reload(4)):
            compute(Attempt.of(wrong, child), Stop())
