"""Searches by the real Snakefile: the same decisions on any number of cores."""

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from counting import EXPERIMENT, add_plugin, evaluated
from in_process import qdsweep
from results import read_json, search_results, summary
from support import snakemake, write_yaml

GRID = "::: domain.arguments.slope 1 2 13 ::: iso_sigma 0.05 0.2 0.8 ::: seed 1 2 3"
DRAWN = ":::~ iso_sigma log 0.01 2 :::~ line_sigma log 0.01 1 ::: seed 1 2"
# What a test asks for that does not look at figures and pages, which take the longest.
TABLE = "results/sweeps/mine/table.csv"


def write_config(folder: Path, sweep: str = GRID, **further) -> Path:
    add_plugin(folder)
    keys = {"search": {"halving": {}}, **further}
    return write_yaml(
        folder / "mine.yaml", {"name": "mine", "experiment": EXPERIMENT, "sweep": sweep, **keys}
    )


def start(folder: Path, *words: object, cores: int = 2, check: int | None = 0, **env: str) -> str:
    """Starts the sweep of a folder and returns what was said."""
    words = (TABLE, *words, "--cores", cores, "--configfile", folder / "mine.yaml")
    done = snakemake(*words, cwd=folder, check=check, **env)
    return done.stdout + done.stderr


def decision(folder: Path, level: str, block: int = 0) -> dict:
    return read_json(folder / f"results/sweeps/mine/search/{level}/decided-{block}.json")


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    write_config(folder)
    planned = start(folder, "--dry-run")
    said = start(folder)
    for text in (planned, said):
        assert "mine: halving; 18 places, 0 done; 270 evaluations at most in a run" in text
        assert "to compute" in text
    (folder / "planned.txt").write_text(planned)
    (folder / "said.txt").write_text(said)
    return folder


def test_the_plan_is_what_is_computed(finished):
    planned, said = ((finished / f"{name}.txt").read_text() for name in ("planned", "said"))
    assert jobs(planned) == jobs(said)
    assert f"{sum(jobs(said).values())} of {sum(jobs(said).values())} steps (100%) done" in said
    assert jobs(said)["search_place"] == 9 + 3 * 2 + 3
    # Rung 0: six settings that work have 30; rung 1: three, with a second seed; rung 2: one of
    # these, with a third.
    assert evaluated(finished) == 6 * 30 + 3 * (2 * 90 - 30) + 3 * 270 - 2 * 90
    assert "Nothing to be done" in start(finished, "--dry-run")


def jobs(said: str) -> dict[str, int]:
    """The table of jobs that Snakemake prints."""
    _, _, table = said.partition("Job stats:")
    lines = table.strip().splitlines()[2:]
    counts = {}
    for line in lines:
        name, count = line.split()
        if name == "total":
            return counts
        counts[name] = int(count)
    raise AssertionError(said)


def test_the_best_go_on_and_what_fails_ranks_last(finished):
    seen = decision(finished, "rung-1")["seen"]
    failed = [one for one in seen if one["failed"]]
    assert [one["values"]["domain.arguments.slope"] for one in failed] == [13, 13, 13]
    assert {one["failed"] for one in failed} == {"FloatingPointError in iteration 1"}
    assert {one["score"] for one in failed} == {None}
    best = sorted((one["score"] for one in seen if not one["failed"]), reverse=True)[:3]
    places = decision(finished, "rung-1")["places"]
    by_setting = {one["setting"]: one["score"] for one in seen}
    assert [by_setting[place["setting"]] for place in places] == best
    assert [place["reason"] for place in places] == ["1st of 9", "2nd of 9", "3rd of 9"]
    rows = read_json(finished / "results/sweeps/mine/search.json")["rows"]
    assert [row["values"]["seed"] for row in rows] == [1, 2, 3]
    assert {row["evaluations"] for row in rows} == {270}
    log = (finished / "results/sweeps/mine/logs/search/rung-2/0-s1.log").read_text()
    assert rows[0]["id"] in log and "ended with exit code 0" in log


def test_one_core_finds_the_same(finished, tmp_path):
    write_config(tmp_path)
    start(tmp_path, cores=1)
    assert search_results(tmp_path) == search_results(finished)


def test_more_samples_keep_what_was_decided(tmp_path):
    write_config(tmp_path, DRAWN, search={"samples": 9, "halving": {}})
    start(tmp_path)
    before, work = search_results(tmp_path), evaluated(tmp_path)
    write_config(tmp_path, DRAWN, search={"samples": 12, "halving": {}})
    said = start(tmp_path)
    assert "search.samples 9 -> 12" in said
    after = search_results(tmp_path)
    kept = {name for name in before if "/" in name and "rung-2" not in name}
    assert kept and {name: after[name] for name in kept} == {name: before[name] for name in kept}
    # Three more in rung 0, one more goes on, and one of four is the best instead of one of three.
    assert jobs(said)["search_place"] == 3 + 1 + 2
    assert evaluated(tmp_path) - work in (3 * 30 + 60, 3 * 30 + 60 + 180 + 270)


