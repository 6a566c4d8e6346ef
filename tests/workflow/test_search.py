"""Searches with the real Snakefile make the same decisions on any number of cores."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from counting import EXPERIMENT, add_plugin, evaluated
from in_process import qdsweep
from refusals import names_all
from results import read_json, search_results, summary
from starting import jobs, planned, start
from support import snakemake, write_yaml

GRID = "::: domain.arguments.slope 1 2 13 ::: iso_sigma 0.05 0.2 0.8 ::: seed 1 2 3"
DRAWN = ":::~ iso_sigma log 0.01 2 :::~ line_sigma log 0.01 1 ::: seed 1 2"
# The targets of tests that do not need figures and pages, which take the longest.
TABLE = "results/sweeps/mine/table.csv"


def write_config(folder: Path, sweep: str = GRID, **further) -> Path:
    add_plugin(folder)
    keys = {"search": {"halving": {}}, **further}
    return write_yaml(
        folder / "mine.yaml", {"name": "mine", "experiment": EXPERIMENT, "sweep": sweep, **keys}
    )


def decision(folder: Path, level: str, block: int = 0) -> dict:
    return read_json(folder / f"results/sweeps/mine/search/{level}/decided-{block}.json")


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    write_config(folder)
    both = {"planned": planned(folder, TABLE), "started": jobs(start(folder, TABLE))}
    (folder / "jobs.json").write_text(json.dumps(both))
    return folder


def test_the_plan_is_what_is_computed(finished):
    both = read_json(finished / "jobs.json")
    assert both["planned"] == both["started"]
    assert both["started"]["search_place"] == 9 + 3 * 2 + 3
    # Rung 0: six working settings have 30; rung 1: three, with a second seed; rung 2: one of
    # these, with a third.
    assert evaluated(finished) == 6 * 30 + 3 * (2 * 90 - 30) + 3 * 270 - 2 * 90
    assert planned(finished, TABLE) == {}


def test_the_best_are_promoted_and_failures_rank_last(finished):
    seen = decision(finished, "rung-1")["seen"]
    failed = [place for place in seen if place["failed"]]
    assert [place["values"]["domain.arguments.slope"] for place in failed] == [13, 13, 13]
    assert all("FloatingPointError" in place["failed"] for place in failed)
    assert {place["score"] for place in failed} == {None}
    best = sorted((place["score"] for place in seen if not place["failed"]), reverse=True)[:3]
    places = decision(finished, "rung-1")["places"]
    by_setting = {place["setting"]: place["score"] for place in seen}
    assert [by_setting[place["setting"]] for place in places] == best
    rows = read_json(finished / "results/sweeps/mine/search.json")["rows"]
    assert [row["values"]["seed"] for row in rows] == [1, 2, 3]
    assert {row["evaluations"] for row in rows} == {270}
    log = (finished / "results/sweeps/mine/logs/search/rung-2/0-s1.log").read_text()
    assert rows[0]["id"] in log


def test_one_core_finds_the_same(finished, tmp_path):
    write_config(tmp_path)
    start(tmp_path, TABLE, cores=1)
    assert search_results(tmp_path) == search_results(finished)


def test_more_samples_keep_what_was_decided(tmp_path):
    write_config(tmp_path, DRAWN, search={"samples": 9, "halving": {}})
    start(tmp_path, TABLE)
    before, work = search_results(tmp_path), evaluated(tmp_path)
    write_config(tmp_path, DRAWN, search={"samples": 12, "halving": {}})
    started = jobs(start(tmp_path, TABLE))
    after = search_results(tmp_path)
    kept = {name for name in before if "/" in name and "rung-2" not in name}
    assert kept and {name: after[name] for name in kept} == {name: before[name] for name in kept}
    # Three more in rung 0, one more promoted, and one of four is the best instead of one of three.
    assert started["search_place"] == 3 + 1 + 2
    assert evaluated(tmp_path) - work in (3 * 30 + 60, 3 * 30 + 60 + 180 + 270)


def test_an_edited_or_truncated_table_is_rebuilt(finished, copy):
    folder = copy / "results/sweeps/mine/search"
    edited, torn = folder / "rung-1/decided-0.json", folder / "rung-0/4-s1.json"
    edited.write_text(edited.read_text().replace('"reason": "', '"reason": "not '))
    torn.write_bytes(torn.read_bytes()[:100])
    (folder / "rung-2/decided-0.json").unlink()
    names_all(start(copy, TABLE), edited.relative_to(copy), torn.relative_to(copy))
    assert search_results(copy) == search_results(finished)
    assert evaluated(copy) == evaluated(finished)
    assert planned(copy, TABLE) == {}


def test_a_run_that_was_removed_is_computed_again(finished, copy):
    row = read_json(copy / "results/sweeps/mine/search.json")["rows"][0]
    shutil.rmtree(copy / "results/runs" / row["id"])
    names_all(start(copy, TABLE), row["id"])
    assert search_results(copy) == search_results(finished)
    assert evaluated(copy) == evaluated(finished) + 270


def test_another_metric_repeats_the_decisions_and_computes_only_new_runs(finished, copy):
    write_config(copy, search={"halving": {"metric": "obj_max"}})
    names_all(start(copy, TABLE), "halving", "obj_max")
    assert decision(copy, "rung-1")["seen"][0]["score"] < 0
    assert evaluated(copy) < evaluated(finished) + 6 * 90 + 3 * 270


def test_a_plain_sweep_takes_the_runs_of_a_search_further(finished, copy):
    sweep = "::: domain.arguments.slope 1 2 ::: iso_sigma 0.05 0.2 0.8 ::: seed 1"
    data = {"name": "plain", "experiment": EXPERIMENT, "sweep": sweep}
    config = write_yaml(copy / "plain.yaml", data)
    table = "results/sweeps/plain/table.csv"
    snakemake(table, "--cores", 2, "--configfile", config, cwd=copy)
    # Seed 1 of one setting has the full budget, two stopped at 90, three at 30.
    assert evaluated(copy) == evaluated(finished) + 2 * 180 + 3 * 240


def test_a_person_sees_what_was_searched(copy):
    """Status, page, supplement and clean of a search with settings that fail."""
    names_all(qdsweep("status", "mine", cwd=copy), "18 of 18")
    for stage in ("importance", "plot", "report"):
        qdsweep(stage, "mine", cwd=copy)
    page = (copy / "results/sweeps/mine/report.html").read_text()
    names_all(page, '<section id="search">', "Karnin et al., 2013", "Talwalkar, 2016")
    qdsweep("export", "mine", cwd=copy)
    with zipfile.ZipFile(copy / "mine.zip") as packed:
        names = packed.namelist()
        assert len(names) == len(set(names))
        assert "mine/search/rung-1/decided-0.json" in names
        names_all(packed.read("mine/sweep.yaml").decode(), "halving")
    runs = sorted((copy / "results/runs").iterdir())
    qdsweep("clean", "--orphans", cwd=copy)
    assert sorted((copy / "results/runs").iterdir()) == runs


def test_an_archive_without_cells_is_ranked_by_its_qd_score(tmp_path):
    algorithm = {"preset": "novelty_search", "result_archive": False}
    changes = {"algorithm": algorithm, "initial_solutions": None}
    small = {key: value for key, value in {**EXPERIMENT, **changes}.items() if value is not None}
    add_plugin(tmp_path)
    search = {"halving": {"rungs": ["1/3", 1], "eta": 2}}
    data = {"name": "mine", "experiment": small, "sweep": "::: seed 1", "search": search}
    write_yaml(tmp_path / "mine.yaml", data)
    start(tmp_path, TABLE)
    marker = read_json(tmp_path / "results/sweeps/mine/search/rung-1/0-s1.json")
    assert marker["score"] == summary(tmp_path / "results/runs" / marker["run"])["qd_score"]


def test_a_search_of_which_every_run_fails_names_one_and_what_to_remove(tmp_path):
    write_config(tmp_path, "::: domain.arguments.slope 13 ::: iso_sigma 0.1 0.2 0.4")
    run, folder = "counting-map_elites_line-s0-", "results/sweeps/mine/search"
    names_all(start(tmp_path, TABLE, check=1), run, "FloatingPointError", folder)
