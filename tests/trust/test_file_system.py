"""A sweep on a file system like those of clusters is killed, restarted and computed correctly.

Times are one hour off, there are no hard links, files and listings appear late, and locks have no
effect. Each process counts as a separate node.
"""

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cluster_files import TRAITS, ClusterFiles
from in_process import compute_sweep
from results import digests, summary
from support import BIN, REPO, TINY, snakemake, write_yaml
from waiting import wait_until

LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
HOUR = 3600.0
ALL = tuple(trait for trait in TRAITS if trait != "refused")
# Each single trait, and all traits of a bad file system.
KINDS = [ALL, *(((trait,) for trait in TRAITS) if LONG else ()), *([("link", "refused")] * LONG)]
# A reload file after every few iterations.
EXPERIMENT = {
    **TINY,
    "algorithm": "map_elites",
    "iterations": 600,
    "reload": {"min_seconds": 0.02, "max_cost": 0.5},
}
SWEEP = "::: seed 1 2"


@pytest.fixture(scope="module")
def straight(tmp_path_factory) -> Path:
    """The same sweep on a disk of this machine."""
    folder = tmp_path_factory.mktemp("straight")
    compute_sweep(folder / "results", EXPERIMENT, SWEEP, name="t")
    return folder


def runs_of(folder: Path) -> list[Path]:
    return [path.parent for path in folder.glob("results/runs/*/summary.json")]


def figures(folder: Path) -> list[dict[str, str]]:
    """The table of a sweep, without the names of its groups and its cost."""
    with (folder / "results/sweeps/t/table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 1 and len(rows[0]) > 20
    return [
        {name: cell for name, cell in row.items() if name != "group" and "seconds" not in name}
        for row in rows
    ]


def kill_on_the_way(folder: Path, words: list[object], env: dict[str, str]) -> None:
    """Starts a sweep, and kills all its processes as soon as a run has saved its state."""
    started = [BIN / "snakemake", "-s", REPO / "Snakefile", "--directory", folder, *words]
    process = subprocess.Popen(
        [str(word) for word in started],
        env={**os.environ, **env},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: [*folder.glob("results/runs/*/state/reload-*.pkl")], 300, "a run saves")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.timeout(2000)
@pytest.mark.parametrize("traits", KINDS, ids="+".join)
def test_a_sweep_that_is_killed_and_started_again(straight, tmp_path, traits):
    folder = tmp_path / "work"
    folder.mkdir()
    files = ClusterFiles(tmp_path / "switch", folder)
    files.set(traits)
    config = write_yaml(
        tmp_path / "sweep.yaml", {"name": "t", "experiment": EXPERIMENT, "sweep": SWEEP}
    )
    words = ["--cores", 1, "--configfile", config]
    kill_on_the_way(folder, words, files.environment(clock=HOUR))
    assert len(digests(folder)) < 2, "it was killed before the end"
    snakemake(*words, cwd=folder, **files.environment(clock=-HOUR))
    assert {trait for trait in traits if files.fired[trait]} == set(traits)
    assert digests(folder) == digests(straight)
    assert figures(folder) == figures(straight)
    begins = [[each["from"] for each in summary(run)["attempts"]] for run in runs_of(folder)]
    assert sum(len(each) > 1 for each in begins) == 1
    assert all(each.count(0) == 1 for each in begins), "nothing was computed twice"
    page = (folder / "results/sweeps/t/report.html").read_text()
    drawn = {path.name for path in folder.glob("results/sweeps/t/plots/**/*.csv")}
    assert "evolution.csv" in drawn and len(drawn) > 3
    assert {name for name in drawn if name not in page} == set()
    # Snakemake's markers of unfinished files are listed for this time, so it rebuilds the page.
    time.sleep(6)
    for clock in (-HOUR, HOUR) if LONG else (HOUR,):  # the next starts are on other nodes
        again = snakemake(*words, cwd=folder, **files.environment(main=clock))
        assert "Nothing to be done" in again.stdout + again.stderr


# Each process acts at a line on standard input, after all its imports.
WRITES = """
from pathlib import Path
from qdsweep.files import write_json
print("ready", flush=True)
input()
write_json(Path("new.json"), {"a": 1})
Path("reload-000000001.pkl").unlink()
print("done", flush=True)
"""
READS = """
from pathlib import Path
from qdsweep.experiment.reload import keep_only
from qdsweep.files import read_json
from qdsweep.records.paths import StateDir
print("ready", flush=True)
input()
print(StateDir(Path.cwd()).reloads(), Path("new.json").exists())
keep_only(StateDir(Path.cwd()), [])
print(read_json(Path("new.json")))
"""


def test_what_another_node_did_just_now_is_no_failure(tmp_path):
    """It waits for a file that it has written, and does not see a file that it has removed."""
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "reload-000000001.pkl").touch()
    files = ClusterFiles(tmp_path / "switch", folder)
    files.set(["rename", "list"])
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=folder,
            env={**os.environ, **files.environment(node)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for node, code in (("node1", WRITES), ("node2", READS))
    ]
    for process in both:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    printed, warned = zip(
        *(process.communicate("go\n", timeout=300) for process in both), strict=True
    )
    assert [process.returncode for process in both] == [0, 0], warned
    seen, read = printed[1].splitlines()
    assert "reload-000000001.pkl" in seen and seen.endswith("False"), "it sees the previous state"
    assert read == "{'a': 1}"
