"""Packages of an earlier commit are planned with the ids that they had then.

If one of these tests fails, fix the current code, not the fixture, because such packages are in
archives. tests/fixtures/make_packages.py made them.
"""

import csv
import subprocess
import zipfile
from pathlib import Path

import pytest
from studies import alone_in
from support import REPO

from qdsweep.features.export.complete import planned_here
from qdsweep.records.paths import Results

PACKAGES = REPO / "tests/fixtures/packages"
NAMES = sorted(path.stem for path in PACKAGES.glob("*.zip"))


def rows(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def test_they_are_small_and_of_several_kinds():
    assert len(NAMES) >= 6
    assert sum(path.stat().st_size for path in PACKAGES.iterdir()) < 150_000


@pytest.mark.parametrize("name", NAMES)
def test_its_runs_have_the_ids_that_they_had(name, tmp_path):
    with zipfile.ZipFile(PACKAGES / f"{name}.zip") as file:
        file.extractall(tmp_path)
    inside = tmp_path / name
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=inside, check=True)
    expected = [
        row["run"] for row in rows(PACKAGES / "planned.tsv", "\t") if row["package"] == name
    ]
    with alone_in(inside):
        assert planned_here(Results(Path("results"))) == {"runs": expected, "outside": []}
    known = {row["id"] for row in rows(inside / "tables/digests.csv")}
    folders = {path.name for path in (inside / "runs").iterdir()}
    assert known and known <= folders
