"""history.npz tells the archive of any earlier iteration, also of gradients and after a kill."""

import json
import multiprocessing
import os
import random
import signal
from contextlib import suppress

import numpy as np
import pytest
from support import TINY
from waiting import wait_until

from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.errors import BadInput
from qdsweep.experiment.run import compute
from qdsweep.experiment.stop import Interrupted, Stop
from qdsweep.records.history import ROW, read_history
from qdsweep.records.metrics import read_rows
from qdsweep.records.paths import RunDir

CHANGES = {
    "grid, result archive": {},
    "cvt": {"algorithm": "cvt_map_elites", "archive": {"cells": 60}},
    "two batches an iteration": {"algorithm": "cma_maega", "batch_size": 4},
}


def run(out, iterations, change):
    (out / "state").mkdir(parents=True, exist_ok=True)
    keys = {key: value for key, value in TINY.items() if key not in change}
    compute(compose({**keys, **change}, {"iterations": iterations}), RunDir(out), Cluster(), Stop())
    RunDir(out).publish()
    with np.load(out / "archive.npz") as arrays:
        return arrays["index"], arrays["objective"]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_it_gives_the_archive_of_every_shorter_run(tmp_path, change):
    run(tmp_path / "long", 9, change)
    history = read_history(RunDir(tmp_path / "long"))
    assert history is not None
    for iterations in (1, 4, 9):
        cells, objectives = history.at(iterations)
        index, objective = run(tmp_path / str(iterations), iterations, change)
        np.testing.assert_array_equal(cells, index)
        np.testing.assert_array_equal(objectives, objective)
    assert len(history.at(0)[0]) == 0


def test_a_longer_budget_goes_on_with_it(tmp_path):
    run(tmp_path / "straight", 9, {})
    run(tmp_path / "out", 4, {})
    run(tmp_path / "out", 9, {})
    same_histories(tmp_path / "straight", tmp_path / "out")


def same_histories(straight, out):
    one, other = read_history(RunDir(straight)), read_history(RunDir(out))
    assert one is not None and other is not None
    for name in ("iteration", "index", "objective"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert not (out / "state/history.bin").exists()


def interruptible_run(out, iterations, change):
    """In a process of its own: SIGTERM saves in the middle of an iteration."""
    with Stop() as stop, suppress(Interrupted):
        compute(
            compose({**TINY, **change}, {"iterations": iterations}), RunDir(out), Cluster(), stop
        )


def test_kills_at_random_iterations_leave_the_history_of_a_run_with_gradients(tmp_path):
    """SIGKILL and SIGTERM: an iteration has two batches, and ends may lie in both."""
    change = {**CHANGES["two batches an iteration"], "reload": {"min_seconds": 0.02}}
    run(tmp_path / "straight", 1500, change)  # and has all compiled for what is forked
    out = tmp_path / "out"
    (out / "state").mkdir(parents=True)
    chance = random.Random(4)
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        before = len(read_rows(out / "state/metrics.csv"))
        enough = before + chance.randrange(1, 300)
        process = multiprocessing.get_context("fork").Process(
            target=interruptible_run, args=(out, 1500, change)
        )
        process.start()
        wait_until(lambda n=enough: len(read_rows(out / "state/metrics.csv")) > n, what="rows")
        os.kill(process.pid, number)
        process.join()
        assert process.exitcode == (0 if number == signal.SIGTERM else -number)
        assert not (out / "state/summary.json").exists()
    run(out, 1500, change)
    same_histories(tmp_path / "straight", out)
    attempts = json.loads((out / "summary.json").read_text())["attempts"]
    assert [each["how"] for each in attempts] == [
        "killed", "SIGTERM", "SIGTERM", "killed", "finished",
    ]  # fmt: skip
    # SIGKILL may have come before the first reload file; SIGTERM writes one.
    assert all(each["from"] > 0 for each in attempts[2:])


def test_archives_without_cells_have_none(tmp_path):
    novelty = {"preset": "novelty_search", "result_archive": False}
    run(tmp_path, 3, {"algorithm": novelty})
    assert read_history(RunDir(tmp_path)) is None


def test_a_run_of_an_older_release_has_none_but_goes_on(tmp_path):
    run(tmp_path, 3, {})
    (tmp_path / "state/history.npz").unlink()
    (tmp_path / "history.npz").unlink()
    run(tmp_path, 5, {})
    assert read_history(RunDir(tmp_path)) is None


@pytest.mark.parametrize("moment", ["finished", "under way"])
@pytest.mark.parametrize("damage", ["torn", "empty", "foreign", "shorter"])
def test_a_torn_history_does_not_stop_a_run(tmp_path, caplog, damage, moment):
    whole = run(tmp_path / "straight", 6, {})
    run(tmp_path / "out", 4, {})
    history = tmp_path / "out/state/history.npz"
    with np.load(history) as file:
        arrays = dict(file)
    if moment == "under way":
        history.unlink()
        history = history.with_suffix(".bin")
        rows = np.rec.fromarrays([arrays[name] for name in ROW.names], dtype=ROW)
        history.write_bytes(rows.tobytes())
    content = history.read_bytes()
    if damage == "torn":
        history.write_bytes(content[: len(content) // 2])
    elif damage == "empty":
        history.write_bytes(b"")
    elif damage == "foreign":
        history.write_bytes(b"\xff" * 160)
    elif moment == "under way":
        history.write_bytes(content[: -ROW.itemsize])
    else:
        np.savez(history, **{name: values[:-1] for name, values in arrays.items()})
    with caplog.at_level("WARNING"):
        again = run(tmp_path / "out", 6, {})
    np.testing.assert_array_equal(again, whole)
    assert f"{history} is torn" in caplog.text
    assert read_history(RunDir(tmp_path / "out")) is None


def test_reading_a_torn_one_is_bad_input(tmp_path):
    (tmp_path / "history.npz").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(BadInput, match=r"history.npz is damaged .*: remove it; figures"):
        read_history(RunDir(tmp_path))
