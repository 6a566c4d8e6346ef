"""Runs whose imported modules or declared files have changed, with the real Snakefile."""

from pathlib import Path

import pandas as pd
from in_process import qdsweep
from refusals import names_all
from results import read_json
from starting import jobs, planned, start
from two_files import SIMULATOR, other_simulator, simulator, study

TABLES = ("results/sweeps/mine/table.csv",)


def status_of(folder: Path) -> list[str]:
    return [*pd.read_csv(folder / "results/sweeps/mine/summary.csv")["status"]]


def digests_of(folder: Path) -> dict[str, str]:
    runs = sorted((folder / "results/runs").iterdir())
    return {run.name: read_json(run / "summary.json")["archive_digest"] for run in runs}


def note(folder: Path) -> str:
    return read_json(folder / "results/sweeps/mine/table.json")["note"]


def compared(folder: Path) -> int:
    """Returns the number of pairs of groups that are tested."""
    return len(pd.read_csv(folder / "results/sweeps/mine/tables/comparisons.csv"))


def test_a_changed_module_makes_runs_outdated_until_the_user_decides(tmp_path: Path):
    folder = study(tmp_path)
    start(folder, *TABLES)
    first = digests_of(folder)
    run = folder / "results/runs" / next(iter(first))
    record = read_json(run / "summary.json")["sources"]
    assert [*record] == ["config/plugins/simulator.py", "data/terrain.txt"]
    assert read_json(run / "state/status.json")["sources"] == record
    assert compared(folder) == 1

    simulator(folder, SIMULATOR.replace("POWER = 2", '"""Power."""\nPOWER   =  2  # even'))
    assert planned(folder, *TABLES) == {}, "comments and layout do not count"
    assert "outdated" not in qdsweep("plan", "mine.yaml", cwd=folder)

    other_simulator(folder)
    for words in (["plan", "mine.yaml"], ["status", "mine"], []):
        text = " ".join(qdsweep(*words, cwd=folder).split())
        names_all(text, "outdated: simulator.py has changed", "10 runs", "outdated=recompute")
        names_all(text, "outdated=accept", "of core time")
    names_all(qdsweep("plan", "mine.yaml", cwd=folder), "10 outdated", "nothing left")
    printed = start(folder)
    assert "qd_run" not in jobs(printed), "no start computes it on its own"
    names_all(printed, "outdated: simulator.py has changed", "10 runs")
    assert digests_of(folder) == first
    assert status_of(folder) == ["outdated"] * 10
    names_all(note(folder), "outdated", "simulator.py", "Not tested", "outdated=recompute")
    assert compared(folder) == 0
    table = (folder / "results/sweeps/mine/table.md").read_text()
    assert "‡" in table and "†" not in table and "**" not in table
    page = (folder / "results/sweeps/mine/report.html").read_text()
    names_all(page, "10 rows are outdated", "simulator.py has changed")
    assert planned(folder) == {}, "the tables say it"

    before = read_json(run / "summary.json")["sources"]
    start(folder, *TABLES, "--config", "outdated=accept")
    assert status_of(folder) == ["finished"] * 10 and compared(folder) == 1
    assert digests_of(folder) == first
    summary = read_json(run / "summary.json")
    assert summary["sources"] != before
    assert [entry["sources"] for entry in summary["accepted"]] == [before]
    assert "outdated" not in qdsweep("status", "mine", cwd=folder)

    (folder / "data/terrain.txt").write_text("2.0")
    names_all(qdsweep("status", "mine", cwd=folder), "outdated: terrain.txt has changed")
    plan = qdsweep("plan", "mine.yaml", "--config", "outdated=recompute", cwd=folder)
    names_all(plan, " outdated ", "computed again: terrain.txt has changed", "500 evaluations")
    dry = start(folder, *TABLES, "--config", "outdated=recompute", "--dry-run")
    assert jobs(dry)["qd_run"] == 10
    names_all(dry, "10 runs would be moved to results/outdated/")
    assert not (folder / "results/outdated").exists(), "a dry run moves nothing"
    start(folder, *TABLES, "--config", "outdated=recompute")
    assert status_of(folder) == ["finished"] * 10
    again = digests_of(folder)
    assert again.keys() == first.keys() and all(again[run] != first[run] for run in first)
    assert {path.name for path in (folder / "results/outdated").iterdir()} == {*first}
    moved = folder / "results/outdated" / run.name
    assert read_json(moved / "summary.json")["archive_digest"] == first[run.name]
