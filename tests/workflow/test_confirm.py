"""Corrected archives and confirmed winners, by the real Snakefile on tiny sweeps."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from in_process import qdsweep
from patient import EXPERIMENT, add_plugin
from results import digest, read_json, summary
from support import snakemake, write_yaml

SWEEP = "::: iso_sigma 0.1 0.3 0.6 ::: seed 1 2"
FURTHER = {"confirm": {"top": 2, "seeds": [101, 102]}, "reevaluate": {"times": 3}}
SMALL = {**EXPERIMENT, "iterations": 8}
STEM = "reevaluated-3-1000003"
# What a test asks for that does not look at figures and pages, which take the longest.
TABLES = [f"results/sweeps/mine/tables/{name}.csv" for name in ("corrected", "confirmed")]


def write_config(folder: Path, sweep: str = SWEEP, further: dict = FURTHER, **changes) -> Path:
    """A sweep over a noisy domain that sleeps PATIENT_SECONDS an evaluation."""
    add_plugin(folder)
    data = {"name": "mine", "experiment": {**SMALL, **changes}, "sweep": sweep, **further}
    return write_yaml(folder / "mine.yaml", data)


def is_done(folder: Path, *targets: str) -> bool:
    words = (*targets, "-n", "--cores", 2, "--configfile", folder / "mine.yaml")
    done = snakemake(*words, cwd=folder)
    return "Nothing to be done" in done.stdout + done.stderr


def confirming(folder: Path) -> list[dict]:
    return read_json(folder / "results/sweeps/mine/confirm.json")["rows"]


def run_of(folder: Path, row: dict) -> Path:
    """The folder of a run that confirms."""
    return folder / "results/runs" / row["id"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    snakemake("--cores", 2, "--configfile", write_config(folder), cwd=folder)
    return folder


def test_the_best_groups_are_run_again_on_the_unseen_seeds(finished):
    table = pd.read_csv(finished / "results/sweeps/mine/table.csv").set_index("group")
    best = table["norm_qd_score_mean"].nlargest(2)
    rows = confirming(finished)
    assert list(dict.fromkeys(row["group"] for row in rows)) == list(best.index)
    assert [row["values"]["seed"] for row in rows] == [101, 102] * 2
    data = pd.read_csv(finished / "results/sweeps/mine/tables/confirmed.csv").set_index("group")
    for group, mean in best.items():
        runs = [run_of(finished, row) for row in rows if row["group"] == group]
        unseen = [summary(run)["norm_qd_score"] for run in runs]
        assert data.loc[group, "sweep_mean"] == pytest.approx(mean)
        assert data.loc[group, "unseen_mean"] == pytest.approx(np.mean(unseen))
        assert data.loc[group, "unseen_n"] == 2
        assert data.loc[group, "difference"] == pytest.approx(np.mean(unseen) - mean)
    note = read_json(finished / "results/sweeps/mine/tables/confirmed.json")["note"]
    assert "unseen seeds 101 to 102" in note


def test_the_corrected_scores_are_those_of_the_runs(finished):
    folder = finished / "results/sweeps/mine"
    data = pd.read_csv(folder / "tables/corrected.csv").set_index("group")
    runs = pd.read_csv(folder / "summary.csv")
    assert len(data) == 3
    for group, members in runs.groupby("group"):
        abouts = [read_json(finished / f"results/runs/{run}/{STEM}.json") for run in members["id"]]
        corrected = [about["corrected"]["qd_score"] for about in abouts]
        luck = [1 - c / q for c, q in zip(corrected, members["qd_score"], strict=True)]
        assert data.loc[group, "qd_score_mean"] == pytest.approx(members["qd_score"].mean())
        assert data.loc[group, "corrected_qd_score_mean"] == pytest.approx(np.mean(corrected))
        assert data.loc[group, "luck_percent_mean"] == pytest.approx(100 * np.mean(luck))
        assert data.loc[group, "luck_percent_mean"] > 0
    for row in confirming(finished):
        assert not list(finished.glob(f"results/runs/{row['id']}/reevaluated*"))


def test_a_second_start_has_nothing_to_do_and_knows_all_runs(finished):
    done = snakemake("-n", "--cores", 2, "--configfile", finished / "mine.yaml", cwd=finished)
    assert "Nothing to be done" in done.stdout + done.stderr
    assert "qdsweep: mine: 6 runs, 6 finished, nothing left" in done.stderr
    assert "qdsweep: to confirm it: 4 runs, 4 finished, nothing left" in done.stderr
    said = qdsweep("status", "mine", cwd=finished)
    assert "10 runs: 10 finished" in said
    assert "re-evaluated: 6 of 6 runs" in said
    assert said.count("(confirms)") == 4
    assert "0 found" in qdsweep("clean", "--orphans", "--dry-run", cwd=finished)


def test_confirming_runs_are_runs_like_any_other(copy):
    row = confirming(copy)[0]
    sweep = " ".join(f"::: {name} {value}" for name, value in row["values"].items())
    config = write_config(copy, sweep, further={})
    done = snakemake("-n", "--cores", 1, "--configfile", config, cwd=copy)
    assert "1 run, 1 finished, nothing left" in done.stderr
    qdsweep("run", run_of(copy, row) / "config.yaml", "--out", "alone", cwd=copy)
    assert digest(copy / "alone") == digest(run_of(copy, row))


def test_without_the_key_there_is_neither_work_nor_a_trace_of_it(copy):
    config = write_config(copy, further={})
    done = snakemake("--cores", 2, "--configfile", config, cwd=copy)
    assert "choose_winners" not in done.stderr
    assert not (copy / "results/sweeps/mine/confirm.json").exists()
    assert not list(copy.glob("results/sweeps/mine/tables/con*"))
    assert not list(copy.glob("results/sweeps/mine/tables/cor*"))
    assert is_done(copy)
    assert "6 runs: 6 finished" in qdsweep("status", "mine", cwd=copy)
    assert "4 found" in qdsweep("clean", "--orphans", "--dry-run", cwd=copy)
    # With it again: its runs are still there.
    snakemake(*TABLES, "--cores", 2, "--configfile", write_config(copy), cwd=copy)
    assert "10 runs: 10 finished" in qdsweep("status", "mine", cwd=copy)


def test_a_larger_budget_lengthens_confirmation_and_corrects_again(copy):
    before = {row["id"] for row in confirming(copy)}
    config = write_config(copy, SWEEP + " ::: iterations 11")
    snakemake(*TABLES, "--cores", 2, "--configfile", config, cwd=copy)
    assert is_done(copy, *TABLES)
    rows = confirming(copy)
    for row in rows:
        assert summary(run_of(copy, row))["iterations"] == row["iterations"] == 11
        log = (run_of(copy, row) / "run.log").read_text()
        assert ("goes on after iteration 8" in log) == (row["id"] in before)
    for name in pd.read_csv(copy / "results/sweeps/mine/summary.csv")["id"]:
        run = copy / "results/runs" / name
        assert read_json(run / f"{STEM}.json")["archive_digest"] == digest(run)


def test_what_was_deleted_is_made_again(copy):
    (copy / "results/sweeps/mine/confirm.json").unlink()
    assert not is_done(copy)
    snakemake(*TABLES, "--cores", 2, "--configfile", copy / "mine.yaml", cwd=copy)
    assert is_done(copy, *TABLES)
    for path in copy.glob(f"results/runs/*/{STEM}.*"):
        path.unlink()
    digests = {path: path.read_bytes() for path in copy.glob("results/sweeps/mine/tables/*.csv")}
    assert digests
    done = snakemake("--cores", 2, "--configfile", copy / "mine.yaml", cwd=copy)
    assert "evaluates" not in done.stdout, "the samples in state/ are enough"
    assert {path: path.read_bytes() for path in digests} == digests
    assert is_done(copy)


def test_tables_of_unfinished_sweeps_wait_for_neither(copy):
    partial = ("--configfile", copy / "mine.yaml", "--config", "partial=true")
    done = snakemake("-n", "--cores", 1, *partial, cwd=copy)
    for rule in ("choose_winners", "confirmed_table", "reevaluate", "corrected_table"):
        assert rule not in done.stdout + done.stderr
