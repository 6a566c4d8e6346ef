"""The real Snakefile on a tiny sweep, in another folder."""

import csv
import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from composing import skipped_if_missing
from in_process import compute_run, qdsweep
from own_parts import HOSTILE
from refusals import names_all
from results import digest, digests, summary
from snakemake.target_jobs import parse_target_jobs_cli_args
from snakemake_interface_executor_plugins.utils import TargetSpec, encode_target_jobs_cli_args
from starting import planned, start
from support import POLE, REPO, TINY, command, snakemake, write_yaml

from qdsweep.config.cluster import Cluster
from qdsweep.config.requirements import check_installed
from qdsweep.sweep.runs import table_of_runs

EMITTER = {"archive": {"type": "grid"}, "emitters": [{"type": "hostile:NoBounds"}]}
SWEEP = "::: algorithm map_elites cma_mae ::: seed 1 2"
# The targets of tests that do not need figures and pages, which take the longest.
TABLE = "results/sweeps/tiny/table.csv"


def write_config(folder: Path, sweep: str = SWEEP, name: str = "tiny", **experiment) -> Path:
    data = {"name": name, "experiment": {**TINY, **experiment}, "sweep": sweep}
    return write_yaml(folder / "mine.yaml", data)


def stamps(folder: Path) -> dict[str, int]:
    """Returns the inodes of reload files. Snakemake touches files, a new run writes new ones."""
    return {
        str(path.relative_to(folder)): path.stat().st_ino
        for path in folder.glob("results/runs/*/state/reload-*.pkl")
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A finished sweep. Tests that change it work on a copy."""
    folder = tmp_path_factory.mktemp("finished")
    write_config(folder)
    start(folder)
    return folder


def test_a_sweep_ends_with_tables_figures_and_a_report(finished):
    folder = finished / "results/sweeps/tiny"
    for name in ("runs.tsv", "summary.csv", "table.csv", "table.md", "report.html"):
        assert (folder / name).stat().st_size > 0, name
    for name in ("overview", "learning_curves", "heatmaps"):
        assert (folder / f"plots/{name}.pdf").read_bytes().startswith(b"%PDF")
        assert (folder / f"plots/{name}.png").read_bytes().startswith(b"\x89PNG")
    assert len(digests(finished)) == 4
    assert len((folder / "runs.tsv").read_text().splitlines()) == 5
    run = next((finished / "results/runs").iterdir())
    names = {path.name for path in run.iterdir()}
    declared = {"config.yaml", "metrics.csv", "archive.npz", "reload.pkl", "summary.json"}
    assert names == declared | {"history.npz", "run.log", "state"}
    assert (run / "reload.pkl").samefile(next(run.glob("state/reload-*.pkl")))


def test_a_finished_sweep_has_nothing_to_do(finished):
    assert planned(finished, cores=8) == {}


def test_four_starts_at_once_end_with_one_page(copy):
    """They take turns at tables, figures and page, and publish runs that others read."""
    shutil.rmtree(copy / "results/sweeps/tiny")
    for path in filter(Path.is_file, copy.glob("results/runs/*/*")):
        path.unlink()

    def start_after(seconds: float) -> str:
        time.sleep(seconds)
        return start(copy, cores=1)

    with ThreadPoolExecutor() as threads:
        printed = list(threads.map(start_after, (0.0, 0.4, 0.8, 1.2)))
    for text in printed:
        assert not any(word in text for word in ("latency", "missing", "not present"))
    assert sum("waiting for process" in text for text in printed) >= 3
    assert planned(copy) == {}
    assert qdsweep("report", "tiny", cwd=copy) == "", "all is as it was written"


def test_the_command_line_gives_the_same_digest_as_snakemake(finished, tmp_path):
    for run, expected in digests(finished).items():
        config = finished / "results/runs" / run / "config.yaml"
        for workers in (1, 2, 3) if "cma_mae-s1" in run else (1,):
            out = tmp_path / f"{run}-{workers}"
            qdsweep("run", config, "--workers", workers, "--out", out, cwd=tmp_path)
            assert summary(out)["id"] == run
            assert digest(out) == expected, f"{workers} workers"
    command("qdsweep", "run", config, "--out", "own", cwd=tmp_path)  # without Snakemake
    assert digest(tmp_path / "own") == expected


def test_values_that_are_added_leave_finished_runs_alone(copy):
    before = stamps(copy)
    write_config(copy, "::: seed 3 2 1 ::: algorithm cma_mae map_elites")
    assert planned(copy)["qd_run"] == 2
    start(copy, TABLE)
    after = stamps(copy)
    assert len(after) == 6
    assert before.items() <= after.items()
    assert len((copy / "results/sweeps/tiny/runs.tsv").read_text().splitlines()) == 7


def resumed_from(run: Path) -> list[int]:
    """Returns the iterations after which the attempts of a run started."""
    return [attempt["from"] for attempt in summary(run)["attempts"]]


def test_a_raised_budget_lengthens_runs_and_a_lowered_one_loses_nothing(copy):
    """tests/unit/experiment/test_resume.py compares the results with straight runs."""
    write_config(copy, SWEEP + " ::: iterations 17")
    start(copy, TABLE)
    runs = list((copy / "results/runs").iterdir())
    assert [resumed_from(run) for run in runs] == [[0, 12]] * 4
    write_config(copy)
    start(copy, TABLE)
    assert planned(copy, TABLE) == {}
    rows = csv.DictReader((copy / "results/sweeps/tiny/summary.csv").open())
    assert {row["iteration"] for row in rows} == {"12"}
    assert {summary(run)["iterations"] for run in runs} == {17}


def test_runs_that_were_published_too_early_are_extended(tmp_path):
    """Snakemake has not computed them: one was run by hand, one was extended later."""
    write_config(tmp_path, "::: algorithm map_elites ::: seed 1 2")
    runs = table_of_runs({**TINY, "algorithm": "map_elites"}, "::: seed 1 2").runs
    by_hand, further = (tmp_path / "results/runs" / run for run in runs)
    for run, folder in zip(runs.values(), (by_hand, further), strict=True):
        compute_run(run.model_dump(mode="json"), folder, iterations=7)
    early = (further / "summary.json").read_bytes()
    compute_run(further / "config.yaml", further, iterations=12)
    (further / "summary.json").unlink()  # a hard link to the file in state/
    (further / "summary.json").write_bytes(early)
    assert planned(tmp_path, TABLE)["qd_run"] == 2
    start(tmp_path, TABLE)
    assert [summary(folder)["iterations"] for folder in (by_hand, further)] == [12, 12]
    assert (resumed_from(by_hand), resumed_from(further)) == ([0, 7], [0, 7])
    assert planned(tmp_path, TABLE) == {}


def test_a_sweep_on_the_command_line_has_a_name_of_its_own(copy):
    before = (copy / "results/sweeps/tiny/table.csv").read_bytes()
    start(copy, "--config", "sweep=::: seed 1 2", "--until", "aggregate")
    (own,) = copy.glob("results/sweeps/adhoc-*")
    assert len((own / "runs.tsv").read_text().splitlines()) == 3
    assert (copy / "results/sweeps/tiny/table.csv").read_bytes() == before


def test_the_tables_of_an_unfinished_sweep(copy):
    """One run is finished, one has stopped half-way, one has not started."""
    sweep = "::: algorithm map_elites ::: seed 1 2 3 ::: iterations 12"
    write_config(copy, sweep, name="half")
    start(copy, "--dry-run")
    stopped = next(copy.glob("results/runs/*map_elites-s2*"))
    words = ("run", stopped / "config.yaml", "--set", "iterations=7", "--out", copy / "short")
    qdsweep(*words, cwd=copy)
    for path in stopped.iterdir():
        if path.is_file():
            path.unlink()
    shutil.rmtree(stopped / "state")
    shutil.move(copy / "short/state", stopped / "state")
    (stopped / "state/summary.json").unlink()
    start(copy, "--config", "partial=true")
    folder = copy / "results/sweeps/half"
    rows = list(csv.DictReader((folder / "summary.csv").open()))
    assert [row["status"] for row in rows] == ["finished", "partial", "missing"]
    assert [row["iteration"] for row in rows] == ["12", "7", ""]
    assert "partial" not in (copy / "results/sweeps/tiny/summary.csv").read_text()
    # The whole sweep afterwards: tables are rebuilt, with only finished runs.
    start(copy, "--until", "aggregate")
    assert "partial" not in (folder / "summary.csv").read_text()
    assert stopped.name in digests(copy)


def test_odd_files_never_stop_a_start_and_no_finished_run_is_cleaned_away(copy):
    odd = ("", "[1]", "null", '{"evaluations": "x"}', '{"evaluations": 5}')
    statuses = sorted(copy.glob("results/runs/*/state/status.json"))
    for texts in (odd[:4], odd[1:]):
        for status, text in zip(statuses, texts, strict=True):
            status.write_text(text)
        start(copy, "--dry-run")
    plan_file = copy / "results/sweeps/tiny/plan.json"
    plan_file.write_text(plan_file.read_text()[:60])
    for words in (("clean", "--orphans"), ("status", "tiny")):
        names_all(qdsweep(*words, cwd=copy, code=2), plan_file.relative_to(copy))
    assert len(digests(copy)) == 4


def test_declared_files_come_back_without_computing(copy):
    before = stamps(copy)
    for path in copy.glob("results/runs/*/*"):
        if path.is_file():
            path.unlink()
    run = next((copy / "results/runs").iterdir())
    qdsweep("launch", run.name, "--budget", "iterations=12", cwd=copy)
    assert summary(run)["status"] == "finished"
    start(copy, "--until", "qd_run")
    assert stamps(copy) == before
    assert len(digests(copy)) == 4
    assert all(resumed_from(run) == [0] for run in (copy / "results/runs").iterdir())


@pytest.fixture
def read_only_clone(tmp_path):
    """The repository where no user can write, not even root."""
    clone = tmp_path / "clone"
    shutil.copytree(
        REPO, clone, ignore=shutil.ignore_patterns(".*", "results", "build", "__pycache__")
    )
    root = os.getuid() == 0
    if root:
        subprocess.run(["mount", "--bind", clone, clone], check=True)
        subprocess.run(["mount", "-o", "remount,ro,bind", clone], check=True)
    else:
        clone.chmod(0o555)
    yield clone
    if root:
        subprocess.run(["umount", clone], check=True)
    else:
        clone.chmod(0o755)


def test_it_works_from_a_read_only_clone(tmp_path, read_only_clone, finished):
    with pytest.raises(OSError):
        (read_only_clone / "new").touch()
    work = tmp_path / "elsewhere"
    work.mkdir()
    config = write_config(work, "::: seed 1", algorithm="cma_mae")
    words = ("--directory", work, "--configfile", config, "--cores", 1)
    library = str(read_only_clone / "workflow")
    command("snakemake", *words, cwd=read_only_clone, PYTHONPATH=library)
    expected = {run: digest for run, digest in digests(finished).items() if "cma_mae-s1" in run}
    assert digests(work) == expected
    assert (work / "results/sweeps/tiny/report.html").exists()


@pytest.mark.parametrize(
    ("sweep", "algorithm", "names"),
    [
        ("::: sigma 1", "cma_mae", ("row 1", "sigma", "step")),
        ("::: seed 1 2", EMITTER, ("hostile:NoBounds", "lower_bounds")),
    ],
)
def test_bad_input_ends_before_any_job(tmp_path, sweep, algorithm, names):
    """A key and a user's class; other cases are in tests/unit/planning/test_checks.py."""
    folder = tmp_path / "config/plugins"
    folder.mkdir(parents=True)
    (folder / "hostile.py").write_text(HOSTILE)
    write_config(tmp_path, sweep, algorithm=algorithm)
    printed = start(tmp_path, check=1)
    refusals = [line for line in printed.splitlines() if all(name in line for name in names)]
    assert len(refusals) == 1 and "Traceback" not in printed, printed
    assert not (tmp_path / "results/runs").exists()


# Whatever a shell or Snakemake could take for something else.
NASTY = "a b'c\"d$(touch pwned);`touch pwned`&|>pwned *{x}%s\\\\#!~é\n1"
POLES = {**POLE, "domain": {**POLE["domain"], "normalize_observations": False}}


@pytest.mark.parametrize(
    ("until", "sweep", "further"),
    [
        ("reevaluate", "::: seed 1", {"reevaluate": {"times": 2}}),
        ("search_decide", "::: iterations 8 ::: batch_size 5 10", {"search": {"halving": {}}}),
    ],
)
def test_no_name_of_a_file_or_folder_is_read_by_a_shell(tmp_path, until, sweep, further):
    folder = tmp_path / NASTY
    folder.mkdir()
    cluster = write_yaml(folder / f"{NASTY}.yaml", {"engine": "serial"})
    data = {"name": "tiny", "experiment": POLES, "sweep": sweep, "cluster": cluster.name}
    write_yaml(folder / f"{NASTY}-sweep.yaml", data | further)
    start(folder, "--until", until, file=f"{NASTY}-sweep.yaml")
    made = "runs/*/reevaluated*" if "reevaluate" in further else "sweeps/tiny/search/*/decided*"
    assert [*folder.glob(f"results/{made}")]
    assert not [*tmp_path.rglob("pwned*")]


RECORDER = """
import numpy as np
from pathlib import Path
from qdsweep.domains.base import Evaluation

class Recorder:
    solution_dim = 2
    measures = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}
    objective_range = (-100.0, 0.0)

    def __init__(self, given):
        self.given, self.fields = repr(given), {}

    def evaluate(self, solutions, seeds):
        with Path("received").open("a") as file:
            file.write(f"{self.given}\\n")
        return Evaluation(-(solutions**2).sum(axis=1), solutions.copy())
"""
GIVEN = """
name: tiny
experiment:
  domain: {type: "recorder:Recorder", arguments: {given: 0}, x0: 0.0}
  algorithm: map_elites
  archive: {dims: [5, 5]}
  num_emitters: 1
  batch_size: 4
  iterations: 2
sweep: >-
  ::: domain.arguments.given "[.inf, [-.inf], .nan, null, -0.0, 1, 1.0, true, '.inf', '1e3', '08']"
"""


@pytest.mark.parametrize("engine", ["serial", "processes", "dask", "ray", "mpi"])
def test_workers_receive_the_values_of_the_sweep(tmp_path, engine):
    with skipped_if_missing():
        check_installed(Cluster(engine=engine))
    (tmp_path / "config/plugins").mkdir(parents=True)
    (tmp_path / "config/plugins/recorder.py").write_text(RECORDER)
    (tmp_path / "mine.yaml").write_text(GIVEN)
    workers = 1 if engine == "serial" else 2
    write_yaml(tmp_path / "engine.yaml", {"engine": engine, "workers_per_node": workers})
    start(tmp_path, TABLE, "--config", "cluster=engine.yaml")
    (run,) = (tmp_path / "results/runs").iterdir()
    assert summary(run)["engine"] == engine
    received = set((tmp_path / "received").read_text().splitlines())
    assert received == {"[inf, [-inf], nan, None, -0.0, 1, 1.0, True, '.inf', '1e3', '08']"}


def test_a_sweep_file_is_yaml_1_2(tmp_path):
    config = write_config(tmp_path, "::: seed 1")
    config.write_text(config.read_text().replace("seed: 5", "sigma0: 1e-3"))
    start(tmp_path, "--dry-run")


def test_snakemakes_own_report(finished, tmp_path):
    page = tmp_path / "report.html"
    snakemake("--configfile", finished / "mine.yaml", "--report", page, cwd=finished)
    names_all(page.read_text(), "learning_curves.svg", "overview.svg", "archives", "table.md")


def test_run_ids_survive_snakemakes_job_encoding():
    sweep = table_of_runs(TINY, SWEEP)
    for run in sweep.runs:
        spec = TargetSpec("qd_run", {"run": run})
        (text,) = encode_target_jobs_cli_args([spec])
        (back,) = parse_target_jobs_cli_args([text])
        assert back.wildcards_dict == {"run": run}