@pytest.fixture
def copy(finished, tmp_path) -> Path:
    folder = tmp_path / "copy"
    subprocess.run(["cp", "-a", finished, folder], check=True)
    return folder


def test_a_table_that_was_edited_or_torn_is_made_again(finished, copy):
    folder = copy / "results/sweeps/mine/search"
    edited, torn = folder / "rung-1/decided-0.json", folder / "rung-0/4-s1.json"
    edited.write_text(edited.read_text().replace("1st of 9", "2nd of 9"))
    torn.write_bytes(torn.read_bytes()[:100])
    (folder / "rung-2/decided-0.json").unlink()
    said = start(copy)
    for path in (edited, torn):
        assert f"{path.relative_to(copy)} is made again: it was edited or torn" in said
    assert search_results(copy) == search_results(finished)
    assert evaluated(copy) == evaluated(finished)
    assert "Nothing to be done" in start(copy, "--dry-run")


def test_a_run_that_was_removed_is_computed_again(finished, copy):
    row = read_json(copy / "results/sweeps/mine/search.json")["rows"][0]
    shutil.rmtree(copy / "results/runs" / row["id"])
    said = start(copy)
    assert f"its run {row['id']} was removed or damaged" in said
    assert search_results(copy) == search_results(finished)
    assert evaluated(copy) == evaluated(finished) + 270


def test_another_metric_decides_anew_and_computes_what_is_new_alone(finished, copy):
    write_config(copy, search={"halving": {"metric": "obj_max"}})
    said = start(copy)
    assert "search has changed (halving" in said
    assert decision(copy, "rung-1")["seen"][0]["score"] < 0
    assert evaluated(copy) < evaluated(finished) + 6 * 90 + 3 * 270


def test_a_plain_sweep_takes_the_runs_of_a_search_further(finished, copy):
    sweep = "::: domain.arguments.slope 1 2 ::: iso_sigma 0.05 0.2 0.8 ::: seed 1"
    data = {"name": "plain", "experiment": EXPERIMENT, "sweep": sweep}
    config = write_yaml(copy / "plain.yaml", data)
    table = "results/sweeps/plain/table.csv"
    snakemake(table, "--cores", 2, "--configfile", config, cwd=copy)
    # Seed 1 of one setting is whole, two stopped at 90, three at 30.
    assert evaluated(copy) == evaluated(finished) + 2 * 180 + 3 * 240


def test_a_person_sees_what_was_searched(finished, tmp_path):
    """Status, page, supplement and clean of a search with settings that fail."""
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder)
    said = qdsweep("status", "mine", cwd=folder)
    assert said.count(" of 9, 3 went on") == 3, "of six that work"
    assert "rung 2: 1st of 1" in said and "search: 18 of 18 places done" in said
    for stage in ("importance", "plot", "report"):
        qdsweep(stage, "mine", cwd=folder)
    page = (folder / "results/sweeps/mine/report.html").read_text()
    assert '<section id="search">' in page and "3 settings failed, and rank last: " in page
    assert "Karnin et al., 2013; Jamieson &amp; Talwalkar, 2016" in page
    qdsweep("export", "mine", cwd=folder)
    with zipfile.ZipFile(folder / "mine.zip") as packed:
        names = packed.namelist()
        assert len(names) == len(set(names))
        assert "mine/search/rung-1/decided-0.json" in names
        assert "THE SEARCH AGAIN" in packed.read("mine/README.txt").decode()
        assert "halving" in packed.read("mine/sweep.yaml").decode()
    assert "0 found" in qdsweep("clean", "--orphans", cwd=folder)


def test_an_archive_without_cells_is_ranked_by_its_qd_score(tmp_path):
    algorithm = {"preset": "novelty_search", "result_archive": False}
    changes = {"algorithm": algorithm, "initial_solutions": None}
    small = {key: value for key, value in {**EXPERIMENT, **changes}.items() if value is not None}
    add_plugin(tmp_path)
    search = {"halving": {"rungs": ["1/3", 1], "eta": 2}}
    data = {"name": "mine", "experiment": small, "sweep": "::: seed 1", "search": search}
    write_yaml(tmp_path / "mine.yaml", data)
    start(tmp_path)
    marker = read_json(tmp_path / "results/sweeps/mine/search/rung-1/0-s1.json")
    assert marker["score"] == summary(tmp_path / "results/runs" / marker["run"])["qd_score"]


def test_a_search_of_which_every_run_fails_says_so(tmp_path):
    write_config(tmp_path, "::: domain.arguments.slope 13 ::: iso_sigma 0.1 0.2 0.4")
    said = start(tmp_path, check=1)
    assert "search: no run came to its end: counting-map_elites_line-s0-" in said
    assert "FloatingPointError in iteration 1" in said
    assert "remove results/sweeps/mine/search to try all settings again" in said
