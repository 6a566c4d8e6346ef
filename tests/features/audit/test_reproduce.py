"""`qdsweep reproduce` computes runs of a package again, and names what differs."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
from disks import library
from packages import package, sign, zipped
from refusals import names_all, refused
from support import BIN, REPO, command
from waiting import wait_until

from qdsweep.features.audit.package import unpack_package

PACKAGES = REPO / "tests/fixtures/packages"
ALL = ("--here", "--yes", "--all")


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    return package(tmp_path_factory.mktemp("study"))


@pytest.fixture
def folder(original, tmp_path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(original, tmp_path / "tiny"))


def reproduce(target: Path, *words: object, check: int = 0, **env: str) -> str:
    """Types the command next to a package; nothing is left of it."""
    temporary = target.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    env |= {"TMPDIR": str(temporary)}
    done = command("qdsweep", "reproduce", target, *words, cwd=target.parent, check=check, **env)
    assert not list(temporary.iterdir())
    return done.stdout + done.stderr


def digests(folder: Path) -> list[dict[str, str]]:
    with (folder / "tables/digests.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def changed(folder: Path, line: int, **cells: str) -> str:
    """Changes cells of the digests, signs the package, and returns the id of the run."""
    edited(folder / "tables/digests.csv", line, **cells)
    sign(folder)
    return digests(folder)[line]["id"]


def edited(path: Path, line: int, **cells: str) -> None:
    """Changes cells of a table."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows[line] |= cells
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def rewritten(path: Path, name: str) -> None:
    """Raises a value of an array of an .npz file."""
    with np.load(path) as file:
        arrays = {**file}
    arrays[name][0] += 1
    np.savez_compressed(path, **arrays)


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def verdict(printed: str, run: str) -> str:
    (line,) = (line for line in printed.splitlines() if f"{run}  " in line)
    return line.partition(run)[2].strip()


def test_a_clean_package_has_equal_bits(folder):
    printed = reproduce(zipped(folder), *ALL)
    assert printed.count("equal bits") == 5
    names_all(printed, "config/plugins/packed_bowl.py", "config/plugins/packed_depth.py", "--image")
    names_all(printed.splitlines()[-1], "4 runs", "4 equal bits", "0 differ", "0 not computed")
    names_all(printed, "not checked: figures, report.html")
    assert "warning" not in printed


def test_the_digests_of_a_package_can_be_audited_in_its_folder(folder):
    words = ("qdsweep", "audit", "tables/digests.csv")
    names_all(command(*words, "--share", "25%", cwd=folder).stdout, "1 of 1 the same bits")
    replaced(folder / "sweep.yaml", "name: tiny", "name: other")
    done = command(*words, cwd=folder, check=2)
    names_all(done.stderr, "tables/digests.csv", "tiny", "Copy")


@pytest.mark.parametrize("name", sorted(path.stem for path in PACKAGES.glob("*.zip")))
def test_a_package_of_an_earlier_commit_has_equal_bits(name, tmp_path):
    """Libraries may be newer by then: their versions are the reason of a difference."""
    file = Path(shutil.copy(PACKAGES / f"{name}.zip", tmp_path))
    more = ("--all",) if name == "presets" else ()  # two of its runs have equal settings
    printed = reproduce(file, "--here", "--yes", *more)
    names_all(printed, "4 equal bits, 0 differ" if more else "1 equal bits, 0 differ")


def test_every_edit_that_was_signed_is_found_by_the_computation(folder):
    versions = digests(folder)[0]["versions"].replace("numpy ", "numpy 1.")
    first = changed(folder, 0, archive_digest="0" * 64, versions=versions)
    second = changed(folder, 1, obj_max="-0.5")
    third, fourth = (row["id"] for row in digests(folder)[2:])
    edited(folder / f"runs/{third}/metrics.csv", -1, num_elites="7")
    replaced(folder / f"runs/{fourth}/config.yaml", "batch_size: 10", "batch_size: 11")
    edited(folder / "tables/summary.csv", 0, coverage="0.99")
    sign(folder)
    printed = reproduce(folder, *ALL, check=1)
    names_all(printed, "warning: numpy is", "0 equal bits, 4 differ")
    line = verdict(printed, first)
    names_all(line, "differs", "archive_digest", "0" * 64, "Reason: numpy is", "1.2")
    assert "ribs" not in line
    names_all(line, "coverage", "0.99", "tables/summary.csv")
    names_all(verdict(printed, second), "differs", "obj_max", "-0.5", "Versions are the same")
    names_all(verdict(printed, third), "num_elites", "7", "metrics.csv, iteration 3")
    names_all(verdict(printed, fourth), "batch_size is 10", "11 in runs", "config.yaml")
    names_all(printed, "differs: tables/table.csv", "coverage_percent_mean")


