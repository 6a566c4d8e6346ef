"""The current code opens, resumes, tabulates and reports the results of version 0.1.0.

If one of these tests fails, fix the current code, not the fixture, because users have such
folders. tests/unit/experiment/test_resume.py checks that its runs reach the earlier results.
"""

import csv
import io
import json
import re
from collections.abc import Callable
from operator import eq
from pathlib import Path

import pytest
import yaml
from earlier_release import EXPECTED, FINISHED, HALF_DONE, RUNS, unpack
from refusals import names_all
from results import summary
from starting import jobs, planned, start
from support import write_yaml

from qdsweep import load, load_sweep
from qdsweep.cli import main
from qdsweep.config.family import FORMER

SWEEPS = ("presets", "pole", "budgets", "shorter")
# In these files, only the times differ between computations of a run.
ALWAYS_EQUAL = ("runs.tsv", "summary.csv", "table.csv", "curves.csv", "tables/comparisons.csv")
# Amdahl's law for the times. Sweeps no longer have this table.
NO_LONGER_MADE = tuple(f"tables/workers.{end}" for end in ("csv", "md", "tex", "json"))
# Published values have another rule, without a tolerance.
CHANGED = {"tables/published.csv": {"tolerance", "verdict"}}
# The command of the rules that makes the tables of a sweep.
STAGES = {"pole": ("aggregate", "corrected", "confirmed")}


@pytest.fixture
def study(tmp_path, monkeypatch) -> Path:
    """A copy of the earlier folder, as the working directory of one test."""
    folder = unpack(tmp_path / "study")
    monkeypatch.chdir(folder)
    return folder


def run_folder(study: Path, run: str) -> Path:
    return study / "results/runs" / run


def without_times(row: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in row.items() if "seconds" not in name}


def same(text: str, other: str) -> bool:
    """Returns whether two cells have the same value, apart from the last digits of a sum."""
    if text == other:
        return True
    try:
        return float(text) == pytest.approx(float(other), rel=1e-9, abs=0)
    except ValueError:
        return False


def check_loads(study: Path, run: str) -> None:
    """Checks archive, metrics and experiment of a run in Python."""
    loaded = load(run_folder(study, run))
    about = loaded.summary
    assert about["id"] == run
    assert len(loaded.archive) == about["num_elites"]
    assert loaded.archive.stats.qd_score == pytest.approx(about["qd_score"])
    assert len(loaded.metrics) == about["iterations"]
    assert loaded.metrics["qd_score"].iloc[-1] == about["qd_score"]
    assert f"-s{loaded.config['seed']}-" in run


def make_tables(name: str) -> None:
    for stage in STAGES.get(name, ("aggregate",)):
        assert main([stage, name]) == 0


def check_tables(
    study: Path, name: str, alike: Callable[[str, str], bool] = eq, but: str = ""
) -> None:
    """Checks the tables of a sweep with the earlier ones, cell by cell; new columns may follow."""
    for path, text in EXPECTED["tables"][name].items():
        if path in NO_LONGER_MADE:
            continue
        file = study / "results/sweeps" / name / path
        mark = "\t" if path == "runs.tsv" else ","
        then, now = (
            csv.DictReader(io.StringIO(content), delimiter=mark)
            for content in (text, file.read_text())
        )
        columns = [name for name in then.fieldnames or [] if name not in CHANGED.get(path, ())]
        assert set(columns) <= set(now.fieldnames or []), f"{name}: {path}"
        for row, earlier in zip(now, then, strict=True):
            kept = [key for key in columns if key != but]
            other = [key for key in kept if not alike(row[key], earlier[key])]
            assert not other, f"{name}: {path}: {other}: {row}"


def stamps(study: Path, pattern: str) -> dict[Path, tuple[int, int]]:
    """Returns inodes, which change when a file is rewritten; Snakemake touches some files."""
    return {path: (path.stat().st_ino, path.stat().st_size) for path in study.glob(pattern)}


def confirming(study: Path) -> list[tuple[str, str]]:
    """Returns the held-out runs, and the groups that they confirm."""
    rows = json.loads((study / "results/sweeps/pole/confirm.json").read_text())["rows"]
    return [(row["group"], row["id"]) for row in rows]


def rename_presets(study: Path) -> None:
    """Gives the renamed presets of a sweep their present names."""
    text = (study / "presets.yaml").read_text()
    for now, former in FORMER.items():
        assert f" {former.name} " in text
        text = text.replace(f" {former.name} ", f" {now} ")
    (study / "presets.yaml").write_text(text)


@pytest.mark.parametrize("name", SWEEPS)
def test_a_finished_sweep_computes_no_run_again(study, name):
    rename_presets(study)
    there = planned(study, file=f"{name}.yaml")
    assert "report_page" in there, "which is not in the fixture"
    assert not there.keys() & {"qd_run", "reevaluate"}


