"""Runs whose imported modules or declared files have changed, with the real Snakefile."""

import json
from pathlib import Path

import pandas as pd
import pytest
from in_process import qdsweep
from refusals import names_all
from results import read_json
from starting import jobs, planned, start
from support import command, write_yaml

TASK = """
import numpy as np
from qdsweep.domains.base import Evaluation
from simulator import height


class Hill:
    solution_dim = 3
    measures = {"x": (-2.0, 2.0), "y": (-2.0, 2.0)}
    objective_range = (-100.0, 0.0)
    fields = {}
    depends = ("data/terrain.txt",)

    def __init__(self):
        self.terrain = float(open("data/terrain.txt").read())

    def evaluate(self, solutions, seeds):
        return Evaluation(self.terrain * height(solutions), solutions[:, :2].copy())
"""
SIMULATOR = """
import numpy as np

POWER = 2


def height(solutions):
    return -np.sum(np.abs(solutions) ** POWER, axis=1)
"""
EXPERIMENT = {
    "domain": {"type": "hill:Hill", "name": "hill"},
    "algorithm": "map_elites",
    "archive": {"dims": [5, 5]},
    "num_emitters": 1,
    "batch_size": 10,
    "initial_solutions": 20,
    "iterations": 4,
}
SWEEP = "::: sigma 0.1 0.4 ::: seed 1 2 3 4 5"
TABLES = ("results/sweeps/mine/table.csv",)


def simulator(folder: Path, text: str = SIMULATOR) -> None:
    (folder / "config/plugins/simulator.py").write_text(text)


def other_simulator(folder: Path) -> None:
    simulator(folder, SIMULATOR.replace("POWER = 2", "POWER = 4"))


def study(folder: Path, sweep: str = SWEEP, **keys) -> Path:
    (folder / "config/plugins").mkdir(parents=True)
    (folder / "config/plugins/hill.py").write_text(TASK)
    (folder / "data").mkdir()
    (folder / "data/terrain.txt").write_text("1.0")
    simulator(folder)
    data = {"name": "mine", "experiment": EXPERIMENT, "sweep": sweep, **keys}
    write_yaml(folder / "mine.yaml", data)
    return folder


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
    start(folder)
    first = digests_of(folder)
    run = folder / "results/runs" / next(iter(first))
    record = read_json(run / "summary.json")["sources"]
    assert [*record] == ["config/plugins/simulator.py", "data/terrain.txt"]
    assert read_json(run / "state/status.json")["sources"] == record
    assert compared(folder) == 1

    simulator(folder, SIMULATOR.replace("POWER = 2", '"""Power."""\nPOWER   =  2  # even'))
    assert planned(folder) == {}, "comments and layout do not count"
    assert "outdated" not in qdsweep("plan", "mine.yaml", cwd=folder)

    other_simulator(folder)
    for words in (["plan", "mine.yaml"], ["status", "mine"], []):
        text = " ".join(qdsweep(*words, cwd=folder).split())
        names_all(text, "outdated: simulator.py has changed", "10 runs", "outdated=recompute")
        names_all(text, "outdated=accept", "of core time")
    names_all(qdsweep("plan", "mine.yaml", cwd=folder), "10 outdated", "nothing left")
    printed = start(folder)
    assert "qd_run" not in jobs(printed), "it is not computed by itself"
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
    names_all(plan, "replaced", "computed again: terrain.txt has changed", "600 evaluations")
    assert planned(folder, *TABLES, "--config", "outdated=recompute")["qd_run"] == 10
    assert not (folder / "results/outdated").exists(), "a dry run moves nothing"
    start(folder, *TABLES, "--config", "outdated=recompute")
    assert status_of(folder) == ["finished"] * 10
    again = digests_of(folder)
    assert again.keys() == first.keys() and all(again[run] != first[run] for run in first)
    assert {path.name for path in (folder / "results/outdated").iterdir()} == {*first}
    moved = folder / "results/outdated" / run.name
    assert read_json(moved / "summary.json")["archive_digest"] == first[run.name]

    simulator(folder)
    (folder / "data/terrain.txt").write_text("1.0")
    start(folder, *TABLES, "--config", "outdated=recompute")
    assert digests_of(folder) == first, "the same code gives the same results"
    assert len([*(folder / "results/outdated").iterdir()]) == 20, "nothing is replaced"
