"""The results of version 0.1.0, which tests/fixtures/make_results.py has made."""

import json
import tarfile
from pathlib import Path

from in_process import forget_plugins
from support import REPO

FIXTURE = REPO / "tests/fixtures/results_0_1_0.tar.xz"
with tarfile.open(FIXTURE) as packed:
    EXPECTED = json.load(packed.extractfile("expected.json"))
RUNS = EXPECTED["runs"]
FINISHED = [run for run, about in RUNS.items() if about["status"] == "finished"]
HALF_DONE = [run for run in RUNS if run not in FINISHED]


def unpack(folder: Path) -> Path:
    """Writes the folder, and forgets the plug-in that another such folder may have imported."""
    with tarfile.open(FIXTURE) as packed:
        packed.extractall(folder, filter="data")
    forget_plugins()
    return folder
