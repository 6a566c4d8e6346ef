"""Results from Python."""

import json
import shutil

import numpy as np
import pytest
from inventing import ITERATIONS, SEEDS, write_plan
from refusals import refused

from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.records.paths import Results
from qdsweep.runs.load import load, load_elites, load_sweep

RUNS = [(name, seed) for name in ("wide", "narrow") for seed in SEEDS]


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
    with refused("other", "main", invented.results):
        load_sweep("other", invented.results)


def test_the_table_of_a_sweep_is_suggested_where_it_is_read_as_a_run(invented, main, monkeypatch):
    for name in ("main", invented.results / "sweeps/main"):
        with refused("load_sweep('main')"):
            load(name, invented.results)
    with refused(f"load_sweep('main', '{invented.results}')"):
        load(invented.results / "sweeps/main")
    monkeypatch.chdir(invented.results)
    with refused(invented.results / "results"):
        load_sweep("main")


def test_a_run_is_also_found_by_its_id_and_by_its_name_in_a_sweep(invented, main):
    wide = invented.ids["wide", 1]
    assert load(wide, invented.results).path == invented.runs / wide
    assert load("wide, seed 1", invented.results).path == invented.runs / wide
    with refused("'wide, seed 9'", "'wide, seed ", invented.results):
        load("wide, seed 9", invented.results)
    with refused(f"'{wide}'"):  # the nearest
        load(wide.replace("-0123", "-0124"), invented.results)


def test_a_name_of_several_runs_lists_their_ids(invented, tmp_path):
    ids = [invented.ids[name, 1] for name in ("wide", "narrow")]
    for name, run in zip(("first", "second"), ids, strict=True):
        write_plan(tmp_path, name, ["sigma", "seed"], [({"sigma": 1, "seed": 1}, run, 30, None)])
    with refused("first", "second", *ids):
        load("sigma 1, seed 1", tmp_path)


def test_the_elites_of_a_sweep_are_a_table(invented, main):
    table = load_elites("main", invented.results)
    swept = ["algorithm", "seed", "id"]
    named = ["row", "index", "objective", "sum 1", "sum 2", "objective_std"]
    assert list(table) == [*swept, *named]
    assert len(table) == sum(len(invented.archives[name, seed]) for name, seed in RUNS)
    for name, seed in RUNS:
        ours = table[(table["algorithm"] == name) & (table["seed"] == seed)]
        run = load(invented.ids[name, seed], invented.results)
        assert (ours["id"] == run.path.name).all()
        assert np.array_equal(ours["objective"], run.arrays["objective"])
        assert np.array_equal(ours[["sum 1", "sum 2"]], run.arrays["measures"])
        assert run.elite(ours["row"].iloc[-1]).objective == ours["objective"].iloc[-1]


def test_of_a_sweep_with_gaps_the_elites_of_finished_runs_are_a_table(invented, tmp_path):
    """A run that rows share counts once. Runs with other measures have other columns."""
    results = Results(tmp_path)
    results.runs.symlink_to(invented.runs)
    rows = [
        (
            {"objective": kind, "iterations": budget},
            invented.ids.get((kind, 1), "gone"),
            budget,
            None,
        )
        for kind, budget in (("wide", 10), ("wide", 30), ("line", 30), ("lost", 30))
    ]
    sweep = write_plan(tmp_path, "gaps", ["objective", "iterations"], rows)
    aggregate(sweep, invented.runs)
    table = load_elites("gaps", tmp_path)
    assert list(table)[:3] == ["objective", "iterations", "id"]
    assert set(zip(table["objective"], table["iterations"], strict=True)) == {
        ("wide", 30),
        ("line", 30),
    }
    counts = table.groupby("objective")[["objective_elite", "sum 1", "sum 2"]].count()
    wide, line = (len(invented.archives[name, 1]) for name in ("wide", "line"))
    assert counts.loc["wide"].tolist() == [wide, wide, wide]
    assert counts.loc["line"].tolist() == [line, line, 0]
