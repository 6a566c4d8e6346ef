"""If jobs share no folder, a sweep reports it before anything starts."""

from pathlib import Path

import pytest
from refusals import names_all
from support import TINY, snakemake, write_yaml

ON_SLURM = ["--executor", "slurm", "--jobs", 2]
KEPT = ["persistence", "sources", "software-deployment", "source-cache"]


@pytest.fixture
def sweep(tmp_path) -> Path:
    data = {"name": "tiny", "experiment": TINY, "sweep": "::: seed 1"}
    return write_yaml(tmp_path / "mine.yaml", data)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (
            ["--cores", 2, "--default-storage-provider", "fs", "--default-storage-prefix", "away"],
            ["--default-storage-provider fs"],
        ),
        ([*ON_SLURM, "--shared-fs-usage", "none"], ["--shared-fs-usage none", "input-output"]),
        (
            ["-n", *ON_SLURM, "--shared-fs-usage", "sources", "persistence"],
            ["--shared-fs-usage persistence sources", "input-output"],
        ),
    ],
)
def test_it_says_why_and_which_ways_there_are(sweep, tmp_path, words, names):
    done = snakemake(*words, "--configfile", sweep, cwd=tmp_path, check=1)
    lines = (done.stdout + done.stderr).splitlines()
    (refusal,) = [line for line in lines if all(name in line for name in names)]
    names_all(refusal, "state/", "--cores", "--profile profiles/slurm")
    assert not any(line.startswith("qdsweep: ") for line in lines)  # nothing was planned
    assert {path.name for path in tmp_path.iterdir()} <= {"mine.yaml", ".snakemake"}


def test_what_a_node_keeps_for_itself_is_no_matter(sweep, tmp_path):
    """Snakemake's manual recommends this for clusters whose nodes have their own disks."""
    words = ["-n", *ON_SLURM, "--configfile", sweep, "--shared-fs-usage", "input-output", *KEPT]
    assert "qd_run" in snakemake(*words, cwd=tmp_path).stdout
