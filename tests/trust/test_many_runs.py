"""A sweep of very many finished runs: the cost of looking at it and of extending it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
import yaml
from given import contents
from leftovers import words_of
from many_runs import SIGMAS, finish_runs, write_sweep
from refusals import names_all
from support import BIN, REPO
from waiting import wait_until

from qdsweep.files import write_text
from qdsweep.records.paths import RunDir, SweepDir
from qdsweep.records.status import read_status

LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
SEEDS = 1000 if LONG else 11  # more than the limit of a large sweep
RUNS = SIGMAS * SEEDS


class Cost(NamedTuple):
    """The output and cost of a command. `opened`: files in results/ that it opens."""

    text: str
    seconds: float
    gigabytes: float
    opened: int


# A fork counts the memory of its parent, pytest. This process has little memory.
COUNTING = """
import atexit, os, sys
opened = []
def count(event, words):
    if event == "open" and "results/" in str(words[0]):
        opened.append(0)
sys.addaudithook(count)
if os.getppid() == int(os.environ["COUNTED"]):
    atexit.register(lambda: print("OPENED", len(opened), flush=True))
"""
MEASURING = """
import json, os, resource, subprocess, sys
os.environ["COUNTED"] = str(os.getpid())
code = subprocess.call(sys.argv[2:], stdout=2)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([code, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024**2]))
"""


def measure(*words: object, cwd: Path) -> Cost:
    """Runs a command of the venv, which must succeed."""
    command = [sys.executable, "-S", "-c", MEASURING, "--", *map(str, words)]
    (cwd / "counting").mkdir(exist_ok=True)
    (cwd / "counting/sitecustomize.py").write_text(COUNTING)
    env = {**os.environ, "PYTHONPATH": str(cwd / "counting")}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=True)
    code, seconds, gigabytes = json.loads(done.stdout)
    assert code == 0, done.stderr[-5000:]
    (opened,) = re.findall(r"^OPENED (\d+)\n", done.stderr, re.MULTILINE)
    text = re.sub(r"^OPENED \d+\n", "", done.stderr, flags=re.MULTILINE)
    cost = Cost(text, seconds, gigabytes, int(opened))
    print(f"{' '.join(map(str, words))}: {seconds:.1f} s, {gigabytes:.2f} GiB, {opened} files")
    return cost


def snakemake(folder: Path, *words: object) -> Cost:
    start = (BIN / "snakemake", "-s", REPO / "Snakefile", "--cores", 2)
    return measure(*start, "--configfile", "sweep.yaml", *words, cwd=folder)


def planned(folder: Path, *words: object) -> dict[str, int]:
    """Returns rule -> number of jobs of a dry run."""
    text = snakemake(folder, "--dry-run", "--quiet", "rules", *words).text
    jobs = re.findall(r"^(\w+) +(\d+)$", text, re.MULTILINE)
    return {rule: int(count) for rule, count in jobs}


def is_quick(cost: Cost) -> bool:
    """Whether a start opened no file of finished runs, and kept its limit of memory."""
    return cost.opened < 50 and cost.gigabytes < 0.2 + 6e-6 * RUNS


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    assert len(finish_runs(folder, SEEDS)) == RUNS
    return folder


def a_run(folder: Path, number: int) -> RunDir:
    return RunDir(sorted((folder / "results/runs").iterdir())[number])


very_long = pytest.mark.timeout(20_000 if LONG else 1000)


@very_long
def test_the_status_of_very_many_runs(folder):
    first, cost = [measure(BIN / "qdsweep", "status", "many", cwd=folder) for _ in "ab"]
    for each in (first, cost):
        names_all(each.text, f"{RUNS:,} runs", f"{RUNS:,} finished")
        assert each.gigabytes < 0.1 + 3e-6 * RUNS
    assert first.text == cost.text
    assert cost.opened < 50 < first.opened


@very_long
def test_a_finished_sweep_has_nothing_to_be_done(folder):
    # The first starts see folders that have just changed, which no index remembers.
    _, _, cost = [snakemake(folder) for _ in "abc"]
    assert "Nothing to be done" in cost.text
    assert is_quick(cost)


def test_what_snakemake_keeps_of_a_run_is_small(folder):
    """Snakemake once kept a copy of the conda environment for each file, 1.4 MB per run."""
    for record in list((folder / ".snakemake/metadata").iterdir())[:20]:
        assert record.stat().st_size < 4096 or "sweeps" in record.read_text()[:200]


@very_long
def test_one_more_seed_plans_only_that_seed(folder):
    write_sweep(folder, SEEDS + 1)
    jobs = planned(folder)
    assert jobs["qd_run"] == SIGMAS
    assert jobs["aggregate"] == jobs["report_page"] == 1
    write_sweep(folder, SEEDS)


@very_long
def test_a_changed_summary_writes_the_tables_again_and_computes_no_run(folder):
    run = a_run(folder, 0)
    before = run.state.summary.read_text()
    write_text(run.state.summary, before + "\n")
    run.state.seal()
    run.publish()
    jobs = planned(folder)
    assert "qd_run" not in jobs
    assert jobs["aggregate"] == 1


@very_long
def test_lost_or_truncated_files_are_published_again_and_removed_runs_are_computed(folder):
    lost, torn, gone = (a_run(folder, number) for number in (1, 2, 3))
    lost.metrics.unlink()
    half = torn.archive.read_bytes()[:100]
    torn.archive.unlink()
    torn.archive.write_bytes(half)
    shutil.rmtree(gone.path)
    assert planned(folder)["qd_run"] == 3
    # Without the stages after the table, which take long. The table needs this file of each run.
    lost.summary.unlink()
    (folder / "results/sweeps/many/runs.tsv").unlink()  # so that all runs are inputs
    snakemake(folder, "--", "results/sweeps/many/summary.csv")
    for run in (lost, torn):
        assert run.metrics.samefile(run.state.metrics)
        assert run.archive.samefile(run.state.archive)
        assert len(read_status(run.state).attempts) == 1
    assert read_status(gone.state).status == "finished"
    assert gone.summary.exists()
    assert not {"qd_run", "aggregate"} & planned(folder).keys()
    for file, record in records_of_tables(folder):
        assert len(record["input"]) == len(record["input_checksums"]) == 0, file


@very_long
def test_records_of_earlier_releases_that_name_all_runs_change_nothing(folder):
    runs = [
        f"results/runs/{path.name}/summary.json" for path in (folder / "results/runs").iterdir()
    ]
    for file, record in records_of_tables(folder):
        file.write_text(json.dumps({**record, "input": sorted(runs)}))
    assert "aggregate" not in planned(folder)


def records_of_tables(folder: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Returns Snakemake's records of the tables."""
    files = list((folder / ".snakemake/metadata").glob("cmVzdWx0cy9zd2VlcHMv*"))  # results/sweeps/
    records = [(file, json.loads(file.read_text())) for file in files]
    return [(file, record) for file, record in records if record["rule"] == "aggregate"]


