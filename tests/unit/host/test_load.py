"""The load of the machine, which runs record and tables warn about."""

import json
import re
import subprocess
import sys

import pytest
from in_process import compute_sweep
from support import TINY

from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.tables.timing_table import write_timing
from qdsweep.analysis.timing import busy_note, largest_load
from qdsweep.host import machine


def test_the_mean_counts_a_runs_own_workers_but_no_more_than_cores(monkeypatch):
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 4)
    seen = iter([0, 8])
    monkeypatch.setattr(machine, "others", lambda: next(seen))
    looks = machine.Load(workers=100)
    assert [looks.look(), looks.look()] == [1.0, 2.0]


def test_others_are_seen():
    spin = [sys.executable, "-c", "while True: pass"]
    spinning = [subprocess.Popen(spin) for _ in range(3)]
    try:
        assert max(machine.others() for _ in range(200)) >= 3
    finally:
        for process in spinning:
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("loads", "numbers"),
    [([], []), ([0.5, 1.2], []), ([0.5, 2.26], ["2", "1", "2.3"])],
)
def test_a_note_warns_of_runs_on_a_busy_machine(loads, numbers):
    assert re.findall(r"[\d.]*\d", busy_note(loads)) == numbers


def test_a_run_records_it_and_the_page_warns(tmp_path):
    sweep = compute_sweep(tmp_path / "results", {**TINY, "iterations": 4}, "::: seed 1 2")
    for number, path in enumerate((tmp_path / "results/runs").glob("*/summary.json")):
        summary = json.loads(path.read_text())
        assert all(attempt["load"] > 0 for attempt in summary["attempts"])
        if number:
            summary["attempts"][0]["load"] = 3.0
        else:
            del summary["attempts"][0]["load"]  # of an earlier version
            assert largest_load(summary["attempts"]) == 0
        path.write_text(json.dumps(summary))
    write_timing(sweep, tmp_path / "results/runs")
    assert busy_note([0, 3.0]).strip() in read_sheet(sweep / "tables/timing.json").note
