"""A fresh clone on a machine with only Snakemake, like that of the workflow catalogue."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from installation import snakemake_alone, type_in
from refusals import names_all
from support import copy_project


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    folder = copy_project(tmp_path_factory.mktemp("bare") / "clone")
    (folder / ".venv").unlink()
    return folder


def test_the_environment_has_nothing_else(clone):
    others = ("numpy", "ribs", "snakemake_executor_plugin_slurm")
    assert all(find_spec(name) for name in others)
    code = f"from importlib.util import find_spec; print(*map(find_spec, {others}))"
    done = type_in(snakemake_alone(), "python", "-c", code, cwd=clone)
    assert done.stdout.split() == ["None"] * 3


def test_it_passes_the_linter(clone):
    type_in(snakemake_alone(), "snakemake", "--lint", cwd=clone)


def test_a_dry_run_lists_the_runs_of_the_demo(clone):
    done = type_in(snakemake_alone(), "snakemake", "-n", cwd=clone)
    names_all(done.stdout, "lunar_lander-cma_me-s1-18b4aae78b", "results/sweeps/demo/report.html")
    assert not (clone / "results").exists()


def test_a_start_is_refused_with_what_installs_the_libraries(clone):
    done = type_in(snakemake_alone(), "snakemake", "--cores", 1, cwd=clone, check=1)
    ways = ("make venv && . .venv/bin/activate", "--sdm conda", "--sdm apptainer", "build.sh")
    names_all(done.stderr, "numpy", "ribs", *ways)
    assert "Traceback" not in done.stderr
    assert not list((clone / "results").glob("runs/*/state/run.log")), "a job has started"
