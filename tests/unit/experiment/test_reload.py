"""Reload files: torn, foreign and old ones; what is kept."""

import hashlib
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from small_runs import experiment, fresh

from qdsweep.cli import main
from qdsweep.errors import BadInput
from qdsweep.experiment import reload
from qdsweep.experiment.loop import run_loop
from qdsweep.experiment.state import State
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.records.paths import StateDir


class TestReloadFiles:
    versions = {"numpy": "1"}  # noqa: RUF012

    def save(self, folder: Path, iterations: int) -> Path:
        state, _ = fresh(experiment(), folder)
        state.iterations = iterations
        return reload.save(state, StateDir(folder), "print", self.versions)

    def test_two_are_kept_and_the_newest_is_read(self, tmp_path):
        for iterations in (1, 2, 3):
            self.save(tmp_path, iterations)
        assert len(list(tmp_path.glob("reload-*.pkl"))) == 2
        assert reload.newest(StateDir(tmp_path), "print", self.versions).state.iterations == 3

    @pytest.mark.parametrize("place", [0, 0.1, 0.5, 0.999])
    @pytest.mark.parametrize("damage", ["truncated", "flipped"])
    def test_a_spoilt_one_is_passed_over(self, tmp_path, caplog, place, damage):
        self.save(tmp_path, 1)
        path = self.save(tmp_path, 2)
        content = bytearray(path.read_bytes())
        at = int(place * len(content))
        if damage == "flipped":
            content[at] ^= 1
        path.write_bytes(content[:at] if damage == "truncated" else content)
        assert reload.newest(StateDir(tmp_path), "print", self.versions).state.iterations == 1
        assert "passed over" in caplog.text

    def test_a_save_outlives_spoilt_files_of_later_iterations(self, tmp_path):
        """A run that goes back makes progress from there, whatever stands in its way."""
        for iterations in (7, 8):
            self.save(tmp_path, iterations).write_bytes(b"")
        path = self.save(tmp_path, 3)
        assert list(tmp_path.glob("reload-*.pkl")) == [path]
        assert reload.newest(StateDir(tmp_path), "print", self.versions).state.iterations == 3

    def test_one_of_another_experiment_is_refused(self, tmp_path):
        self.save(tmp_path, 1)
        with pytest.raises(BadInput, match="another experiment"):
            reload.newest(StateDir(tmp_path), "other", self.versions)

    def test_other_versions_are_refused_unless_allowed(self, tmp_path):
        self.save(tmp_path, 1)
        with pytest.raises(BadInput, match=r"numpy 1 -> 2.*--allow-version-change"):
            reload.newest(StateDir(tmp_path), "print", {"numpy": "2"})
        found = reload.newest(
            StateDir(tmp_path), "print", {"numpy": "2"}, allow_version_change=True
        )
        assert found.state.iterations == 1

    def test_a_library_that_is_only_on_one_machine_is_none_that_the_run_uses(self, tmp_path):
        self.save(tmp_path, 1)
        for versions in ({}, {**self.versions, "mujoco": "3.3.7"}):
            assert reload.newest(StateDir(tmp_path), "print", versions).state.iterations == 1


class Exotic:
    """What a user's own algorithm may keep: its module is no plug-in here."""


class TestWhoseTheyAre:
    @pytest.fixture(autouse=True)
    def home(self, tmp_path, monkeypatch) -> None:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))

    @pytest.fixture
    def run(self, tmp_path) -> StateDir:
        (tmp_path / "run/state").mkdir(parents=True)
        return StateDir(tmp_path / "run/state")

    def save(self, run: StateDir, exotic: bool = False) -> Path:
        state, _ = fresh(experiment(), run.path)
        if exotic:
            state.algorithm.exotic = Exotic()
        return reload.save(state, run, "print", {})

    def read(self, run: StateDir) -> State | None:
        found = reload.newest(run, "print", {})
        return found and found.state

    def with_another_key(self, monkeypatch, tmp_path) -> None:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "other"))

    def without_digest(self, path: Path) -> None:
        """As releases up to format 2 have written it."""
        magic, head, payload = path.read_bytes().split(b"\n", 2)
        header = {**json.loads(head), "format": 2}
        for name in ("sha256", "hmac"):
            del header[name]
        sum_ = hashlib.sha256(json.dumps(header, sort_keys=True).encode() + payload)
        head = json.dumps({**header, "sha256": sum_.hexdigest()}).encode()
        path.write_bytes(b"\n".join((magic, head, payload)))

    def test_of_ones_own_anything_is_loaded(self, run):
        self.save(run, exotic=True)
        assert isinstance(self.read(run).algorithm.exotic, Exotic)

    def test_a_copy_of_anothers_goes_on_with_known_names(self, run, tmp_path, monkeypatch):
        self.save(run)
        self.with_another_key(monkeypatch, tmp_path)
        assert self.read(run) is not None

    def test_one_of_an_earlier_release_goes_on(self, run):
        self.without_digest(self.save(run))
        assert self.read(run) is not None

    def test_with_a_name_that_is_not_known_it_must_be_adopted(self, run, tmp_path, monkeypatch):
        self.save(run, exotic=True)
        self.with_another_key(monkeypatch, tmp_path)
        with pytest.raises(BadInput, match=r"reload-0.*test_reload.Exotic.*qdsweep adopt"):
            self.read(run)
        assert main(["adopt", str(run.path.parent)]) == 0
        assert isinstance(self.read(run).algorithm.exotic, Exotic)

    @pytest.mark.parametrize("writable", ["file", "folder"])
    def test_one_that_others_can_write_must_be_adopted(self, run, writable):
        path = self.save(run)
        self.without_digest(path)
        (path if writable == "file" else run.path).chmod(0o777)
        with pytest.raises(BadInput, match=r"another user .* can write it.*qdsweep adopt"):
            self.read(run)
        assert main(["adopt", str(run.path.parent)]) == 0
        assert self.read(run) is not None

    def test_ones_own_is_found_where_others_can_write(self, run):
        path = self.save(run, exotic=True)
        for place in (path, run.path):
            place.chmod(0o777)
        assert isinstance(self.read(run).algorithm.exotic, Exotic)

    def test_a_digest_is_of_these_very_bytes(self, run):
        path = self.save(run, exotic=True)
        content = path.read_bytes()
        self.without_digest(path)
        own = json.loads(content.split(b"\n", 2)[1])["hmac"]
        magic, head, payload = path.read_bytes().split(b"\n", 2)
        head = json.dumps({**json.loads(head), "hmac": own}).encode()
        path.write_bytes(b"\n".join((magic, head, payload)))
        with pytest.raises(BadInput, match=r"lacks your digest"):
            self.read(run)

    def test_nothing_to_adopt_and_no_key(self, run, tmp_path, monkeypatch, capsys):
        assert main(["adopt", str(run.path.parent)]) == 2
        self.save(run)
        (tmp_path / "none").touch()
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
        assert main(["adopt", str(run.path.parent)]) == 2
        assert f"{tmp_path}/none/qdsweep/key" in capsys.readouterr().err


def test_writing_and_reading_one_needs_no_copy_of_it(tmp_path):
    """A replay buffer may be as big as the rest of the memory."""
    size = 50_000_000
    state, _ = fresh(experiment(), tmp_path)
    state.algorithm.replay = np.ones(size, dtype=np.uint8)
    tracemalloc.start()
    try:
        reload.save(state, StateDir(tmp_path), "print", {})
        assert tracemalloc.get_traced_memory()[1] < size / 10
        found = reload.newest(StateDir(tmp_path), "print", {})
        assert found.state.algorithm.replay.sum() == size
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
