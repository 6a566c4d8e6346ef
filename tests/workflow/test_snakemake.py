"""Sweeps under other releases of Snakemake: the oldest, the newest, and one without a name."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import without
from in_process import compute_sweep
from plugins import BROKEN
from refusals import names_all
from results import digest, digests
from starting import jobs, planned, start
from support import REPO, TINY, command, run, write_yaml

from qdsweep.planning.internals import NAMES, NEWEST, OLDEST

SWEEP = "::: algorithm map_elites cma_mae ::: seed 1"
# The targets of sweeps that do not need figures and pages, which take the longest.
TABLE = "results/sweeps/tiny/table.csv"
# One that a start needs, and one that only makes it faster.
SHORT = ("check_protected_output", "_input_changed")
# Snakemake's own parser finds these by name, and one is Python's.
FIXED = {
    *("allowed_rules", "debug_dag", "default_resources", "omit_from", "rerun_triggers"),
    *("show_failed_logs", "target_jobs", "cache_clear"),
}
# Words without an underscore have several meanings in Snakemake.
RENAMED = {
    word: name
    for name in NAMES
    if "_" in (word := re.split("[.:]", name.place)[-1])
    and not word.startswith("__")
    and word not in FIXED
}


def write_config(folder: Path, sweep: str = SWEEP, name: str = "mine.yaml", **changes) -> Path:
    data = {"name": "tiny", "experiment": {**TINY, **changes}, "sweep": sweep}
    return write_yaml(folder / name, data)


def assert_one_sentence(word: str, folder: Path) -> None:
    """A dry run of a Snakemake with another word for a name ends in a sentence, or is slower."""
    write_config(folder)
    name = RENAMED[word]
    words = [sys.executable, without.__file__, word, TABLE, "-s", str(REPO / "Snakefile"), "-n"]
    words += ["--directory", str(folder), "--cores", "1", "--configfile", "mine.yaml"]
    done = run(words, cwd=folder, env=dict(os.environ), check=None if name.slower else 1)
    printed = done.stdout + done.stderr
    lines = [line for line in printed.splitlines() if str(name) in line]
    assert len(lines) == 1, printed
    names_all(lines[0], OLDEST, NEWEST, "pip install")
    assert not any(sign in printed for sign in ("Traceback", "AttributeError", "NameError"))
    if name.slower:
        assert jobs(printed) == {"qd_run": 2, "aggregate": 1}


@pytest.mark.parametrize("word", SHORT)
def test_a_start_without_a_name_ends_in_one_sentence_or_is_slower(word: str, tmp_path):
    assert_one_sentence(word, tmp_path)


@pytest.mark.parametrize("word", sorted(RENAMED.keys() - {*SHORT}))
def test_each_name_is_noticed_by_a_real_start(word: str, tmp_path):
    assert_one_sentence(word, tmp_path)


@pytest.fixture(scope="module", params=[f"=={OLDEST}", f">={NEWEST},<10"], ids=["oldest", "newest"])
def release(request, tmp_path_factory) -> str:
    """Another release of Snakemake; a folder for PYTHONPATH."""
    folder = tmp_path_factory.mktemp("release")
    words = ["pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
    # The oldest one imports appdirs, which the newest does not.
    words = [sys.executable, "-m", *words, f"snakemake{request.param}", "appdirs"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"snakemake{request.param} cannot be installed: {done.stderr[-300:]}")
    return str(folder)


def test_a_sweep_is_computed_repeated_extended_and_fails(release: str, tmp_path):
    installed = command("snakemake", "--version", PYTHONPATH=release).stdout.strip()
    (folder,) = Path(release).glob("snakemake-*.dist-info")
    assert folder.name == f"snakemake-{installed}.dist-info"

    write_config(tmp_path)
    start(tmp_path, TABLE, PYTHONPATH=release)
    assert planned(tmp_path, TABLE, PYTHONPATH=release) == {}
    more = SWEEP.replace("seed 1", "seed 1 2")
    write_config(tmp_path, more, iterations=16)
    assert planned(tmp_path, TABLE, PYTHONPATH=release)["qd_run"] == 4
    start(tmp_path, PYTHONPATH=release)  # to the page
    assert planned(tmp_path, PYTHONPATH=release) == {}
    expected = compute_sweep(tmp_path / "expected", {**TINY, "iterations": 16}, more)
    runs = (expected.parents[1] / "runs").iterdir()
    assert digests(tmp_path) == {folder.name: digest(folder) for folder in runs}

    (tmp_path / "config/plugins").mkdir(parents=True)
    (tmp_path / "config/plugins/broken.py").write_text(BROKEN)
    write_config(tmp_path, "::: seed 1 2", "broken.yaml", domain="broken:Broken")
    words = {"file": "broken.yaml", "check": 1, "PYTHONPATH": release}
    printed = start(tmp_path, "--retries", "2", **words)
    assert len(re.findall(r"^\[[\d:]+\] run Broken-", printed, re.MULTILINE)) == 2
    names_all(printed.rsplit("\n\n", 1)[1], 2, "the sensor is off")
