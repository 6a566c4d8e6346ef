"""Corrected archives and confirmed winners, with the real Snakefile on tiny sweeps."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from in_process import qdsweep
from patient import EXPERIMENT, add_plugin
from refusals import names_all
from results import digest, read_json, summary
from starting import jobs, planned, start
from support import write_yaml

SWEEP = "::: iso_sigma 0.1 0.3 0.6 ::: seed 1 2"
FURTHER = {"confirm": {"top": 2, "seeds": [101, 102]}, "reevaluate": {"times": 3}}
SMALL = {**EXPERIMENT, "iterations": 8}
STEM = "reevaluated-3-1000003-own"
# The targets of tests that do not need figures and pages, which take the longest.
TABLES = [f"results/sweeps/mine/tables/{name}.csv" for name in ("corrected", "confirmed")]


def write_config(folder: Path, sweep: str = SWEEP, further: dict = FURTHER, **changes) -> Path:
    """A sweep over a noisy domain that sleeps PATIENT_SECONDS per evaluation."""
    add_plugin(folder)
    data = {"name": "mine", "experiment": {**SMALL, **changes}, "sweep": sweep, **further}
    return write_yaml(folder / "mine.yaml", data)


def confirming(folder: Path) -> list[dict]:
    return read_json(folder / "results/sweeps/mine/confirm.json")["rows"]


def run_of(folder: Path, row: dict) -> Path:
    """Returns the folder of a confirming run."""
    return folder / "results/runs" / row["id"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    write_config(folder)
    start(folder)
    return folder


def test_the_best_groups_are_run_again_on_the_unseen_seeds(finished):
    table = pd.read_csv(finished / "results/sweeps/mine/table.csv").set_index("group")
    best = table["norm_delivered_qd_score_mean"].nlargest(2)
    rows = confirming(finished)
    assert list(dict.fromkeys(row["group"] for row in rows)) == list(best.index)
    assert [row["values"]["seed"] for row in rows] == [101, 102] * 2
    data = pd.read_csv(finished / "results/sweeps/mine/tables/confirmed.csv").set_index("group")
    for group, mean in best.items():
        runs = [run_of(finished, row) for row in rows if row["group"] == group]
        again = [read_json(run / f"{STEM}.json") for run in runs]
        unseen = [about["delivered"]["norm_qd_score"] for about in again]
        assert data.loc[group, "sweep_mean"] == pytest.approx(mean)
        assert data.loc[group, "unseen_mean"] == pytest.approx(np.mean(unseen))
        assert data.loc[group, "unseen_n"] == 2
        assert data.loc[group, "difference"] == pytest.approx(np.mean(unseen) - mean)
    note = read_json(finished / "results/sweeps/mine/tables/confirmed.json")["note"]
    names_all(note, 101, 102)


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


def test_a_second_start_has_nothing_to_do_and_knows_all_runs(finished):
    assert planned(finished) == {}
    printed = qdsweep("status", "mine", cwd=finished)
    assert len([line for line in printed.splitlines() if line.startswith("iso_sigma")]) == 10
    assert printed.count("(confirms)") == 4
    names_all(printed, "10 of 10")
    assert orphans(finished) == set()


def orphans(folder: Path) -> set[str]:
    """Returns the runs that `qdsweep clean` would remove."""
    printed = qdsweep("clean", "--orphans", "--dry-run", cwd=folder)
    return {path.name for path in (folder / "results/runs").iterdir() if path.name in printed}


def test_confirming_runs_are_runs_like_any_other(copy):
    row = confirming(copy)[0]
    sweep = " ".join(f"::: {name} {value}" for name, value in row["values"].items())
    write_config(copy, sweep, further={})
    assert "qd_run" not in planned(copy)
    qdsweep("run", run_of(copy, row) / "config.yaml", "--out", "alone", cwd=copy)
    assert digest(copy / "alone") == digest(run_of(copy, row))


def test_without_the_key_there_is_neither_work_nor_a_trace_of_it(copy):
    confirm = {row["id"] for row in confirming(copy)}
    write_config(copy, further={})
    assert "choose_winners" not in jobs(start(copy))
    assert not (copy / "results/sweeps/mine/confirm.json").exists()
    assert not list(copy.glob("results/sweeps/mine/tables/con*"))
    assert not list(copy.glob("results/sweeps/mine/tables/cor*"))
    assert planned(copy) == {}
    assert "(confirms)" not in qdsweep("status", "mine", cwd=copy)
    assert orphans(copy) == confirm
    # With the key again: its runs still exist.
    write_config(copy)
    assert "qd_run" not in jobs(start(copy, *TABLES))
    assert orphans(copy) == set()


def test_a_larger_budget_lengthens_confirmation_and_corrects_again(copy):
    before = {row["id"] for row in confirming(copy)}
    write_config(copy, SWEEP + " ::: iterations 11")
    start(copy, *TABLES)
    assert planned(copy, *TABLES) == {}
    rows = confirming(copy)
    for row in rows:
        about = summary(run_of(copy, row))
        assert about["iterations"] == row["iterations"] == 11
        begun = [attempt["from"] for attempt in about["attempts"]]
        assert begun == ([0, 8] if row["id"] in before else [0])
    for name in pd.read_csv(copy / "results/sweeps/mine/summary.csv")["id"]:
        run = copy / "results/runs" / name
        assert read_json(run / f"{STEM}.json")["archive_digest"] == digest(run)


def test_deleted_files_are_rebuilt(copy):
    (copy / "results/sweeps/mine/confirm.json").unlink()
    assert planned(copy)
    start(copy, *TABLES)
    assert planned(copy, *TABLES) == {}
    for path in copy.glob(f"results/runs/*/{STEM}.*"):
        path.unlink()
    tables = {path: path.read_bytes() for path in copy.glob("results/sweeps/mine/tables/*.csv")}
    assert tables
    assert "evaluates" not in start(copy), "the samples in state/ are enough"
    assert {path: path.read_bytes() for path in tables} == tables
    assert planned(copy) == {}


def test_half_done_runs_of_a_killed_confirmation_are_spared(copy):
    for row in confirming(copy):
        run = run_of(copy, row)
        for path in (*run.glob("*.*"), run / "state/summary.json"):
            path.unlink()
    assert orphans(copy) == set()


def test_tables_of_unfinished_sweeps_wait_for_neither(copy):
    further = {"choose_winners", "confirmed_table", "reevaluate", "corrected_table"}
    assert not further & planned(copy, "--config", "partial=true").keys()