def test_altered_files_of_every_run_are_found_also_without_a_computation(folder):
    """Only the first run is computed."""
    runs = [row["id"] for row in digests(folder)]
    rewritten(folder / f"runs/{runs[0]}/history.npz", "objective")
    rewritten(folder / f"runs/{runs[1]}/archive.npz", "objective")
    for run, key in ((runs[2], "coverage"), (runs[2], "qd_score"), (runs[3], "archive_digest")):
        path = folder / f"runs/{run}/summary.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {key: "0.99"}))
    sign(folder)
    printed = reproduce(folder, "--here", "--yes", "--runs", runs[0], check=1)
    names_all(verdict(printed, runs[0]), "differs", "objective", "history.npz")
    digest = digests(folder)[1]["archive_digest"]
    names_all(verdict(printed, runs[1]), "differs", "archive.npz", "archive_digest", digest)
    names_all(verdict(printed, runs[2]), "differs", "summary.json", "coverage", "qd_score", "0.99")
    names_all(verdict(printed, runs[3]), "differs", "summary.json", "archive_digest", "0.99")
    names_all(printed.splitlines()[-1], "0 equal bits, 4 differ, 0 not computed")


def test_lost_files_of_a_run_are_a_difference(folder):
    lost, torn, computed = (row["id"] for row in digests(folder)[:3])
    (folder / f"runs/{lost}/summary.json").unlink()
    path = folder / f"runs/{torn}/archive.npz"
    path.write_bytes(path.read_bytes()[:-9])
    sign(folder)
    printed = reproduce(folder, "--here", "--yes", "--runs", computed, check=1)
    names_all(verdict(printed, lost), "differs", "summary.json")
    names_all(verdict(printed, torn), "differs", "archive.npz")
    names_all(printed.splitlines()[-1], "1 equal bits, 2 differ, 1 not computed")


def test_an_unknown_run_is_refused_before_anything_else(folder):
    runs = [row["id"] for row in digests(folder)]
    printed = reproduce(folder, "--runs", runs[0], "x", check=2)
    names_all(printed, "--runs 'x'", *runs)
    assert "--yes" not in printed and "packed_bowl.py" not in printed


def test_a_verdict_has_the_first_differences_and_counts_the_others(folder):
    """Summary and digests agree, and both are wrong."""
    false = dict.fromkeys(("num_elites", "coverage", "qd_score", "obj_max", "obj_mean"), "0.99")
    run = changed(folder, 0, archive_digest="0" * 64, **false)
    path = folder / f"runs/{run}/summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | false))
    table = folder / "tables/table.csv"
    means = [name for name in table.read_text().splitlines()[0].split(",") if name[-5:] == "_mean"]
    edited(table, 0, **dict.fromkeys(means, "7"))
    sign(folder)
    printed = reproduce(folder, "--here", "--yes", "--runs", run, check=1)
    line = verdict(printed, run)
    names_all(line, "archive_digest", "num_elites", "coverage", "qd_score", "and 2 more")
    assert "obj_mean" not in line and len(line) < 1000
    names_all(printed.splitlines()[-1], "1 differ", "1 table differs")
    assert sum("tables/table.csv" in line for line in printed.splitlines()) == 1


def test_a_sample_is_drawn_and_the_rest_is_counted(folder):
    printed = reproduce(folder, "--here", "--yes")
    names_all(printed.splitlines()[-1], "1 equal bits", "3 not computed")
    runs = [changed(folder, line, seconds="600") for line in range(4)]
    printed = reproduce(folder, *ALL, "--minutes", "1", check=1)
    for run in runs:
        names_all(verdict(printed, run), "not computed", "--minutes 1")


def test_a_changed_key_of_the_sweep_gives_other_runs(folder):
    replaced(folder / "sweep.yaml", "0.5", "0.6")
    sign(folder)
    gone = [row["id"] for row in digests(folder)][2:]
    printed = reproduce(folder, "--here", "--yes", "--runs", *gone, check=1)
    for run in gone:
        names_all(verdict(printed, run), "differs", "tiny", "no run of this id")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [("iterations: 3", "iterations: 4", "'iterations': 4"), ("1 2'", "1 2 3'", "-s3-")],
)
def test_a_sweep_with_another_budget_or_further_runs_differs(folder, old, new, named):
    replaced(folder / "sweep.yaml", old, new)
    sign(folder)
    printed = reproduce(folder, "--here", "--yes", check=1)
    names_all(printed, "1 equal bits", "differs: ", named, "sweep.yaml", "summary.")


def test_another_cpu_is_the_reason(folder):
    """The library answers for /proc/cpuinfo. Its digest would differ only on some machines."""
    run = changed(folder, 0, archive_digest="0" * 64)
    env = {"LD_PRELOAD": str(library("no_avx2"))}
    printed = reproduce(folder, "--here", "--yes", "--runs", run, check=1, **env)
    names_all(verdict(printed, run), "Reason: this CPU", "AVX2")


def test_a_flipped_bit_in_any_file_is_named(folder, tmp_path):
    for number, path in enumerate(sorted(path for path in folder.rglob("*") if path.is_file())):
        content = bytearray(path.read_bytes())
        place = number * 37 % len(content)
        content[place] ^= 1 << number % 8
        path.write_bytes(content)
        with refused(folder, path.relative_to(folder)):
            unpack_package(folder, tmp_path / f"{number}")
        content[place] ^= 1 << number % 8
        path.write_bytes(content)
    names_all(unpack_package(folder, tmp_path / "whole"), "sweep.yaml", "tables/digests.csv")


