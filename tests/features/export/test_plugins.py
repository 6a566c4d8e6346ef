"""`qdsweep export` packs the user's code of the runs, and it computes them again."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

import pytest
from in_process import compute_run, compute_sweep, qdsweep
from refusals import names_all
from support import BIN
from waiting import wait_until

from qdsweep import load
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.features.export.blind import AUTHORS, findings
from qdsweep.files import read_json
from qdsweep.records.dependencies import record_code, recorded, sources_of_plugins
from qdsweep.records.paths import Results
from qdsweep.records.status import write_status

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
    printed = qdsweep("export", "tiny", cwd=study)
    plugin = f"config/plugins/{MODULE}.py"
    names_all(printed, plugin, f"{plugin}:4: an e-mail address 'nora@example.org'")
    inside = unpack(tmp_path / "elsewhere")
    plugins = inside / "config/plugins"
    files = {str(path.relative_to(plugins)) for path in plugins.rglob("*.py")}
    assert files == {f"{MODULE}.py", f"{HELPER}/__init__.py", f"{HELPER}/depth.py"}
    assert (plugins / f"{MODULE}.py").read_text() == SOURCE

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
    qdsweep("export", "tiny", cwd=study)
    packed = unpack(tmp_path / "kept") / f"config/plugins/{MODULE}.py"
    assert packed.read_text() == SOURCE
    for kept in (study / "results/sources").rglob(f"{MODULE}.py"):
        kept.unlink()
    (study / "tiny.zip").unlink()
    printed = qdsweep("export", "tiny", cwd=study, code=2)
    names_all(printed, f"{MODULE}:Bowl", "results/sources")
    assert not (study / "tiny.zip").exists()


def test_runs_that_were_accepted_for_other_code_are_named(study):
    name = f"config/plugins/{HELPER}/depth.py"
    (study / name).write_text("def score(x):\n    return -(x**4).sum(axis=1)\n")
    (run, _) = sorted(Results(Path("results")).known_runs(), key=lambda run: run.name)
    with own_modules():
        record_code(run, sources_of_plugins([f"{MODULE}:Bowl"]))
    printed = qdsweep("export", "tiny", cwd=study)
    names_all(printed, "other code than the package has", f"{run.name} ({name})")


@pytest.mark.parametrize("change", ["edited", "gone"])
@pytest.mark.parametrize("is_kept", [True, False])
def test_an_import_that_has_changed_is_packed_as_it_was_or_named(study, tmp_path, change, is_kept):
    name = f"{HELPER}/depth.py"
    file = study / "config/plugins" / name
    before = file.read_text()
    file.write_text(before + "x = 2\n") if change == "edited" else file.unlink()
    for kept in (study / "results/sources").glob(f"*/{name}") if not is_kept else ():
        kept.unlink()
    printed = qdsweep("export", "tiny", cwd=study)
    packed = unpack(tmp_path / "kept") / "config/plugins" / name
    assert (packed.exists() and packed.read_text() == before) == is_kept
    assert ("other code than the package has" in printed) != is_kept
    assert is_kept or name in printed


@pytest.mark.parametrize(
    "name", ["sweep.yaml", "readme.TXT", "SHA256SUMS", "tables/runs.tsv", "a\\b.txt"]
)
def test_a_declared_file_with_a_name_of_the_package_is_refused(study, name):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    source = study / f"config/plugins/{MODULE}.py"
    source.write_text(SOURCE.replace("    fields", f"    depends = ({name!r},)\n    fields"))
    with own_modules():
        compute_sweep(study / "results", EXPERIMENT, "::: seed 1 2")
    printed = qdsweep("export", "tiny", cwd=study, code=2)
    names_all(printed, "rename", path.name.rpartition("\\")[2])
    assert not (study / "tiny.zip").exists()


def test_a_reader_sees_what_the_authors_accepted(study, tmp_path):
    record = {f"config/plugins/{HELPER}/depth.py": "0" * 64}
    run = Results(study / "results").run(next((study / "results/runs").iterdir()).name)
    now = recorded(run.state)
    write_status(run.state, {**read_json(run.state.status), "sources": record})
    record_code(run, now)
    sweep = study / "results/sweeps/tiny"
    aggregate(sweep, study / "results/runs")
    words = "1 run was computed with other code, which the authors accepted"
    names_all(read_json(sweep / "table.json")["note"], f" {words}.")
    qdsweep("export", "tiny", cwd=study)
    inside = unpack(tmp_path / "elsewhere")
    names_all((inside / "checklist.md").read_text(), f"; {words}")
    summary = read_json(inside / f"runs/{run.name}/summary.json")
    assert [entry["sources"] for entry in summary["accepted"]] == [record]
    assert summary["sources"] == now


def test_the_lines_of_own_files_that_name_a_person_are_listed(study, monkeypatch):
    monkeypatch.setenv("LOGNAME", "nora_jacobsen")
    source = study / f"config/plugins/{MODULE}.py"
    lines = ["# made by nora_jacobsen", "# in /home/nora/study", "# Author: N", "# a bowl"]
    source.write_text("\n".join([*lines, SOURCE]))
    printed = qdsweep("export", "tiny", cwd=study)
    kinds = ("the user name", "a home directory", "the name of an author")
    names_all(printed, *(f"{MODULE}.py:{line}: {kind}" for line, kind in enumerate(kinds, 1)))
    assert f"{MODULE}.py:4:" not in printed and "unrelated" not in printed


@pytest.mark.parametrize("line", ['__author__ = "N"', "(c) Copyright N", "authors: A, B"])
def test_a_line_that_names_an_author_is_found(line):
    assert list(findings("a.py", line.encode(), AUTHORS))


@pytest.mark.parametrize("line", ["class Coauthors:", "authority = 1", "an author of this"])
def test_a_word_like_author_names_nobody(line):
    assert not list(findings("a.py", line.encode(), AUTHORS))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_interrupted_export_leaves_nothing(study, tmp_path, number):
    (temporary := tmp_path / "temporary").mkdir()
    before = {*study.iterdir()}
    env = {**os.environ, "TMPDIR": str(temporary)}
    hangs_up = partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)  # also below `nohup`
    command = [BIN / "qdsweep", "export", "tiny"]
    with subprocess.Popen(command, env=env, cwd=study, preexec_fn=hangs_up) as process:
        wait_until(lambda: any(temporary.glob("qdsweep-export-*/config")))
        process.send_signal(number)
        assert process.wait(30) != 0
    assert not [*temporary.iterdir()] and {*study.iterdir()} == before
