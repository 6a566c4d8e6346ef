"""Real processes, really killed: the result is that of the undisturbed run, bit for bit."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from in_process import compute_run, compute_sweep, qdsweep
from kill_at import BOUNDARIES
from results import digest, steps, summary
from support import BIN, REPO, TINY, snakemake, write_yaml
from waiting import says, wait_until

HERE = Path(__file__).parent
LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
KILLS = 100 if LONG else 6

RUN = {**TINY, "iterations": 3000, "reload": {"min_seconds": 0.05}}
# Long enough for some saves; MAP-Elites starts without a compilation.
SHORT = {
    **TINY,
    "algorithm": "map_elites",
    "iterations": 1000,
    "reload": {"min_seconds": 0.05, "max_cost": 0.5},
}


def write_experiment(folder: Path, experiment: dict) -> Path:
    return write_yaml(folder / "experiment.yaml", experiment)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    return compute_run(RUN, tmp_path_factory.mktemp("undisturbed") / "out")


@pytest.fixture(scope="module")
def undisturbed_short(tmp_path_factory) -> Path:
    return compute_run(SHORT, tmp_path_factory.mktemp("undisturbed") / "out")


def same(out: Path, undisturbed: Path) -> None:
    assert digest(out) == digest(undisturbed)
    assert steps(out) == steps(undisturbed)
    with np.load(out / "history.npz") as ours, np.load(undisturbed / "history.npz") as theirs:
        for name in theirs:
            np.testing.assert_array_equal(ours[name], theirs[name])


@pytest.mark.timeout(3000)
def test_sigkill_at_random_moments(undisturbed, tmp_path):
    """Killed again and again, started again each time with another number of workers."""
    chance = random.Random(1)
    out = tmp_path / "out"
    words = [BIN / "qdsweep", "run", write_experiment(tmp_path, RUN), "--out", out]
    log = out / "state/run.log"
    for kill in range(1, KILLS + 1):
        workers = str(chance.choice([1, 1, 2]))
        process = subprocess.Popen([*words, "--workers", workers], stderr=subprocess.DEVNULL)
        if chance.random() < 0.8:
            wanted = kill - log_misses(log, kill)
            wait_until(lambda wanted=wanted: says(log, "engine", wanted), 30)
        time.sleep(chance.uniform(0, 1.2))
        process.kill()
        process.wait()
    qdsweep(*words[1:], cwd=tmp_path)
    same(out, undisturbed)
    attempts = summary(out)["attempts"]
    assert sum(attempt["how"] == "killed" for attempt in attempts) >= KILLS // 2


def log_misses(log: Path, kill: int) -> int:
    """Starts that were killed before they had an engine."""
    started = log.read_text().count("engine") if log.exists() else 0
    return kill - 1 - started


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_sigkill_at_every_boundary_of_a_save(undisturbed_short, tmp_path, boundary):
    out = tmp_path / "out"
    words = ["run", str(write_experiment(tmp_path, SHORT)), "--out", str(out)]
    for save in (1, 3) if LONG else (2,):
        killed = subprocess.run(
            [sys.executable, HERE / "kill_at.py", boundary, str(save), *words],
            capture_output=True,
        )
        assert killed.returncode == -signal.SIGKILL
    assert "goes on after iteration" in qdsweep(*words, cwd=tmp_path)
    same(out, undisturbed_short)
    left = {path.name for path in (out / "state").iterdir() if ".tmp" in path.name}
    assert left == set(), "what the kill left behind is gone"


@pytest.mark.timeout(1200)
def test_the_whole_process_group_of_snakemake_is_killed(tmp_path):
    """A sweep of 6 runs, killed with everything that belongs to it, typed again."""
    chance = random.Random(2)
    sweep = "::: algorithm map_elites cma_mae ::: seed 1 2 3"
    experiment = {**RUN, "iterations": 1500 if LONG else 1000}
    data = {"name": "t", "experiment": experiment, "sweep": sweep}
    config = write_yaml(tmp_path / "sweep.yaml", data)
    killed, straight = tmp_path / "killed", tmp_path / "straight"
    killed.mkdir()
    compute_sweep(straight / "results", experiment, sweep)
    words = [BIN / "snakemake", "-s", REPO / "Snakefile", "--directory", killed]
    words += ["--configfile", config, "--cores", "2"]
    for _ in range(10 if LONG else 3):
        process = subprocess.Popen(
            words, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(chance.uniform(6, 14))
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            break
        process.wait()
    snakemake("--cores", 2, "--configfile", config, cwd=killed)
    runs = sorted(path.name for path in (straight / "results/runs").iterdir())
    assert len(runs) == 6
    for run in runs:
        same(killed / "results/runs" / run, straight / "results/runs" / run)
