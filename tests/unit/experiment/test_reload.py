"""Reload files: torn, foreign and old ones; what is kept."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from small_runs import experiment, fresh

from qdsweep.errors import BadInput
from qdsweep.experiment import reload
from qdsweep.experiment.loop import search
from qdsweep.experiment.state import State
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.records.run_dir import StateDir


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
        assert reload.newest(StateDir(tmp_path), "print", self.versions).iterations == 3

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
        assert reload.newest(StateDir(tmp_path), "print", self.versions).iterations == 1
        assert "passed over" in caplog.text

    def test_a_save_outlives_spoilt_files_of_later_iterations(self, tmp_path):
        """A run that goes back makes progress from there, whatever stands in its way."""
        for iterations in (7, 8):
            self.save(tmp_path, iterations).write_bytes(b"")
        path = self.save(tmp_path, 3)
        assert list(tmp_path.glob("reload-*.pkl")) == [path]
        assert reload.newest(StateDir(tmp_path), "print", self.versions).iterations == 3

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
        assert found.iterations == 1


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
        assert found.algorithm.replay.sum() == size
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
        search(exp, state, engine, stop, lambda *_: None, save)
    assert events == ["saved"]
    assert not state.pending.done.any()
