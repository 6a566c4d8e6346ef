"""`make bench`, with one small benchmark instead of an hour of them, and `make bench-search`."""

import csv
import json
import os
import random
import subprocess

import pytest
import searches
from support import BIN, copy_project
from walk import cost, walk

from qdsweep.config.sweep import SweepFile
from qdsweep.planning.rows import sweep_of
from qdsweep.records.paths import Results
from qdsweep.search.levels import levels

SMALL = """
import bench
bench.SCRIPTS = {"dry": "sweeps.py dry --scale 0.001"}
bench.main()
"""


def test_it_writes_table_and_plot_and_keeps_the_rows_of_others(tmp_path):
    clone = copy_project(tmp_path / "qdsweep")
    docs = clone / "docs"
    for name in ("csv", "md", "png"):
        (docs / f"benchmarks.{name}").unlink(missing_ok=True)
    words = [BIN / "python", "-c", SMALL, "--only", "dry"]
    env = {**os.environ, "PYTHONPATH": f"{clone / 'benchmarks'}:{clone / 'workflow'}"}
    done = subprocess.run(words, cwd=clone, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = csv.DictReader((docs / "benchmarks.csv").read_text().splitlines())
    assert row["work"] == "`snakemake -n` of 10 runs"
    assert float(row["ratio"]) > 0
    assert row["wanted"] == "<= 1.3"
    table = (docs / "benchmarks.md").read_text()
    assert f"| {float(row['ratio']):.3g}" in table.replace("*", "")
    assert str(clone) not in table
    assert (docs / "benchmarks.png").stat().st_size > 5000


@pytest.mark.parametrize("way", searches.OURS)
@pytest.mark.parametrize("task", searches.SPACES)
def test_searches_of_ours_cost_what_those_of_the_peers_do(way, task, tmp_path):
    job = searches.Job(way, task, 1, 1)
    settings = SweepFile.model_validate_json(json.dumps(job.sweep()))
    assert settings.search is not None
    sweep = sweep_of(settings, Results(tmp_path))
    rungs = levels(settings.search, len(sweep.rows), ("1",), job.budget)
    number = random.Random(1)
    seen = walk(rungs, sweep.rows, lambda *_: number.random(), lambda _, level: [{}] * level.places)
    assert cost(rungs, seen) / job.budget == pytest.approx(searches.WHOLES, rel=0.02)
