"""A domain whose evaluations take a time from the environment, and a run of it."""

import contextlib
import functools
import tempfile
from pathlib import Path

from in_process import compute_run
from results import digest
from support import shared_folder, write_yaml

PATIENT = '''
import os, socket, sys, time
import numpy as np
from qdsweep.domains.base import Evaluation

if os.environ.get("PATIENT_BREAKS") and "children" in sys.argv[0]:
    raise RuntimeError("PATIENT_BREAKS is set")
MEMORY = []


class Patient:
    """Sleeps PATIENT_SECONDS per solution, and while the file PATIENT_HOLD exists.

    The result does not depend on the time.
    """

    solution_dim = 6
    measures = {"x": (-3.0, 3.0), "y": (-3.0, 3.0)}
    objective_range = (-100.0, 0.0)
    fields = {}

    def evaluate(self, solutions, seeds):
        print("evaluates", len(solutions))
        while os.path.exists(os.environ.get("PATIENT_HOLD", "")):
            time.sleep(0.02)
        time.sleep(float(os.environ.get("PATIENT_SECONDS", "0")) * len(solutions))
        if os.environ.get("PATIENT_MB") and not MEMORY:
            MEMORY.append(np.ones(int(os.environ["PATIENT_MB"]) * 125_000))
        noise = np.array([np.random.default_rng(seed).normal() for seed in seeds])
        return Evaluation(noise - np.sum(solutions**2, axis=1), solutions[:, :2].copy())
'''

EXPERIMENT = {
    "domain": {"type": "sleeper:Patient", "name": "patient", "evaluation_seed": "solution"},
    "algorithm": "map_elites_line",
    "initial_solutions": 24,
    "archive": {"dims": [10, 10]},
    "num_emitters": 2,
    "batch_size": 12,
    "iterations": 20,
    "reload": {"min_seconds": 0.5},
}


@functools.cache
def _config() -> Path:
    """The folder of plugins/sleeper.py, one per process of pytest; `patient` is this module."""
    folder = Path(tempfile.mkdtemp(prefix="patient-", dir=shared_folder()))
    (folder / "plugins").mkdir()
    (folder / "plugins/sleeper.py").write_text(PATIENT)
    return folder


def add_plugin(folder: Path) -> None:
    """Makes the domain known to processes that start in a folder."""
    if not (folder / "config").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config").symlink_to(_config())


def make_folder(folder: Path, **changes: object) -> Path:
    """Makes the domain known and writes `experiment.yaml`."""
    add_plugin(folder)
    write_yaml(folder / "experiment.yaml", {**EXPERIMENT, **changes})
    return folder


def undisturbed_digest(folder: Path, **changes: object) -> str:
    """The result of the serial engine in this process."""
    make_folder(folder, **changes)
    with contextlib.chdir(folder):
        return digest(compute_run(folder / "experiment.yaml", folder / "out"))
