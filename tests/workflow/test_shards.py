"""Shards of one sweep, each computed on another machine."""

import contextlib
import csv
import random
import subprocess
import time
from pathlib import Path

import psutil
from in_process import compute_sweep, qdsweep
from refusals import names_all
from results import digests
from starting import jobs, planned, start
from support import BIN, REPO, TINY, write_yaml
from waiting import wait_until

SWEEP = "::: algorithm map_elites cma_mae ::: seed 1 2"


def test_a_shard_computes_its_runs_without_tables(tmp_path):
    write_yaml(tmp_path / "mine.yaml", {"name": "tiny", "experiment": TINY, "sweep": SWEEP})
    words = ("--config", "shard=2/2")
    text = start(tmp_path, *words, "--dry-run")
    lines = [line for line in text.splitlines() if line.startswith("qdsweep: ")]
    names_all(lines[0], "shard 2/2", "2 of 4 runs")
    assert jobs(text) == {"all": 1, "qd_run": 2}
    start(tmp_path, *words)
    assert len(digests(tmp_path)) == 2
    assert not (tmp_path / "results/sweeps/tiny/runs.tsv").exists()
    assert planned(tmp_path, *words) == {}
    page = "results/sweeps/tiny/report.html"
    names_all(start(tmp_path, page, *words, check=1), "shard = 2/2", "report")
    assert not (tmp_path / "results/sweeps/tiny/runs.tsv").exists()
    assert len(list((tmp_path / "results/runs").iterdir())) == 2  # nothing of other shards
    names_all(qdsweep("status", "tiny", cwd=tmp_path), "4 runs", "2 finished", "2 waiting")
    assert planned(tmp_path, "--config", "shard=1/2") == {"all": 1, "qd_run": 2}
    rest = planned(tmp_path)
    assert rest["qd_run"] == 2
    assert rest["aggregate"] == rest["report_page"] == 1


def kill(folder: Path, *words: object) -> None:
    """Starts the sweep, and kills all its processes soon after a run has started."""
    command = [BIN / "snakemake", "-s", REPO / "Snakefile", "--cores", "2", *words]
    words = [*map(str, command), "--configfile", "mine.yaml"]
    main = psutil.Popen(words, cwd=folder, stderr=subprocess.DEVNULL)
    wait_until(lambda: any(folder.glob("results/runs/*/state/reload-*.pkl")))
    time.sleep(random.uniform(0, 0.3))
    for process in [main, *main.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    main.wait()


def table(folder: Path) -> list[dict[str, str]]:
    """Returns the table of groups without the times."""
    rows = csv.DictReader((folder / "results/sweeps/tiny/table.csv").open())
    return [{name: row[name] for name in row if "seconds" not in name} for row in rows]


def test_shards_of_two_clusters_make_the_tables_of_one(tmp_path):
    """Both are killed. The one that merges had all runs at first, so Snakemake has its records."""
    experiment = {**TINY, "iterations": 150, "reload": {"min_seconds": 0.0, "max_cost": 1.0}}
    whole, one, two = (tmp_path / name for name in ("whole", "one", "two"))
    compute_sweep(whole / "results", experiment, SWEEP)
    for folder in (one, two):
        folder.mkdir()
        write_yaml(folder / "mine.yaml", {"name": "tiny", "experiment": experiment, "sweep": SWEEP})
    kill(one)
    start(one, "--config", "shard=1/2")
    kill(two, "--config", "shard=2/2")
    start(two, "--config", "shard=2/2")
    names_all(qdsweep("merge", "../two", cwd=one), "2 runs")
    jobs_left = planned(one)
    assert "qd_run" not in jobs_left
    assert {"aggregate", "plot", "report_page"} < jobs_left.keys()
    start(one, "--until", "aggregate")
    assert digests(one) == digests(whole)
    assert table(one) == table(whole)
    # A longer sweep, computed there: the merged runs replace shorter ones with a record each.
    longer = {"name": "tiny", "experiment": {**experiment, "iterations": 160}, "sweep": SWEEP}
    for folder in (one, two):
        write_yaml(folder / "mine.yaml", longer)
    start(two, "--until", "qd_run")
    names_all(qdsweep("merge", "../two", cwd=one), "4 finished")
    jobs_left = planned(one)
    assert "qd_run" not in jobs_left
    assert jobs_left["aggregate"] == 1
