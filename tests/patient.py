"""A domain whose evaluations last as long as the environment says, and a run of it."""

import json
import subprocess
import time
from pathlib import Path

import psutil
import yaml
from support import BIN

PATIENT = '''
import os, socket, sys, time
import numpy as np
from qdsweep.domains.base import Evaluation

if os.environ.get("PATIENT_BREAKS") and "worker" in sys.argv:
    raise RuntimeError("this worker has no luck")
MEMORY = []


class Patient:
    """Sleeps for PATIENT_SECONDS a solution; the result does not depend on it."""

    solution_dim = 6
    measures = {"x": (-3.0, 3.0), "y": (-3.0, 3.0)}
    objective_range = (-100.0, 0.0)
    fields = {}

    def evaluate(self, solutions, seeds):
        print("evaluates", len(solutions))
        time.sleep(float(os.environ.get("PATIENT_SECONDS", "0")) * len(solutions))
        if os.environ.get("PATIENT_MB") and not MEMORY:
            MEMORY.append(np.ones(int(os.environ["PATIENT_MB"]) * 125_000))
        noise = np.array([np.random.default_rng(seed).normal() for seed in seeds])
        return Evaluation(noise - np.sum(solutions**2, axis=1), solutions[:, :2].copy())
'''

EXPERIMENT = {
    "domain": {"type": "patient:Patient", "name": "patient", "evaluation_seed": "solution"},
    "algorithm": "map_elites_line",
    "initial_solutions": 24,
    "archive": {"dims": [10, 10]},
    "num_emitters": 2,
    "batch_size": 12,
    "iterations": 20,
    "reload": {"min_seconds": 0.5},
}


def make_folder(folder: Path, **changes: object) -> Path:
    """Writes the domain and `experiment.yaml`."""
    (folder / "config/plugins").mkdir(parents=True)
    (folder / "config/plugins/patient.py").write_text(PATIENT)
    (folder / "experiment.yaml").write_text(yaml.safe_dump({**EXPERIMENT, **changes}))
    return folder


def undisturbed_digest(folder: Path, **changes: object) -> str:
    """The result of the serial engine."""
    make_folder(folder, **changes)
    words = [BIN / "qdsweep", "run", "experiment.yaml", "--out", "out"]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    return digest(folder / "out")


def digest(out: Path) -> str:
    return json.loads((out / "summary.json").read_text())["archive_digest"]


def wait_until(true, seconds: float = 60.0, what: str = "") -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.05)


def says(log: Path, text: str, count: int = 1) -> bool:
    return log.exists() and log.read_text().count(text) >= count


def crew_of(folder: Path) -> list[psutil.Process]:
    """The processes of `qdsweep worker` for the runs of a folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if words[1:4] == ["-m", "qdsweep", "worker"] and str(folder) in " ".join(words):
            found.append(process)
    return found


def workers_of(folder: Path) -> list[psutil.Process]:
    """Those that evaluate: forked by another one."""
    crew = crew_of(folder)
    return [process for process in crew if process.parent() in crew]
