"""`qdsweep export` packs the user's code of the runs, and it computes them again."""

import contextlib
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from in_process import compute_run, compute_sweep, qdsweep
from refusals import names_all

from qdsweep import load
from qdsweep.features.export.blind import AUTHORS, findings

MODULE, HELPER = "exported_bowl", "exported_helper"
SOURCE = f'''"""A bowl."""
# Written by Nora Jacobsen, of the University of Somewhere.
import numpy as np
from {HELPER}.depth import score  # nora@example.org
from qdsweep.domains.base import Evaluation


class Bowl:
    solution_dim = 3
    measures = {{"x": (-2.0, 2.0), "y": (-2.0, 2.0)}}
    objective_range = (-100.0, 0.0)
    fields = {{}}
    mark = "# no comment"

    def evaluate(self, solutions, seeds):
        return Evaluation(score(solutions), solutions[:, :2].copy())
'''
EXPERIMENT = {
    "domain": {"type": f"{MODULE}:Bowl", "name": "bowl"},
    "algorithm": "map_elites",
    "archive": {"dims": [8, 8]},
    "num_emitters": 1,
    "batch_size": 10,
    "iterations": 2,
}


@contextlib.contextmanager
def own_modules():
    path = list(sys.path)
    yield
    sys.path[:] = path
    for name in [name for name in sys.modules if name.startswith("exported_")]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A folder with plug-ins and a finished sweep."""
    folder = tmp_path_factory.mktemp("study")
    plugins = folder / "config/plugins"
    (plugins / HELPER).mkdir(parents=True)
    (plugins / f"{MODULE}.py").write_text(SOURCE)
    (plugins / "unrelated.py").write_text("x = 1\n")
    (plugins / HELPER / "__init__.py").write_text("")
    (plugins / HELPER / "depth.py").write_text("def score(x):\n    return -(x**2).sum(axis=1)\n")
    with own_modules(), contextlib.chdir(folder):
        sweep = compute_sweep(folder / "results", EXPERIMENT, "::: seed 1 2")
    (sweep / "plots").mkdir()
    return folder


@pytest.fixture
def study(finished, tmp_path, monkeypatch) -> Path:
    """A copy of it to damage."""
    folder = tmp_path / "study"
    shutil.copytree(finished, folder)
    monkeypatch.chdir(folder)
    return folder


def unpack(folder: Path) -> Path:
    with zipfile.ZipFile("tiny.zip") as packed:
        packed.extractall(folder)
    return folder / "tiny"


def test_the_packed_code_computes_a_run_again(study, tmp_path, monkeypatch):
    qdsweep("export", "tiny", cwd=study)
    inside = unpack(tmp_path / "elsewhere")
    plugins = inside / "config/plugins"
    files = {str(path.relative_to(plugins)) for path in plugins.rglob("*.py")}
    assert files == {f"{MODULE}.py", f"{HELPER}/__init__.py", f"{HELPER}/depth.py"}
    text = (plugins / f"{MODULE}.py").read_text()
    assert "Nora" not in text and "nora" not in text and '"# no comment"' in text

    monkeypatch.chdir(inside)
    run = next((inside / "runs").glob("bowl-*-s2-*"))
    with own_modules():
        again = compute_run(run / "config.yaml", tmp_path / "again")
        assert str(inside) in sys.modules[MODULE].__file__
    before, after = load(run).summary, load(again).summary
    assert after["archive_digest"] == before["archive_digest"] and after["id"] == before["id"]


def test_code_that_has_changed_since_is_packed_as_it_was(study, tmp_path):
    source = study / f"config/plugins/{MODULE}.py"
    source.write_text(SOURCE.replace("score(solutions)", "score(2 * solutions)"))
    assert MODULE not in qdsweep("export", "tiny", cwd=study)
    packed = unpack(tmp_path / "kept") / f"config/plugins/{MODULE}.py"
    assert "score(solutions)" in packed.read_text()
    for kept in (study / "results/sources").rglob(f"{MODULE}.py"):
        kept.unlink()
    names_all(qdsweep("export", "tiny", cwd=study), f"{MODULE}:Bowl", "results/sources")
    assert not (unpack(tmp_path / "lost") / "config").exists()


def test_code_that_names_its_author_is_refused(study):
    source = study / f"config/plugins/{MODULE}.py"
    source.write_text(SOURCE.replace("A bowl.", "Author: N. Jacobsen"))
    message = qdsweep("export", "tiny", cwd=study, code=1)
    names_all(message, f"config/plugins/{MODULE}.py", "Author: N. Jacobsen")
    assert not (study / "tiny.zip").exists()
    for line in ('__author__ = "N"', "__copyright__ = 1", "(c) Copyright N", "authors: A, B"):
        assert list(findings("a.py", line.encode(), AUTHORS)), line
    for line in ("class Coauthors:", "authority = 1", "an author of this"):
        assert not list(findings("a.py", line.encode(), AUTHORS)), line
