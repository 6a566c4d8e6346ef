"""Two sweeps with a common run: forced jobs and `clean` keep it, `compare` counts it once."""

import csv
import shutil

import pytest
import yaml
from refusals import names_all
from results import digests
from starting import start
from support import POLE, command, write_yaml

from qdsweep.host.lock import Lock

SEEDS = {"s": "1 2", "other": "2 3"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two sweeps with one common run."""
    folder = tmp_path_factory.mktemp("finished")
    for name, seeds in SEEDS.items():
        swept = f"::: algorithm map_elites_line ::: seed {seeds}"
        write_yaml(folder / f"{name}.yaml", {"name": name, "experiment": POLE, "sweep": swept})
        compute(folder, name)
    return folder


def compute(folder, name: str, *words: str) -> str:
    return start(folder, *words, "--until", "qd_run", file=f"{name}.yaml")


@pytest.mark.parametrize("flags", [("--forceall",), ("--forcerun", "qd_run")])
def test_a_forced_job_reports_that_it_computes_nothing(finished, flags, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "copy")
    before = {path: path.read_bytes() for path in folder.glob("results/runs/*/state/status.json")}
    names_all(compute(folder, "s", *flags), "state/", "qdsweep clean --runs s")
    assert before == {path: path.read_bytes() for path in before}


def test_other_jobs_of_a_run_are_not_meant(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "copy")
    settings = yaml.safe_load((folder / "s.yaml").read_text()) | {"reevaluate": {"times": 2}}
    write_yaml(folder / "s.yaml", settings)
    printed = start(folder, "--until", "reevaluate", file="s.yaml")
    assert len([*folder.glob("results/runs/*/reevaluated-*.json")]) == 2
    assert "clean --runs" not in printed


def test_deleted_outputs_are_copied_again(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "copy")
    expected = digests(folder)
    compute(folder, "s", "--delete-all-output")
    assert len(digests(folder)) == 1
    names_all(compute(folder, "s"), "state/", "qdsweep clean --runs s")
    assert digests(folder) == expected


def test_clean_removes_runs_of_only_one_sweep(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "copy")
    shared, *_ = (run for run in digests(folder) if "-s2-" in run)
    own, *_ = (run for run in digests(folder) if "-s1-" in run)
    clean = ("qdsweep", "clean", "--runs", "s")
    names_all(command(*clean, "--dry-run", cwd=folder).stdout, own, shared, "MB")
    names_all(command(*clean, cwd=folder, check=2).stderr, "--yes")
    with Lock(folder / "results/runs" / own / "state/lock"):
        names_all(command(*clean, "--yes", cwd=folder, check=2).stderr, own)
    assert len(digests(folder)) == 3
    command(*clean, "--yes", cwd=folder)
    assert own not in digests(folder) and shared in digests(folder)
    changed = (folder / "results/runs" / shared / "state/status.json").stat().st_mtime_ns
    compute(folder, "other")
    assert (folder / "results/runs" / shared / "state/status.json").stat().st_mtime_ns == changed
    assert "clean --runs" not in compute(folder, "s")
    assert digests(folder) == digests(finished)


def test_compare_counts_the_common_run_once(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "copy")
    printed = command("qdsweep", "compare", "s", "other", cwd=folder).stdout
    compared = folder / "results/comparisons/s+other"
    (group,) = csv.DictReader((compared / "table.csv").read_text().splitlines())
    assert (group["group"], group["runs"]) == ("map_elites_line", "3")
    files = ("table.csv", "tables/comparisons.csv", "plots/overview.csv")
    assert all((compared / file).is_file() for file in files)
    names_all(printed, "1 run", *(f"s+other/{file}" for file in files))
    assert "s+other" not in command("qdsweep", "status", "s", cwd=folder).stdout
    names_all(command("qdsweep", "clean", "--orphans", "--dry-run", cwd=folder).stdout, "0 ")
    names_all(command("qdsweep", "status", "s+other", cwd=folder, check=2).stderr, "other, s")


@pytest.mark.parametrize("name", ["nothing", "..", "s/../other", ""])
def test_clean_refuses_what_is_no_run(finished, name):
    names_all(
        command("qdsweep", "clean", "--runs", name, "--yes", cwd=finished, check=2).stderr, name
    )
    assert len(digests(finished)) == 3
