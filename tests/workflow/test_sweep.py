"""The real Snakefile on a tiny sweep, in a folder elsewhere."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from in_process import compute_run, qdsweep
from own_parts import HOSTILE
from results import digest, digests, read_json, steps, summary
from snakemake.target_jobs import parse_target_jobs_cli_args
from snakemake_interface_executor_plugins.utils import TargetSpec, encode_target_jobs_cli_args
from support import BIN, REPO, TINY, command, cpu_seconds, snakemake, write_yaml
from waiting import says, wait_until

from qdsweep.sweep.runs import table_of_runs

SWEEP = "::: algorithm map_elites cma_mae ::: seed 1 2"
# What a test asks for that does not look at figures and pages, which take the longest.
TABLE = "results/sweeps/tiny/table.csv"


def write_config(folder: Path, sweep: str = SWEEP, name: str = "tiny", **experiment) -> Path:
    data = {"name": name, "experiment": {**TINY, **experiment}, "sweep": sweep}
    return write_yaml(folder / "mine.yaml", data)


def stamps(folder: Path) -> dict[str, int]:
    """The inodes of the reload files: Snakemake touches files, a new run writes new ones."""
    return {
        str(path.relative_to(folder)): path.stat().st_ino
        for path in folder.glob("results/runs/*/state/reload-*.pkl")
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A finished sweep; tests that change it work on a copy."""
    folder = tmp_path_factory.mktemp("finished")
    snakemake("--cores", 2, "--configfile", write_config(folder), cwd=folder)
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
    done = snakemake("-n", "--cores", 8, "--configfile", finished / "mine.yaml", cwd=finished)
    assert "Nothing to be done" in done.stdout + done.stderr
    assert "4 runs, 4 finished, nothing left" in done.stderr


def test_the_command_line_gives_the_same_digest_as_snakemake(finished, tmp_path):
    for run, expected in digests(finished).items():
        config = finished / "results/runs" / run / "config.yaml"
        for workers in (1, 2, 3) if "cma_mae-s1" in run else (1,):
            out = tmp_path / f"{run}-{workers}"
            qdsweep("run", config, "--workers", workers, "--out", out, cwd=tmp_path)
            assert summary(out)["id"] == run
            assert digest(out) == expected, f"{workers} workers"
    command("qdsweep", "run", config, "--out", "own", cwd=tmp_path)  # as it is typed
    assert digest(tmp_path / "own") == expected


def test_values_that_are_added_leave_finished_runs_alone(copy):
    before = stamps(copy)
    config = write_config(copy, "::: seed 3 2 1 ::: algorithm cma_mae map_elites")
    plan = snakemake("-n", "--cores", 2, "--configfile", config, cwd=copy)
    assert "6 runs, 4 finished" in plan.stderr
    snakemake(TABLE, "--cores", 2, "--configfile", config, cwd=copy)
    after = stamps(copy)
    assert len(after) == 6
    assert before.items() <= after.items()
    assert len((copy / "results/sweeps/tiny/runs.tsv").read_text().splitlines()) == 7


def test_a_raised_budget_goes_on_and_equals_a_straight_run(copy, tmp_path):
    longer = SWEEP + " ::: iterations 17"
    snakemake(TABLE, "--cores", 2, "--configfile", write_config(copy, longer), cwd=copy)
    for run, expected in digests(copy).items():
        log = (copy / "results/runs" / run / "run.log").read_text()
        assert "goes on after iteration 12" in log
        config = copy / "results/runs" / run / "config.yaml"
        assert digest(compute_run(config, tmp_path / run)) == expected
    # The lower budget again: nothing is lost, tables show the runs at iteration 12.
    snakemake(TABLE, "--cores", 2, "--configfile", write_config(copy), cwd=copy)
    nothing = snakemake(TABLE, "-n", "--cores", 2, "--configfile", copy / "mine.yaml", cwd=copy)
    assert "Nothing to be done" in nothing.stdout + nothing.stderr
    table = (copy / "results/sweeps/tiny/summary.csv").read_text().splitlines()
    column = table[0].split(",").index("iteration")
    assert {row.split(",")[column] for row in table[1:]} == {"12"}
    runs = (copy / "results/runs").iterdir()
    assert {summary(run)["iterations"] for run in runs} == {17}


