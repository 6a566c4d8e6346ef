"""Real sweeps, computed once. Tests that change a sweep work on a copy."""

import shutil

import pytest
from in_process import compute_sweep
from looks import SWEEP
from support import TINY


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Two algorithms, two seeds, two budgets. The runs of the smaller one were extended."""
    results = tmp_path_factory.mktemp("figures") / "results"
    return compute_sweep(results, TINY, SWEEP)


@pytest.fixture
def sweep(made, tmp_path):
    shutil.copytree(made.parent.parent, tmp_path / "results")
    return tmp_path / "results" / "sweeps" / "tiny"


@pytest.fixture(scope="session")
def tasks(tmp_path_factory):
    """Two algorithms on two functions."""
    results = tmp_path_factory.mktemp("tasks") / "results"
    text = "::: domain lp_sphere lp_rastrigin ::: algorithm map_elites cma_me ::: seed 1 2 3"
    return compute_sweep(results, {**TINY, "iterations": 4}, text, name="tasks")
