"""Every way to search: one result on 1, 2 and 4 cores, and after three kills of all processes."""

import os
import random
import signal
import subprocess
from pathlib import Path

import pytest
from counting import EXPERIMENT, add_plugin, evaluated
from results import search_results
from support import BIN, REPO, snakemake, write_yaml
from waiting import wait_until

DRAWN = ":::~ iso_sigma log 0.01 2 :::~ line_sigma log 0.01 1 ::: seed 1 2"
WAYS = {
    "hyperband": {"halving": {"brackets": "all", "rungs": ["1/3", 1]}},
    "random": {"samples": 8},
    "sobol": {"samples": 8, "sampling": "sobol"},
    "tpe": {"samples": 12, "sampling": "tpe", "batches": 3},
    "tpe_hyperband": {"sampling": "tpe", "batches": 2, "halving": {"brackets": "all"}},
    "pbt": {"pbt": {"population": 4, "generations": 3}},
}
LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
TABLE = "results/sweeps/mine/table.csv"


def write_config(folder: Path, search: dict) -> Path:
    add_plugin(folder)
    budget = {"iterations": 24, "evaluations": None} if "pbt" in search else {}
    data = {"name": "mine", "experiment": EXPERIMENT | budget, "sweep": DRAWN, "search": search}
    return write_yaml(folder / "mine.yaml", data)


def start_and_kill(folder: Path, config: Path, least: int) -> None:
    words = [BIN / "snakemake", "-s", REPO / "Snakefile", TABLE]
    process = subprocess.Popen(
        [*map(str, words), "--cores", "2", "--configfile", str(config)],
        cwd=folder,
        env={**os.environ, "COUNTING_SECONDS": "0.02"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(lambda: evaluated(folder) >= least, 150, "progress")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("way", WAYS if LONG else ["hyperband"])
def test_a_search_repeats_on_any_cores_and_after_kills(tmp_path, way):
    results, work = {}, {}
    for name in ("1", "2", "4", "killed") if LONG else ("2", "killed"):
        folder = tmp_path / name
        folder.mkdir()
        config = write_config(folder, WAYS[way])
        cores = name if name.isdigit() else "2"
        if name == "killed":
            drawn = random.Random(way)
            for _ in range(3):
                start_and_kill(folder, config, evaluated(folder) + drawn.randrange(20, 200))
        snakemake(TABLE, "--cores", cores, "--configfile", config, cwd=folder)
        results[name], work[name] = search_results(folder), evaluated(folder)
    first, *others = results
    assert len(results[first]) > 8
    for name in others:
        assert results[name] == results[first], name
        # A kill can lose the iteration under way, and what is saved after it, of two runs.
        assert work[first] <= work[name] <= work[first] + (3 * 2 * 2 * 10) * (name == "killed")
