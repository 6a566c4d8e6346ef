"""Damaged, foreign and old reload files, and the files that are kept."""

import hashlib
import io
import json
import os
import pickle
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import names_all, refused
from small_runs import experiment, fresh

from qdsweep.cli import main
from qdsweep.engines.batch import Batch
from qdsweep.experiment import reload
from qdsweep.experiment.attempt import Attempt, Inherited, Options
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.state import Pending, State, no_seconds
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.records.metrics_file import Metrics
from qdsweep.records.paths import RunDir, StateDir
from qdsweep.sweep.ids import Identity

VERSIONS = {"numpy": "1"}


def save(folder: Path, iterations: int, **beside: object) -> Path:
    state, _ = fresh(experiment(), folder)
    state.iterations, files = iterations, StateDir(folder)
    if not files.metrics.exists():
        rows = ("iteration,evaluations", *(f"{row},{16 * row}" for row in range(1, 10)))
        files.metrics.write_text("".join(f"{row}\n" for row in rows))
    return reload.save_state(state, files, "print", VERSIONS, beside or None)


def newest(folder: Path) -> int | None:
    """Returns the iteration of the newest usable reload file."""
    saved = reload.last_saved(StateDir(folder))
    return saved and saved.state.iterations


@pytest.fixture
def run(tmp_path) -> RunDir:
    (tmp_path / "run/state").mkdir(parents=True)
    return RunDir(tmp_path / "run")


def attempt(run: RunDir, fingerprint: str = "print", **changes: object) -> Attempt:
    identity = Identity(run.name, fingerprint)
    return replace(Attempt.of(experiment(), run), identity=identity, **changes)


def test_two_are_kept_and_the_newest_is_read(tmp_path):
    for iterations in (1, 2, 3):
        path = save(tmp_path, iterations, domain="its ranges")
        assert path.name == f"reload-{iterations:09}.pkl"
    assert len(list(tmp_path.glob("reload-*.pkl"))) == 2
    saved = reload.last_saved(StateDir(tmp_path))
    assert saved.state.iterations == 3
    about = {"format": 3, "fingerprint": "print", "iteration": 3, "versions": VERSIONS}
    assert saved.header == {**about, "domain": "its ranges"}


@pytest.mark.parametrize("place", [0, 0.01, 0.1, 0.5, 0.999])
@pytest.mark.parametrize("damage", ["truncated", "flipped"])
def test_a_damaged_one_is_passed_over(tmp_path, caplog, place, damage):
    for iterations in (1, 2):
        path = save(tmp_path, iterations)
    content = bytearray(path.read_bytes())
    at = int(place * len(content))
    if damage == "flipped":
        content[at] ^= 1
    path.write_bytes(content[:at] if damage == "truncated" else content)
    assert newest(tmp_path) == 1
    assert [str(path) in message for message in caplog.messages] == [True]
    assert reload.adopt(StateDir(tmp_path)) == [tmp_path / "reload-000000001.pkl"]
    assert str(path) in caplog.messages[1]
    assert "None" not in caplog.text, "each message has a reason"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"format": 1}, "format"),
        ({"format": 4}, "format"),
        ({"versions": None}, "header"),
        ({"sha256": None}, "checksum"),
    ],
)
def test_one_of_another_format_is_passed_over(tmp_path, caplog, changes, problem):
    save(tmp_path, 1)
    rewrite(save(tmp_path, 2), **changes)
    assert newest(tmp_path) == 1
    assert problem in caplog.text and "None" not in caplog.text


def rewrite(path: Path, **changes: object) -> None:
    """Changes the header of a reload file with a valid checksum; None removes a key."""
    magic, head, payload = path.read_bytes().split(b"\n", 2)
    header = {**json.loads(head), **changes}
    header = {key: value for key, value in header.items() if value is not None}
    about = {key: value for key, value in header.items() if key not in ("sha256", "hmac")}
    if "sha256" in header:
        whole = json.dumps(about, sort_keys=True).encode() + payload
        header["sha256"] = hashlib.sha256(whole).hexdigest()
    path.write_bytes(b"\n".join((magic, json.dumps(header).encode(), payload)))


def test_a_save_outlives_damaged_files_of_later_iterations(tmp_path):
    """A run that resumes from an earlier file makes progress, with any later files."""
    for iterations in (7, 8):
        save(tmp_path, iterations).write_bytes(b"")
    path = save(tmp_path, 3)
    assert list(tmp_path.glob("reload-*.pkl")) == [path]
    assert newest(tmp_path) == 3