def test_runs_that_were_published_too_early_are_lengthened(tmp_path):
    """Snakemake knows nothing of them: one is by hand, one has gone on since it was published."""
    config = write_config(tmp_path, "::: algorithm map_elites ::: seed 1 2")
    runs = table_of_runs({**TINY, "algorithm": "map_elites"}, "::: seed 1 2").runs
    by_hand, further = (tmp_path / "results/runs" / run for run in runs)
    for run, folder in zip(runs.values(), (by_hand, further), strict=True):
        compute_run(run.model_dump(mode="json"), folder, iterations=7)
    early = (further / "summary.json").read_bytes()
    compute_run(further / "config.yaml", further, iterations=12)
    (further / "summary.json").unlink()  # a second name of the one in state/
    (further / "summary.json").write_bytes(early)
    plan = snakemake(TABLE, "-n", "--cores", 2, "--configfile", config, cwd=tmp_path)
    assert re.search(r"qd_run +2\n", plan.stdout + plan.stderr)
    assert "iterations=12" in plan.stdout + plan.stderr
    snakemake(TABLE, "--cores", 2, "--configfile", config, cwd=tmp_path)
    assert [summary(folder)["iterations"] for folder in (by_hand, further)] == [12, 12]
    assert "goes on after iteration 7" in (by_hand / "run.log").read_text()
    assert "goes on after iteration 12" not in (further / "state/run.log").read_text()
    nothing = snakemake(TABLE, "-n", "--cores", 2, "--configfile", config, cwd=tmp_path)
    assert "Nothing to be done" in nothing.stdout + nothing.stderr


def test_two_spellings_of_a_run_are_run_once_and_reported(tmp_path):
    config = write_config(tmp_path, "::: sigma0 0.5 0.50 5e-1")
    plan = snakemake("-n", "--cores", 1, "--configfile", config, cwd=tmp_path)
    assert "1 run, 0 finished (2 duplicate rows of the sweep run once)" in plan.stderr


def test_a_sweep_on_the_command_line_has_a_name_of_its_own(copy):
    before = (copy / "results/sweeps/tiny/table.csv").read_bytes()
    settings = ("--configfile", copy / "mine.yaml", "--config", "sweep=::: seed 1 2")
    snakemake("--cores", 2, *settings, "--until", "aggregate", cwd=copy)
    (own,) = copy.glob("results/sweeps/adhoc-*")
    assert len((own / "runs.tsv").read_text().splitlines()) == 3
    assert (copy / "results/sweeps/tiny/table.csv").read_bytes() == before


def test_the_tables_of_an_unfinished_sweep(copy):
    """One run finished, one stopped half-way, one not started."""
    sweep = "::: algorithm map_elites ::: seed 1 2 3 ::: iterations 12"
    config = write_config(copy, sweep, name="half")
    snakemake("--cores", 2, "--configfile", config, "-n", cwd=copy)
    stopped = next(copy.glob("results/runs/*map_elites-s2*"))
    words = ("run", stopped / "config.yaml", "--set", "iterations=7", "--out", copy / "short")
    qdsweep(*words, cwd=copy)
    for path in stopped.iterdir():
        if path.is_file():
            path.unlink()
    shutil.rmtree(stopped / "state")
    shutil.move(copy / "short/state", stopped / "state")
    (stopped / "state/summary.json").unlink()
    partial = ("--cores", 2, "--configfile", config, "--config", "partial=true")
    done = snakemake(*partial, cwd=copy)
    folder = copy / "results/sweeps/half"
    assert "not finished, taken as it is" in done.stdout
    assert "missing, nothing saved yet" in done.stdout
    lines = (folder / "summary.csv").read_text().splitlines()
    at = {name: i for i, name in enumerate(lines[0].split(","))}
    rows = [line.split(",") for line in lines[1:]]
    assert [row[at["status"]] for row in rows] == ["finished", "partial", "missing"]
    assert [row[at["iteration"]] for row in rows] == ["12", "7", ""]
    assert "1 row of unfinished runs" in (folder / "report.html").read_text()
    assert "unfinished runs as far as they are" in (folder / "table.md").read_text()
    # The whole sweep afterwards: tables are made again, of finished runs alone.
    snakemake("--cores", 2, "--configfile", config, "--until", "aggregate", cwd=copy)
    assert "partial" not in (folder / "summary.csv").read_text()
    assert digests(copy).keys() >= {path.name for path in [stopped]}


def test_odd_files_never_stop_a_start_and_no_finished_run_is_cleaned_away(copy):
    odd = ("", "[1]", "null", '{"evaluations": "x"}', '{"evaluations": 5}')
    statuses = sorted(copy.glob("results/runs/*/state/status.json"))
    for texts in (odd[:4], odd[1:]):
        for status, text in zip(statuses, texts, strict=True):
            status.write_text(text)
        plan = snakemake("-n", "--cores", 1, "--configfile", copy / "mine.yaml", cwd=copy)
        assert "qdsweep: tiny: 4 runs" in plan.stderr
    plan_file = copy / "results/sweeps/tiny/plan.json"
    plan_file.write_text(plan_file.read_text()[:60])
    assert "plan.json is damaged" in qdsweep("clean", "--orphans", cwd=copy, code=2)
    assert len(digests(copy)) == 4
    assert "plan.json is damaged" in qdsweep("status", "tiny", cwd=copy, code=2)