def test_renamed_presets_are_tabulated_under_their_present_names(study):
    """Presets that have their former names now have other settings, and runs of their own."""
    printed = start(study, "--dry-run", file="presets.yaml")
    assert jobs(printed)["qd_run"] == len(FORMER)
    names_all(printed, *(name for now, former in FORMER.items() for name in (now, former.name)))
    rename_presets(study)
    start(study, "--until", "aggregate", "--forcerun", "aggregate", file="presets.yaml")
    table = list(csv.DictReader((study / "results/sweeps/presets/summary.csv").open()))
    ids = {row["algorithm"]: row["id"] for row in table}
    for now, former in FORMER.items():
        assert f"-{former.name}-" in ids[now] and ids[now] in RUNS
        assert former.name not in ids


def test_status_and_clean_know_all_runs(study, capsys):
    counts = {}
    for name in (*SWEEPS, "half"):
        assert main(["status", name]) == 0
        counts[name] = re.findall(r"(\d+) (finished|stopped|failed)", capsys.readouterr().out)
    assert counts == {
        "presets": [("14", "finished")],
        "pole": [("6", "finished")],  # two of them confirm it
        "budgets": [("3", "finished")],
        "shorter": [("2", "finished")],
        "half": [("1", "finished"), ("14", "stopped"), ("1", "failed")],
    }
    assert main(["clean", "--orphans", "--dry-run"]) == 0
    assert not [run for run in RUNS if run in capsys.readouterr().out]


def test_half_done_runs_end_as_if_nobody_had_stopped_them(study):
    """With the real Snakefile, which then rebuilds the tables without the unfinished runs."""
    start(study, "--until", "aggregate", file="half.yaml")
    for run in HALF_DONE:
        first, second = summary(run_folder(study, run))["attempts"]
        assert first["from"] == 0 < second["from"], f"{run} resumed from its reload file"
        check_loads(study, run)
    for name in ALWAYS_EQUAL:
        lines = (
            (study / "results/sweeps/half" / name).read_text(),
            (EXPECTED["tables"]["half, finished"][name]),
        )
        delimiter = "\t" if name.endswith(".tsv") else ","
        ours, theirs = (
            [without_times(row) for row in csv.DictReader(io.StringIO(text), delimiter=delimiter)]
            for text in lines
        )
        # Later releases may have added metrics, and add up elites in another order.
        for now, then in zip(ours, theirs, strict=True):
            assert not [key for key in then if not same(now[key], then[key])], name


def test_finished_runs_are_loaded_as_they_are(study):
    for run in FINISHED:
        check_loads(study, run)
        about = summary(run_folder(study, run))
        assert about["archive_digest"] == RUNS[run]["archive_digest"]
        assert about["iterations"] == RUNS[run]["iteration"]
    assert list(load_sweep("pole")["status"]) == ["finished"] * 4


@pytest.mark.parametrize("name", SWEEPS)
def test_rebuilt_tables_are_equal(study, name):
    sweep = study / "results/sweeps" / name
    check_tables(study, name)
    make_tables(name)  # with or without the earlier cache
    check_tables(study, name)
    for path in (sweep / ".aggregated.npz", *(sweep / path for path in EXPECTED["tables"][name])):
        path.unlink(missing_ok=True)
    make_tables(name)
    check_tables(study, name)


def test_a_partial_report_has_the_same_tables(study):
    """With and without the earlier snapshots in `state/partial`, which had running sums.

    A reload file between the two batches of an iteration has the elites of the first one. They now
    count as evaluations.
    """
    check_tables(study, "half")
    for _ in range(2):
        assert main(["aggregate", "half", "--partial"]) == 0
        check_tables(study, "half", alike=same, but="total_evaluations")
        for run in HALF_DONE:
            for path in (run_folder(study, run) / "state/partial").iterdir():
                path.unlink()


def test_the_report_is_made_of_what_is_there(study):
    """Re-evaluations and confirming runs are reused."""
    kept = ("results/runs/*/reevaluated-*.*", "results/runs/*/state/*.*")
    before = [stamps(study, pattern) for pattern in kept]
    assert len(before[0]) >= 8
    winners = confirming(study)
    settings = yaml.safe_load((study / "pole.yaml").read_text())
    settings["reevaluate"]["common"] = True  # as all evaluations of earlier releases
    write_yaml(study / "common.yaml", settings)
    start(study, file="common.yaml")
    # Only the winners on held-out seeds are evaluated again: earlier releases did not do that.
    for pattern, then in zip(kept, before, strict=True):
        assert then.items() <= stamps(study, pattern).items()
    assert confirming(study) == winners
    check_tables(study, "pole")
    page = (study / "results/sweeps/pole/report.html").read_text()
    for label in settings["figures"]["labels"].values():
        assert label in page
    assert settings["published"][0]["source"] in page
    assert list(study.glob("results/sweeps/pole/plots/rollouts/*.gif"))
