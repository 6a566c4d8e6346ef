"""Real runs of several tasks."""

import subprocess
from pathlib import Path

import pytest
from in_process import compute_sweep
from support import TINY

SWEEP = "::: domain lp_sphere lp_rastrigin ::: algorithm map_elites cma_me ::: seed 1 2 3"


@pytest.fixture(scope="session")
def tasks(tmp_path_factory) -> Path:
    """Two domains x two algorithms x three seeds, with their tables."""
    results = tmp_path_factory.mktemp("tasks") / "results"
    compute_sweep(results, TINY, SWEEP, name="tasks")
    return results


@pytest.fixture
def results(tasks, tmp_path) -> Path:
    """A copy with the same times, so the cache of the runs is valid."""
    subprocess.run(["cp", "-a", tasks, tmp_path], check=True)
    return tmp_path / "results"
