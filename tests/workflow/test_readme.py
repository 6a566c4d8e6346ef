"""Every command of the README, in the order in which a new user would type them."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pandas as pd
import pytest
import yaml
from support import BIN, REPO, copy_project

README = (REPO / "README.md").read_text()
# Run elsewhere: `make test` is what runs this; tests/slurm, tests/container and tests/faults run
# the others.
ELSEWHERE = (
    "make test",
    "make venv",
    "make image",
    "containers/build.sh",
    "apptainer build",
    "qdsweep --image",
    "snakemake --executor slurm",
    "snakemake --profile profiles/slurm",
    "sbatch",
    "qdsweep worker",
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.M | re.S)


def commands() -> list[str]:
    lines = [line.strip() for block in blocks("sh") for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith(ELSEWHERE)]


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """A fresh clone."""
    folder = copy_project(tmp_path_factory.mktemp("readme") / "qdsweep")
    (folder / "my_sweep.yaml").write_text(
        yaml.safe_dump({"name": "mine", "experiment": "arm", "sweep": "::: seed 1 2"})
    )
    return folder


@pytest.mark.timeout(1800)
def test_every_command_of_the_readme_works(clone):
    env = {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "PYTHONPATH": str(clone / "workflow"),
    }
    assert len(commands()) > 15
    for line in commands():
        line = re.sub(r"^make ", "make -o .venv/installed ", line)  # this venv, as it is
        done = subprocess.run(
            ["bash", "-c", line], cwd=clone, env=env, capture_output=True, text=True, timeout=1500
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    (python,) = blocks("python")
    done = subprocess.run(
        [BIN / "python", "-c", python + "\nprint(run.archive.stats, len(run.metrics))"],
        cwd=clone,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith(" 150"), "lengthened by a later command"
    table = pd.read_csv(clone / "results/sweeps/demo/summary.csv")
    assert len(table) == 6
    assert table["algorithm"].nunique() == 3
    assert table["obj_max"].max() > 200, "the demo lands"
    assert (clone / "results/sweeps/demo/report.html").stat().st_size > 10_000


def test_the_sweep_of_the_readme_is_yaml_as_it_stands():
    for block in blocks("yaml"):
        assert isinstance(yaml.safe_load(block)["sweep"], str)


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (REPO / target).exists(), target


def test_the_first_lines_are_short():
    head = README.splitlines()[:40]
    assert sum("![" in line for line in head) == 1, "one figure, no badges"
    assert any(
        shlex.split(line)[:2] == ["make", "demo"] for line in head if line.startswith("make")
    )
