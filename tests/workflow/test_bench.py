"""`make bench`, with one small benchmark in the place of an hour of them."""

import csv
import os
import subprocess

from support import BIN, copy_project

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
    assert 0.5 < float(row["ratio"]) < 3
    assert row["wanted"] == "<= 1.3"
    table = (docs / "benchmarks.md").read_text()
    assert f"| {float(row['ratio']):.3g}" in table.replace("*", "")
    assert str(clone) not in table
    assert (docs / "benchmarks.png").stat().st_size > 5000
