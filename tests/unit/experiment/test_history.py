"""history.npz gives the archive of any earlier iteration; a truncated file is only dropped."""

import numpy as np
import pytest
from in_process import compute_run
from refusals import refused
from support import TINY

from qdsweep.records.history import ROW, read_history
from qdsweep.records.paths import RunDir

CHANGES = {
    "grid, result archive": {},
    "cvt": {"algorithm": "cvt_map_elites", "archive": {"cells": 60}},
    "two batches an iteration": {"algorithm": "cma_maega", "batch_size": 4},
}


def run(out, iterations, change):
    compute_run({**TINY, **change, "iterations": iterations}, out)
    with np.load(out / "archive.npz") as arrays:
        return arrays["index"], arrays["objective"]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_it_gives_the_archive_of_every_shorter_run(tmp_path, change):
    run(tmp_path / "long", 9, change)
    history = read_history(RunDir(tmp_path / "long"))
    assert history is not None
    for iterations in (1, 4, 9):
        shorter = run(tmp_path / str(iterations), iterations, change)
        np.testing.assert_array_equal(history.at(iterations), shorter)
    assert len(history.at(0)[0]) == 0


def npz(path):
    """Returns the history after the end of a run."""
    return path.read_bytes()


def raw(path):
    """Returns the history during a run."""
    with np.load(path) as arrays:
        content = np.rec.fromarrays([arrays[name] for name in ROW.names], dtype=ROW).tobytes()
    path.unlink()
    return content


DAMAGES = {
    "torn": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "foreign": lambda content: b"\xff" * 160,
    "shorter": lambda content: content[: -ROW.itemsize],
}


@pytest.mark.parametrize("moment", [npz, raw])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_truncated_history_does_not_stop_a_run(tmp_path, caplog, damage, moment):
    straight = run(tmp_path / "straight", 6, {})
    run(tmp_path / "out", 4, {})
    history = tmp_path / "out/state/history.npz"
    content = moment(history)
    if moment is raw:
        history = history.with_suffix(".bin")
    history.write_bytes(DAMAGES[damage](content))
    with caplog.at_level("WARNING"):
        resumed = run(tmp_path / "out", 6, {})
    np.testing.assert_array_equal(resumed, straight)
    assert str(history) in caplog.text
    assert read_history(RunDir(tmp_path / "out")) is None


def test_a_history_that_lacks_rows_does_not_stop_a_run(tmp_path):
    """Complete arrays of another run, and no file, as after an older release."""
    straight = run(tmp_path / "straight", 6, {})
    run(tmp_path / "short", 2, {})
    other = tmp_path / "short/history.npz"
    for name, content in (("foreign", other.read_bytes()), ("none", None)):
        out = tmp_path / name
        run(out, 4, {})
        (out / "history.npz").unlink()
        (out / "state/history.npz").unlink()
        if content:
            (out / "state/history.npz").write_bytes(content)
        np.testing.assert_array_equal(run(out, 6, {}), straight)
        assert read_history(RunDir(out)) is None


def test_reading_a_truncated_history_is_bad_input(tmp_path):
    (tmp_path / "history.npz").write_bytes(b"PK\x03\x04 and no more")
    with refused("history.npz"):
        read_history(RunDir(tmp_path))
