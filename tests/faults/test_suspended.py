"""Suspended processes (SIGSTOP, as Slurm's suspend, docker pause and a laptop's sleep)."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from patient import make_folder, undisturbed_digest
from results import digest
from support import BIN
from waiting import evaluates, wait_until

from qdsweep.host.machine import settings

TORTURE = bool(os.environ.get("QDSWEEP_TORTURE"))
SHELL = {name: value for name, value in os.environ.items() if name not in settings()}
ENGINES = ("processes", *(("serial", "dask", "ray", "mpi") if TORTURE else ()))

# It waits for a word as for an evaluation, and prints the time that counts.
WAITS = """
import sys, time
from qdsweep.experiment.stop import Hanging, Stop
from qdsweep.host.clock import AWAKE
with Stop() as stop:
    start = AWAKE.now()
    try:
        with stop.interruptible(timeout=float(sys.argv[1])):
            print("waits", flush=True)
            sys.stdin.readline()
            print(AWAKE.now() - start, AWAKE.suspended())
    except Hanging:
        print("hangs")
"""


def waiting(timeout: float) -> subprocess.Popen:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", WAITS, str(timeout)], **pipes)
    assert process.stdout.readline() == "waits\n"
    return process


def test_a_suspension_is_no_hang_and_counts_as_no_time():
    process = waiting(5)
    process.send_signal(signal.SIGSTOP)
    time.sleep(6)
    process.send_signal(signal.SIGCONT)
    told, _ = process.communicate("go\n")
    counted, suspended = map(float, told.split())
    assert suspended > 5 > counted


def test_a_hang_is_found():
    process = waiting(0.2)
    assert process.stdout.readline() == "hangs\n"
    process.communicate()


def group(process: subprocess.Popen) -> list[psutil.Process]:
    """The processes of a run, of which engines start some in sessions of their own."""
    main = psutil.Process(process.pid)
    return [main, *main.children(recursive=True)]


def send(process: subprocess.Popen, number: int) -> None:
    for each in group(process):
        each.send_signal(number)


def start(folder: Path, engine: str, seconds: float, **changes: object) -> subprocess.Popen:
    make_folder(folder, **changes)
    workers = 1 if engine == "serial" else 2
    (folder / "cluster.yaml").write_text(
        json.dumps({"engine": engine, "workers_per_node": workers})
    )
    words = ["run", "experiment.yaml", "--cluster", "cluster.yaml", "--out", "out"]
    with (folder / "printed.txt").open("w") as printed:
        process = subprocess.Popen(
            [BIN / "qdsweep", *words],
            cwd=folder,
            env={**SHELL, "PATIENT_SECONDS": str(seconds)},
            stdout=printed,
            stderr=printed,
            start_new_session=True,
        )
    wait_until(lambda: evaluates(folder / "out/state/run.log"), what="an evaluation")
    return process


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_was_suspended_longer_than_its_timeout_ends_as_another(tmp_path, engine):
    """Its time-out is long, so that no slow machine meets it."""
    process = start(tmp_path, engine, seconds=0.05, timeout=12)
    send(process, signal.SIGSTOP)
    time.sleep(15)
    send(process, signal.SIGCONT)
    assert process.wait(300) == 0, (tmp_path / "printed.txt").read_text()
    assert digest(tmp_path / "out") == undisturbed_digest(tmp_path / "other")
    rows = (tmp_path / "out/metrics.csv").read_text().splitlines()
    place = rows[0].split(",").index("seconds_evaluate")
    assert max(float(row.split(",")[place]) for row in rows[1:]) < 12, "it is no work"


@pytest.mark.skipif(not TORTURE, reason="make torture: it takes minutes")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_is_suspended_a_hundred_times(tmp_path, engine):
    process, rng = start(tmp_path, engine, seconds=0.05, iterations=200), random.Random(1)
    for _ in range(100):
        time.sleep(rng.uniform(0, 0.6))
        if process.poll() is not None:
            break
        send(process, signal.SIGSTOP)
        time.sleep(rng.uniform(0, 3))
        send(process, signal.SIGCONT)
    assert process.wait(900) == 0, (tmp_path / "printed.txt").read_text()
    assert digest(tmp_path / "out") == undisturbed_digest(tmp_path / "other", iterations=200)