def test_where_none_can_be_used_the_run_starts_again(tmp_path, caplog):
    assert newest(tmp_path) is None
    assert caplog.messages == []
    save(tmp_path, 3).write_bytes(b"")
    assert newest(tmp_path) is None
    assert len(caplog.messages) == 2
    assert "None" not in caplog.text


def test_one_that_metrics_csv_does_not_reach_is_passed_over(tmp_path, caplog):
    files = StateDir(tmp_path)
    metrics = Metrics(files.metrics, 0)
    metrics.add({"iteration": 1})
    metrics.flush()
    for iterations in (1, 2):
        path = save(tmp_path, iterations, metrics=metrics.fingerprint)
    assert newest(tmp_path) == 1
    (message,) = caplog.messages
    names_all(message, path, files.metrics.name)
    metrics.add({"iteration": 2, "coverage": 0.5})
    metrics.close()
    assert newest(tmp_path) == 1


def test_one_of_another_experiment_is_refused(run):
    state, _ = fresh(experiment(), run.path)
    path = reload.save_state(state, run.state, "0123456789abc", VERSIONS)
    with refused(path, "0123456789,", "fedcba9876)"):
        reload.newest(attempt(run, "fedcba98765432"), VERSIONS)
    assert reload.last_saved(run.state).state.iterations == 0


def test_other_versions_are_refused_unless_allowed(run, caplog):
    state, _ = fresh(experiment(), run.path)
    path = reload.save_state(state, run.state, "print", {"scipy": "3", "numpy": "1", "ribs": "7"})
    now, changes = {"ribs": "7", "numpy": "2", "scipy": "4"}, "numpy 1 -> 2, scipy 3 -> 4"
    with refused(path, changes, "--allow-version-change"):
        reload.newest(attempt(run), now)
    assert caplog.messages == []
    assert reload.newest(attempt(run, options=Options(allow_version_change=True)), now)
    assert [changes in message for message in caplog.messages] == [True]


def test_a_library_that_is_only_on_one_machine_is_none_that_the_run_uses(run):
    save(run.state.path, 1)
    for versions in ({}, {**VERSIONS, "mujoco": "3.3.7"}):
        assert reload.newest(attempt(run), versions).state.iterations == 1


def test_a_run_resumes_from_the_file_of_its_donor(run, caplog):
    save(run.state.path, 3)

    def read(iteration: int, *fingerprints: str) -> reload.Saved | None:
        inherited = Inherited(iteration, frozenset(fingerprints))
        return reload.newest(attempt(run, "own", inherited=inherited), VERSIONS)

    assert read(3, "print", "other").state.iterations == 3
    for iteration, fingerprint in ((2, "print"), (3, "other")):
        with refused("print", "own"):
            read(iteration, fingerprint)
    state, _ = fresh(experiment(), run.path)
    state.iterations, state.asked = 3, 8
    path = reload.save_state(state, run.state, "print", VERSIONS)
    assert read(3, "print") is None, "the donor was in the middle of its next iteration"
    names_all(caplog.messages[0], path, "donor")
    assert reload.newest(attempt(run), VERSIONS).state.asked == 8


@pytest.mark.parametrize("is_pending", [True, False])
def test_a_state_of_version_0_1_0_is_translated(tmp_path, is_pending):
    state, _ = fresh(experiment(), tmp_path)
    if is_pending:
        batch = Batch(state.algorithm.ask().solutions, np.zeros(16, dtype=np.uint32))
        state.pending = Pending.of(batch)
    old = vars(state)
    old |= {"scheduler": old.pop("algorithm").ribs_scheduler, "seconds": {"ask": 2.5}}
    del old["told"]
    read = reload.load_state(io.BytesIO(pickle.dumps(state)), is_own=True)
    assert read.told == []
    assert read.seconds == {**no_seconds(), "ask": 2.5}
    assert not hasattr(read, "scheduler")
    assert len(read.algorithm.emitters) == 2
    assert (read.algorithm.ask() is None) == is_pending


class Exotic:
    """State of a user's algorithm whose module is not a plug-in here."""


