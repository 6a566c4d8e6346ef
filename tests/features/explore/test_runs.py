"""The runs of the page: by sweep, id or folder, each once, and of every group."""

import base64
import json
import os
import re
import shutil

import pytest
from exploring import served
from in_process import compute_sweep, qdsweep
from looks import data_of
from refusals import names_all, refused
from support import TINY

from qdsweep.features.compare.several import compare_sweeps
from qdsweep.features.explore import page as page_module
from qdsweep.features.explore import shown_runs as module
from qdsweep.features.explore.packed import index
from qdsweep.features.explore.page import embedded
from qdsweep.features.explore.shown_runs import choose_runs
from qdsweep.records.paths import Results, RunDir

EXPERIMENT = {**TINY, "iterations": 2}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "results"
    compute_sweep(folder, EXPERIMENT, "::: algorithm map_elites cma_me ::: seed 1 2 3", name="two")
    compute_sweep(folder, EXPERIMENT, "::: algorithm cma_me ::: seed 1 4", name="one")
    return Results(folder)


def labels(chosen):
    return [run.label for run in chosen.runs]


def test_a_sweep_has_the_labels_and_colors_of_its_figures(results):
    chosen = choose_runs(results, ["two"])
    assert labels(chosen) == [
        f"{name}, seed {n}" for name in ("MAP-Elites", "CMA-ME") for n in (1, 2, 3)
    ]
    assert len({run.color for run in chosen.runs[:3]}) == 1
    assert chosen.runs[0].color != chosen.runs[3].color
    assert chosen.notes == [] and chosen.title == "two"


def test_a_browser_knows_all_colors(results):
    (run,) = choose_runs(results, ["two"]).runs[:1]
    assert index([run._replace(color="tab:orange")])["runs"][0]["color"] == "#ff7f0e"


def test_without_a_name_it_is_the_last_sweep(results):
    with served(cwd=results.path.parent) as page:
        assert page.index()["title"] == "one"
        assert page.ask("/tests")[0] == 404


def test_groups_of_several_sweeps_are_tested_as_by_compare(results, tmp_path):
    results = Results(shutil.copytree(results.path, tmp_path / "results"))
    text = "::: algorithm map_elites cma_me ::: seed 4 5 6"
    compute_sweep(results.path, EXPERIMENT, text, name="three")
    with served("one", "two", "three", cwd=tmp_path) as page:
        assert page.index()["sweeps"] == ["one", "two", "three"]
        tests = json.loads(page.get("/tests"))
    sheet = compare_sweeps(results, ["one", "two", "three"]).comparisons
    assert tests["columns"] == sheet.columns
    assert tests["rows"] == [[cell.text for cell in row] for row in sheet.rows] != []
    names_all(" ".join(tests["notes"]), sheet.note, "2 runs")


def test_a_run_of_several_names_is_shown_once(results):
    one, two = choose_runs(results, ["one"]), choose_runs(results, ["two"])
    shared = {run.path for run in one.runs} & {run.path for run in two.runs}
    (path,) = shared
    chosen = choose_runs(results, [path.name, str(path), "one", "two"])
    assert len(chosen.runs) == 2 + 6 - 1
    assert labels(chosen)[:2] == ["CMA-ME, seed 1", "CMA-ME, seed 4"]
    assert chosen.sweeps == ["one", "two"]


def test_of_a_large_sweep_every_group_is_shown(results, monkeypatch):
    monkeypatch.setattr(module, "MAX_MAPS", 3)
    chosen = choose_runs(results, ["two"])
    assert labels(chosen) == ["MAP-Elites, seed 1", "MAP-Elites, seed 2", "CMA-ME, seed 1"]
    names_all(chosen.notes[0], "3 of 6")


def test_unfinished_runs_take_no_place_in_a_report(results, tmp_path, monkeypatch):
    folder = Results(shutil.copytree(results.path, tmp_path / "results"))
    for run in choose_runs(folder, ["two"]).runs[:2]:
        RunDir(run.path).summary.unlink()
    monkeypatch.setattr(page_module, "MAX_MAPS", 3)
    maps = embedded(data_of(folder.sweep("two").path)).html
    (packed,) = re.findall(r'id="explore/index">([^<]*)<', maps)
    assert len(json.loads(base64.b64decode(packed))["runs"]) == 3


def test_runs_that_are_not_finished_are_counted(results, tmp_path):
    folder = shutil.copytree(results.path, tmp_path / "results")
    for run in choose_runs(Results(folder), ["two"]).runs[:2]:
        (run.path / "summary.json").unlink()
    assert choose_runs(results, ["two"]).is_open is False
    chosen = choose_runs(Results(folder), ["two"])
    assert len(chosen.runs) == 6 and chosen.is_open
    names_all(chosen.notes[0], "4 of 6")
    for run in chosen.runs[:2]:
        shutil.rmtree(run.path)
    chosen = choose_runs(Results(folder), ["two"])
    assert len(chosen.runs) == 4 and chosen.is_open


def test_a_search_is_followed_before_it_has_runs(results, tmp_path):
    folder = Results(shutil.copytree(results.path, tmp_path / "results"))
    plan = folder.sweep("two").plan
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {"levels": []}))
    chosen = choose_runs(folder, ["two"])
    assert chosen.runs == [] and chosen.is_open
    names_all(chosen.notes[0], "two", "search")


def test_unknown_names_are_refused(results, tmp_path):
    with refused("twoo", "'two'"):
        choose_runs(results, ["twoo"])
    names_all(qdsweep("explore", "--results", "none", cwd=tmp_path, code=2), "none/")


def test_clean_removes_the_films_of_runs_that_are_gone(results, tmp_path):
    folder = Results(shutil.copytree(results.path, tmp_path / "results"))
    there, chosen = (run.path.name for run in choose_runs(folder, ["one"]).runs)
    for name in (there, chosen, "gone"):
        (folder.explore / name).mkdir(parents=True)
        (folder.explore / name / "7-0123.film").write_bytes(b"film")
        half = folder.explore / name / ".7-0123.film.1.tmp"
        half.write_bytes(b"half")
        os.utime(half, (0, 0))
    qdsweep("clean", cwd=tmp_path)
    left = sorted(path.relative_to(folder.explore) for path in folder.explore.rglob("*.*"))
    assert [str(path) for path in left] == sorted(f"{n}/7-0123.film" for n in (there, chosen))
    qdsweep("clean", "--runs", chosen, "--yes", cwd=tmp_path)
    assert [path.name for path in folder.explore.iterdir()] == [there]
