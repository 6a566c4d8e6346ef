"""Stages name what is missing or damaged, with the remedy."""

import os
import shutil

import pytest

from qdsweep.analysis.figures.plots import plot
from qdsweep.analysis.page.report import report
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.errors import BadInput


def test_each_stage_names_the_one_before_it(invented, tmp_path):
    with pytest.raises(BadInput, match="qdsweep aggregate"):
        plot(tmp_path, invented.runs)


@pytest.mark.parametrize(
    ("damaged", "stage"),
    [
        ("runs/ID/summary.json", aggregate),
        ("runs/ID/metrics.csv", aggregate),
        ("runs/ID/config.yaml", aggregate),
        ("runs/ID/archive.npz", plot),
        ("sweeps/main/summary.csv", plot),
        ("sweeps/main/plots/figures.json", report),
        ("sweeps/main/table.json", report),
        ("sweeps/main/tables/comparisons.json", report),
    ],
)
def test_a_damaged_file_is_named_with_the_remedy(invented, main, tmp_path, damaged, stage):
    results = tmp_path / "results"
    shutil.copytree(invented.results, results, copy_function=os.link)
    shutil.rmtree(results / "sweeps/main/plots/archives")  # else they are not drawn again
    (results / "sweeps/main/.aggregated.npz").unlink()
    file = results / damaged.replace("ID", invented.ids["wide", 1])
    for content in (b"", b"torn", b"[1]\n", b'{"rows": [1]}\n', b"PK\x03\x04"):
        file.unlink()
        file.write_bytes(content)
        with pytest.raises(BadInput) as failure:
            stage(results / "sweeps/main", results / "runs")
        assert str(file) in str(failure.value), content
        assert "makes it anew" in str(failure.value)


def test_importing_the_stages_is_cheap():
    import subprocess
    import sys

    code = (
        "import sys, qdsweep.experiment.load\n"
        "import qdsweep.analysis.tables.aggregate, qdsweep.analysis.figures.plots\n"
        "print(sorted({'ribs', 'pandas', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