class TestAuthors:
    """A reload file executes its content, so only the user's own files may have any name."""

    @pytest.fixture(autouse=True)
    def home(self, tmp_path, monkeypatch) -> None:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))

    @pytest.fixture
    def another_key(self, tmp_path, monkeypatch) -> Callable[[], None]:
        return lambda: monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "other"))

    def save(self, run: RunDir, exotic: bool = False) -> Path:
        state, _ = fresh(experiment(), run.path)
        if exotic:
            state.algorithm.exotic = Exotic()
        return reload.save_state(state, run.state, "print", {})

    def read(self, run: RunDir, *plugins: str) -> State | None:
        saved = reload.last_saved(run.state, plugins)
        return saved and saved.state

    def without_digest(self, path: Path) -> None:
        """Writes a file like releases up to format 2."""
        rewrite(path, format=2, hmac=None)

    @pytest.mark.parametrize("mode", [0o600, 0o777])
    def test_ones_own_is_read_wherever_it_is(self, run, mode):
        path = self.save(run, exotic=True)
        assert path.stat().st_mode & 0o022 == 0
        for place in (path, run.state.path):
            place.chmod(mode | 0o100)
        assert isinstance(self.read(run).algorithm.exotic, Exotic)

    def test_others_cannot_write_one_whatever_the_umask(self, run):
        before = os.umask(0)
        try:
            assert self.save(run).stat().st_mode & 0o777 == 0o644
        finally:
            os.umask(before)

    def test_a_copy_of_anothers_is_read_with_known_names(self, run, another_key):
        self.save(run)
        another_key()
        assert self.read(run) is not None

    def test_one_of_an_earlier_release_is_read(self, run):
        self.without_digest(self.save(run))
        assert self.read(run) is not None

    def test_with_a_name_that_is_not_known_it_must_be_adopted(self, run, another_key):
        path = self.save(run, exotic=True)
        another_key()
        name = f"{Exotic.__module__}.Exotic"
        with refused(path, name, "other/qdsweep/key", f"qdsweep adopt {run.path}"):
            self.read(run)
        plugin = f"{Exotic.__module__}:Algorithm"
        assert isinstance(self.read(run, plugin).algorithm.exotic, Exotic)
        assert main(["adopt", str(run.path)]) == 0
        assert isinstance(self.read(run).algorithm.exotic, Exotic)

    @pytest.mark.parametrize("writable", ["file", "folder"])
    def test_one_that_others_can_write_must_be_adopted(self, run, writable):
        path = self.save(run)
        self.without_digest(path)
        (path if writable == "file" else run.state.path).chmod(0o777)
        with refused(path, f"qdsweep adopt {run.path}"):
            self.read(run)
        assert reload.adopt(run.state) == [path]
        assert json.loads(path.read_bytes().split(b"\n", 2)[1])["format"] == reload.FORMAT
        assert self.read(run) is not None

    def test_a_digest_is_of_these_very_bytes(self, run):
        path = self.save(run, exotic=True)
        own = json.loads(path.read_bytes().split(b"\n", 2)[1])["hmac"]
        self.without_digest(path)
        rewrite(path, hmac=own)
        with refused(path, "Exotic"):
            self.read(run)

    def test_nothing_to_adopt_and_no_key(self, run, tmp_path, monkeypatch, capsys):
        assert main(["adopt", str(run.path)]) == 2
        path = self.save(run)
        (tmp_path / "none").touch()
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
        assert main(["adopt", str(run.path)]) == 2
        names_all(capsys.readouterr().err, path, f"{tmp_path}/none/qdsweep/key")


def test_writing_and_reading_one_needs_no_copy_of_it(tmp_path):
    """A replay buffer may be as large as the remaining memory."""
    size = 50_000_000
    state, _ = fresh(experiment(), tmp_path)
    state.algorithm.replay = np.ones(size, dtype=np.uint8)
    tracemalloc.start()
    try:
        reload.save_state(state, StateDir(tmp_path), "print", {})
        assert tracemalloc.get_traced_memory()[1] < size / 10
        saved = reload.last_saved(StateDir(tmp_path))
        assert saved.state.algorithm.replay.sum() == size
        assert tracemalloc.get_traced_memory()[1] < size * 1.1
    finally:
        tracemalloc.stop()


def test_a_signal_during_a_save_waits_for_its_end(tmp_path):
    exp = experiment()
    state, engine = fresh(exp, tmp_path)
    stop, events = Stop(), []

    def save(state: State) -> float:
        stop.ask("SIGTERM")
        events.append("saved")
        return 0.0

    with pytest.raises(Interrupted):
        run_loop(exp, state, engine, stop, lambda *_: None, save)
    assert events == ["saved"]
    assert not state.pending.done.any()
