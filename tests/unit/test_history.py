"""history.npz tells the archive of any earlier iteration, also of gradients and after a kill."""

import numpy as np
import pytest
from support import TINY

from qdsweep.analysis.history import read_history
from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.experiment.outputs import publish
from qdsweep.experiment.run import compute
from qdsweep.experiment.stop import Stop

CHANGES = {
    "grid, result archive": {},
    "cvt": {"algorithm": "cvt_map_elites", "archive": {"cells": 60}},
    "two batches an iteration": {"algorithm": "cma_maega", "batch_size": 4},
}


def run(out, iterations, change):
    (out / "state").mkdir(parents=True, exist_ok=True)
    keys = {key: value for key, value in TINY.items() if key not in change}
    compute(compose({**keys, **change}, {"iterations": iterations}), out, Cluster(), Stop())
    publish(out)
    with np.load(out / "archive.npz") as arrays:
        return arrays["index"], arrays["objective"]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_it_gives_the_archive_of_every_shorter_run(tmp_path, change):
    run(tmp_path / "long", 9, change)
    history = read_history(tmp_path / "long")
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
    one, other = read_history(tmp_path / "straight"), read_history(tmp_path / "out")
    assert one is not None and other is not None
    for name in ("iteration", "index", "objective"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert not (tmp_path / "out/state/history.bin").exists()


def test_archives_without_cells_have_none(tmp_path):
    novelty = {"preset": "novelty_search", "result_archive": False}
    run(tmp_path, 3, {"algorithm": novelty})
    assert read_history(tmp_path) is None


def test_a_run_of_an_older_release_has_none_but_goes_on(tmp_path):
    run(tmp_path, 3, {})
    (tmp_path / "state/history.npz").unlink()
    (tmp_path / "history.npz").unlink()
    run(tmp_path, 5, {})
    assert read_history(tmp_path) is None
