"""Results from Python."""

import json
import shutil

import numpy as np
import pytest
from inventing import ITERATIONS
from refusals import refused

from qdsweep.experiment.load import load, load_sweep


@pytest.mark.parametrize("name", ["wide", "cvt", "sliding", "proximity", "line", "cube"])
def test_load_rebuilds_the_archive_cell_by_cell(invented, name):
    run = load(invented.runs / invented.ids[name, 1])
    original = invented.archives[name, 1]
    ours, theirs = (
        {field: values[np.argsort(archive.data("index"))] for field, values in data.items()}
        for archive, data in ((run.archive, run.archive.data()), (original, original.data()))
    )
    for field in theirs.keys() - {"threshold"}:  # index, elites and the domain's fields
        np.testing.assert_array_equal(ours[field], theirs[field])
    assert type(run.archive) is type(original)
    assert float(run.archive.stats.qd_score) == pytest.approx(float(original.stats.qd_score))
    if name != "proximity":  # new measures also belong to the same cells
        probes = np.random.default_rng(0).uniform(-20, 20, (200, run.archive.measure_dim))
        np.testing.assert_array_equal(run.archive.index_of(probes), original.index_of(probes))
    assert run.config["seed"] == 1
    assert len(run.metrics) == ITERATIONS


def test_what_is_no_finished_run_is_refused(invented, tmp_path):
    with refused(tmp_path / "nowhere"):
        load(tmp_path / "nowhere")
    (tmp_path / "summary.json").write_text("{}")
    with refused(tmp_path, "snakemake"):
        load(tmp_path)


def test_an_archive_of_another_run_is_refused(invented, tmp_path):
    run = shutil.copytree(invented.runs / invented.ids["wide", 1], tmp_path / "run")
    summary = json.loads((run / "summary.json").read_text())
    summary["archive"]["dims"] = [5, 5]
    (run / "summary.json").write_text(json.dumps(summary))
    with refused("archive.npz", "summary.json"):
        _ = load(run).archive


def test_load_sweep(invented, main):
    assert len(load_sweep("main", invented.results)) == 6
    with refused("other", "main"):
        load_sweep("other", invented.results)
