"""Stages name what is missing or damaged, with the remedy."""

import os
import shutil
import subprocess
import sys

import pytest
from refusals import refused

from qdsweep.analysis.figures.plots import plot
from qdsweep.analysis.page.report import report
from qdsweep.analysis.tables.aggregate import aggregate


def test_each_stage_names_the_one_before_it(invented, tmp_path):
    with refused("qdsweep aggregate"):
        plot(tmp_path, invented.runs)


@pytest.mark.parametrize(
    ("damaged", "stage", "remedy"),
    [
        ("runs/ID/summary.json", aggregate, "snakemake"),
        ("runs/ID/metrics.csv", aggregate, "snakemake"),
        ("runs/ID/config.yaml", aggregate, "snakemake"),
        ("runs/ID/archive.npz", plot, "snakemake"),
        ("sweeps/main/summary.csv", plot, "snakemake"),
        ("sweeps/main/plots/figures.json", report, "qdsweep plot"),
        ("sweeps/main/table.json", report, "qdsweep aggregate"),
        ("sweeps/main/tables/comparisons.json", report, "qdsweep aggregate"),
    ],
)
def test_a_damaged_file_is_named_with_the_remedy(invented, main, tmp_path, damaged, stage, remedy):
    results = tmp_path / "results"
    shutil.copytree(invented.results, results, copy_function=os.link)
    shutil.rmtree(results / "sweeps/main/plots/archives")  # else they are not drawn again
    (results / "sweeps/main/.aggregated.npz").unlink()
    file = results / damaged.replace("ID", invented.ids["wide", 1])
    for content in (b"", b"torn", b"[1]\n", b'{"rows": [1]}\n', b"PK\x03\x04"):
        file.unlink()
        file.write_bytes(content)
        with refused(file, remedy):
            stage(results / "sweeps/main", results / "runs")


def test_importing_the_stages_is_cheap():
    code = (
        "import sys, qdsweep.experiment.load\n"
        "import qdsweep.analysis.tables.aggregate, qdsweep.analysis.figures.plots\n"
        "print(sorted({'ribs', 'pandas', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
