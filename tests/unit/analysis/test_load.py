"""Results from Python."""

import json

import numpy as np
import pytest
from inventing import ITERATIONS

from qdsweep.errors import BadInput
from qdsweep.experiment.load import load, load_sweep


@pytest.mark.parametrize("name", ["wide", "cvt", "sliding", "proximity", "line", "cube"])
def test_load_rebuilds_the_archive_cell_by_cell(invented, name):
    run = load(invented.runs / invented.ids[name, 1])
    original = invented.archives[name, 1]
    ours, theirs = (
        {field: values[np.argsort(archive.data("index"))] for field, values in data.items()}
        for archive, data in ((run.archive, run.archive.data()), (original, original.data()))
    )
    for field in theirs.keys() - {"threshold"}:  # Index, elites and the domain's own fields.
        np.testing.assert_array_equal(ours[field], theirs[field])
    assert type(run.archive) is type(original)
    assert float(run.archive.stats.qd_score) == pytest.approx(float(original.stats.qd_score))
    if name != "proximity":  # New measures fall into the same cells, too.
        probes = np.random.default_rng(0).uniform(-20, 20, (200, run.archive.measure_dim))
        np.testing.assert_array_equal(run.archive.index_of(probes), original.index_of(probes))
    assert run.config["seed"] == 1
    assert len(run.metrics) == ITERATIONS


def test_load_says_what_is_missing(invented, tmp_path):
    with pytest.raises(BadInput, match="nowhere does not exist"):
        load(tmp_path / "nowhere")
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(BadInput, match="not a finished run"):
        load(tmp_path)


def test_load_refuses_an_archive_of_another_run(invented, tmp_path):
    for name in ("metrics.csv", "config.yaml", "archive.npz"):
        source = invented.runs / invented.ids["wide", 1] / name
        (tmp_path / name).write_bytes(source.read_bytes())
    summary = json.loads((invented.runs / invented.ids["wide", 1] / "summary.json").read_text())
    summary["archive"]["dims"] = [5, 5]
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    with pytest.raises(BadInput, match="do not fit the cells"):
        _ = load(tmp_path).archive


def test_load_sweep(invented, main):
    assert len(load_sweep("main", invented.results)) == 6
    with pytest.raises(BadInput, match="main"):
        load_sweep("other", invented.results)