def test_declared_files_come_back_without_computing(copy):
    before = stamps(copy)
    for path in copy.glob("results/runs/*/*"):
        if path.is_file():
            path.unlink()
    seconds = cpu_seconds()
    run = next((copy / "results/runs").iterdir()).name
    words = ("launch", run, "--budget", "iterations=12")
    command("qdsweep", *words, cwd=copy)
    assert cpu_seconds() - seconds < 3, "a start of Python and some links"
    snakemake("--until", "qd_run", "--cores", 2, "--configfile", copy / "mine.yaml", cwd=copy)
    assert stamps(copy) == before
    assert len(digests(copy)) == 4


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_stopped_run_exits_75_and_goes_on(tmp_path, number, finished):
    run = next(run for run in digests(finished) if "cma_mae-s1" in run)
    config = finished / "results/runs" / run / "config.yaml"
    words = [BIN / "qdsweep", "run", config, "--set", "iterations=4000", "--out", tmp_path / "out"]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    log = tmp_path / "out/state/run.log"
    wait_until(lambda: says(log, "engine"))
    time.sleep(0.5)
    process.send_signal(number)
    assert process.wait(120) == 75
    assert f"stopped by {number.name}" in log.read_text()
    status = read_json(tmp_path / "out/state/status.json")
    assert status["status"] == "stopped"
    stopped_at = status["iteration"]
    target = stopped_at + 5
    assert target < 4000, "it was stopped before its end"
    words = ("run", config, "--set", f"iterations={target}", "--out", tmp_path / "out")
    qdsweep(*words, cwd=tmp_path)
    straight = compute_run(config, tmp_path / "straight", iterations=target)
    assert digest(tmp_path / "out") == digest(straight)
    assert steps(tmp_path / "out") == steps(straight)


@pytest.fixture
def read_only_clone(tmp_path):
    """The repository where nobody can write, root neither."""
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


def test_bad_input_ends_before_any_job(tmp_path):
    """One case of those in tests/unit/planning/test_checks.py."""
    config = write_config(tmp_path, "::: sigma 1")
    done = snakemake("--cores", 1, "--configfile", config, cwd=tmp_path, check=1)
    for word in ("sweep, row 1", "sigma", "is `step`"):
        assert word in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "results").exists()


def test_an_own_emitter_that_cannot_be_made_ends_before_any_job(tmp_path):
    folder = tmp_path / "config/plugins"
    folder.mkdir(parents=True)
    (folder / "hostile.py").write_text(HOSTILE)
    part = {"archive": {"type": "grid"}, "emitters": [{"type": "hostile:NoBounds"}]}
    config = write_config(tmp_path, "::: seed 1 2 3", algorithm=part)
    done = snakemake("--cores", 1, "--configfile", config, cwd=tmp_path, check=1)
    said = done.stdout + done.stderr
    assert said.count("hostile:NoBounds cannot be made") == 1 and "'lower_bounds'" in said
    assert "Nothing was started" in said and not (tmp_path / "results/runs").exists()


def test_a_sweep_file_is_yaml_1_2(tmp_path):
    config = write_config(tmp_path, "::: seed 1")
    config.write_text(config.read_text().replace("seed: 5", "sigma0: 1e-3"))
    snakemake("-n", "--cores", 1, "--configfile", config, cwd=tmp_path)


def test_snakemakes_own_report(finished, tmp_path):
    page = tmp_path / "report.html"
    snakemake("--configfile", finished / "mine.yaml", "--report", page, cwd=finished)
    text = page.read_text()
    for word in ("learning curves", "overview", "Archives", "Tables"):
        assert word in text


def test_run_ids_survive_snakemakes_job_encoding():
    sweep = table_of_runs(TINY, SWEEP)
    for run in sweep.runs:
        spec = TargetSpec("qd_run", {"run": run})
        (text,) = encode_target_jobs_cli_args([spec])
        (back,) = parse_target_jobs_cli_args([text])
        assert back.wildcards_dict == {"run": run}


def test_the_snakefile_imports_nothing_heavy(finished):
    """Nothing besides what Snakemake imports itself: it is parsed again in every job."""
    found = []
    for name, include in (("bare", ""), ("ours", f'include: "{REPO / "Snakefile"}"')):
        probe = finished / f"{name}.smk"
        probe.write_text(
            f"{include}\n"
            "import sys\n"
            'heavy = {"numpy", "ribs", "pandas", "gymnasium", "numba", "matplotlib"}\n'
            'print("HEAVY", sorted(heavy & set(sys.modules)), file=sys.stderr)\n'
        )
        words = ("-s", probe, "--configfile", finished / "mine.yaml", "-n", "--cores", 1)
        done = command("snakemake", *words, cwd=finished)
        found.append(next(line for line in done.stderr.splitlines() if "HEAVY" in line))
    assert found[0] == found[1]
    assert "ribs" not in found[1]
    assert "gymnasium" not in found[1]