def test_a_missing_plugin_is_named(folder):
    plugin = folder / "config/plugins/packed_bowl.py"
    plugin.unlink()
    names_all(reproduce(folder, *ALL, check=2), "config/plugins/packed_bowl.py", "missing")
    sign(folder)
    names_all(reproduce(folder, *ALL, check=2), "packed_bowl:Bowl", "config/plugins")
    plugin.write_text("x = 1")
    names_all(reproduce(folder, *ALL, check=2), "config/plugins/packed_bowl.py", "not listed")


def test_a_run_that_fails_differs_and_one_that_needs_a_package_is_not_computed(folder):
    (folder / "config/plugins/packed_depth.py").write_text("def score(x):\n    raise OSError(x)\n")
    sign(folder)
    run = digests(folder)[0]["id"]
    printed = reproduce(folder, "--here", "--yes", "--runs", run, check=1)
    names_all(verdict(printed, run), "differs", "fails", "OSError")
    (folder / "config/plugins/packed_depth.py").write_text("import absent_package\n")
    sign(folder)
    printed = reproduce(folder, "--here", "--yes", "--runs", run, check=1)
    names_all(verdict(printed, run), "not computed", "absent_package")


def test_runs_without_a_digest_are_not_computed(folder):
    """Such as imported ones."""
    table = folder / "tables/digests.csv"
    runs = [row["id"] for row in digests(folder)]
    table.write_text(table.read_text().splitlines(keepends=True)[0])
    sign(folder)
    printed = reproduce(folder, *ALL, check=1)
    for run in runs:
        names_all(verdict(printed, run), "not computed", "digests.csv", "finished")
    names_all(printed, "0 equal bits, 0 differ, 4 not computed")


def test_without_a_terminal_nobody_is_asked(folder):
    printed = reproduce(folder, check=2)
    names_all(printed, "config/plugins/packed_bowl.py", "requirements.lock", "--yes")
    printed = reproduce(folder, "--here", check=2)
    names_all(printed, "config/plugins/packed_bowl.py", "--yes")
    assert "requirements.lock" not in printed


def test_on_a_terminal_it_asks(folder):
    words = [sys.executable, "-c", _TERMINAL, "n", BIN / "qdsweep", "reproduce", folder]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder.parent)
    assert done.returncode == 1, done.stdout
    names_all(done.stdout, "Run it? [y/N]", "nothing was computed")


_TERMINAL = """
import os, pty, sys
asked = b""
def read(fd):
    global asked
    block = os.read(fd, 1024)
    asked += block
    if asked.endswith(b"[y/N] "):
        os.write(fd, sys.argv[1].encode() + b"\\n")
    return block
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[2:], read, lambda fd: b"")))
"""


def test_a_package_without_lock_or_digests_is_refused(folder):
    (folder / "requirements.lock").unlink()
    sign(folder)
    names_all(reproduce(folder, "--yes", check=2), "requirements.lock", "--here")
    (folder / "tables/digests.csv").unlink()
    sign(folder)
    names_all(reproduce(folder, *ALL, check=2), "tables/digests.csv", "qdsweep export")


@pytest.mark.rest
def test_a_lock_that_cannot_be_installed_is_refused(folder):
    (folder / "requirements.lock").write_text("numpy==2.4.6\n")  # without a hash
    sign(folder)
    names_all(reproduce(folder, "--yes", check=2), "requirements.lock", "hash", "--here")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_nothing(folder, number):
    (folder / "config/plugins/packed_depth.py").write_text(
        "import time\n\ndef score(x):\n    time.sleep(1000)\n"
    )
    sign(folder)
    (temporary := folder.parent / "temporary").mkdir()
    words = [BIN / "qdsweep", "reproduce", folder, *ALL]
    env = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(words, cwd=folder.parent, env=env, stderr=subprocess.PIPE) as process:
        here = psutil.Process(process.pid)
        wait_until(lambda: [*temporary.glob("*/computed/runs/*/state/lock")])
        children = here.children(recursive=True)
        process.send_signal(number)
        assert process.wait(60) == 75
        names_all(process.stderr.read().decode(), "interrupted")
    assert not psutil.wait_procs(children, 10)[1]
    assert not list(temporary.iterdir())


@pytest.mark.rest
def test_the_lock_of_the_package_gives_a_fresh_environment(folder):
    """It installs some hundred packages."""
    words = [BIN / "python", "-m", "pip", "index", "versions", "immutables", "--retries", "0"]
    if not os.environ.get("CI") and subprocess.run(words, capture_output=True).returncode:
        pytest.skip("no package index can be reached")
    printed = reproduce(zipped(folder), "--yes", "--all")
    names_all(printed, "requirements.lock", "4 equal bits")
    assert "warning" not in printed
