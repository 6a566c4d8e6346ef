"""A sweep of very many finished runs: what it costs to look at it, and to go on with it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from many_runs import SIGMAS, finish_runs, write_sweep
from support import BIN, REPO

LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
SEEDS = 1000 if LONG else 20
RUNS = SIGMAS * SEEDS


class Cost(NamedTuple):
    """What a command said, and what it took: CPU time, as others may use the machine."""

    text: str
    seconds: float
    gigabytes: float


# A process that was forked has had its parent's memory, which is pytest's: this one has little.
MEASURING = """
import json, resource, subprocess, sys
code = subprocess.call(sys.argv[2:], stdout=2)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([code, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024**2]))
"""


def measure(*words: object, cwd: Path) -> Cost:
    """Runs a command of the venv, which must succeed."""
    command = [sys.executable, "-S", "-c", MEASURING, "--", *map(str, words)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True)
    code, seconds, gigabytes = json.loads(done.stdout)
    assert code == 0, done.stderr[-5000:]
    return Cost(done.stderr, seconds, gigabytes)


def snakemake(folder: Path, *words: object) -> Cost:
    start = (BIN / "snakemake", "-s", REPO / "Snakefile", "--cores", 2)
    cost = measure(*start, "--configfile", "sweep.yaml", *words, cwd=folder)
    print(f"{' '.join(map(str, words)) or 'again'}: {cost.seconds:.1f} s, {cost.gigabytes:.2f} GiB")
    # Beside 10 s and 0.3 GiB that each start may take.
    assert cost.seconds < 10 + 6e-3 * RUNS
    assert cost.gigabytes < 0.3 + 50e-6 * RUNS
    return cost


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    assert len(finish_runs(folder, SEEDS)) == RUNS
    return folder


@pytest.mark.timeout(20_000 if LONG else 1000)
def test_the_status_of_very_many_runs(folder):
    cost = measure(BIN / "qdsweep", "status", "many", cwd=folder)
    print(f"status: {cost.seconds:.1f} s, {cost.gigabytes:.2f} GiB")
    assert f"{RUNS} runs: {RUNS} finished" in cost.text
    assert cost.seconds < 3 + 0.4e-3 * RUNS
    assert cost.gigabytes < 0.2 + 10e-6 * RUNS


@pytest.mark.timeout(20_000 if LONG else 1000)
def test_a_finished_sweep_has_nothing_to_be_done(folder):
    assert "Nothing to be done" in snakemake(folder).text


def test_what_snakemake_keeps_of_a_run_is_small(folder):
    """It once kept a copy of the conda environment for each file, 1.4 MB a run."""
    for record in list((folder / ".snakemake/metadata").iterdir())[:20]:
        assert record.stat().st_size < 4096 or "sweeps" in record.read_text()[:200]


@pytest.mark.timeout(20_000 if LONG else 1000)
def test_one_more_seed_plans_that_seed_alone(folder):
    write_sweep(folder, SEEDS + 1)
    text = snakemake(folder, "--dry-run", "--quiet", "rules").text
    jobs = dict(re.findall(r"^(\w+) +(\d+)$", text, re.MULTILINE))
    assert jobs["qd_run"] == str(SIGMAS)
    assert jobs["aggregate"] == jobs["report_page"] == "1"