@very_long
@pytest.mark.parametrize("killed", ["reader", "stage"])
def test_processes_share_the_reading_of_runs(folder, killed):
    """They make the tables of one process. After a kill, the same command makes them."""
    sweep = SweepDir(folder / "results/sweeps/many")

    def command(cores: int) -> list[object]:
        sweep.cache.unlink(missing_ok=True)  # as if no run was ever read
        return [BIN / "qdsweep", "aggregate", "many", "--cores", cores]

    def tables(cores: int) -> dict[str, bytes]:
        assert measure(*command(cores), cwd=folder).gigabytes < 0.2 + 8e-6 * RUNS
        return contents(sweep.path)

    def readers() -> list[psutil.Process]:
        return [child for child in stage.children() if "spawn_main" in str(words_of(child))]

    expected = tables(1)
    stage = psutil.Popen(list(map(str, command(2))), cwd=folder)
    wait_until(lambda: len(readers()) == 2)
    crew = readers()
    (crew[0] if killed == "reader" else stage).kill()
    assert stage.wait() == (1 if killed == "reader" else -signal.SIGKILL)
    wait_until(lambda: not any(reader.is_running() for reader in crew))
    assert not sweep.sums("aggregate").read_text()
    assert tables(2) == expected


@pytest.mark.skipif(LONG, reason="all runs have a job, as before")
def test_a_larger_budget_and_force_plan_all_runs(folder):
    assert planned(folder, "--forceall")["qd_run"] == RUNS
    file = folder / "sweep.yaml"
    config = yaml.safe_load(file.read_text())
    config["experiment"]["iterations"] += 1
    file.write_text(yaml.safe_dump(config))
    assert planned(folder)["qd_run"] == RUNS
