"""What version 0.1.0 left behind is opened, resumed, lengthened and reported by the code of now.

tests/fixtures/make_results.py says how it was made, by the code of then. Where one of these tests
fails, the code of now is to be mended, not the fixture: somebody has such folders.
"""

import csv
import io
import json
import re
import sys
import tarfile
from pathlib import Path

import pytest
import yaml
from in_process import compute_run
from support import REPO, command, snakemake

from qdsweep import load, load_sweep
from qdsweep.cli import main

FIXTURE = REPO / "tests/fixtures/results_0_1_0.tar.xz"
with tarfile.open(FIXTURE) as packed:
    EXPECTED = json.load(packed.extractfile("expected.json"))
RUNS = EXPECTED["runs"]
FINISHED = [run for run, about in RUNS.items() if about["status"] == "finished"]
HALF_DONE = [run for run in RUNS if run not in FINISHED]
# The presets of 0.1.0.
PRESETS = {"map_elites", "map_elites_line", "cvt_map_elites", "cma_me", "cma_me_imp", "cma_me_rd"}
PRESETS |= {"cma_mae", "cma_mega", "cma_maega", "cma_es", "sep_cma_es", "lm_ma_es", "openai_es"}
PRESETS |= {"novelty_search"}
SWEEPS = ("presets", "pole", "budgets", "shorter")
# Of these, only the times differ from one computation of a run to the next.
ALWAYS_EQUAL = ("runs.tsv", "summary.csv", "table.csv", "curves.csv", "tables/comparisons.csv")
# What Amdahl's law would have made of the times: no sweep has this table any more.
NO_LONGER_MADE = tuple(f"tables/workers.{end}" for end in ("csv", "md", "tex", "json"))
# What makes the tables of a sweep, as the rules call it.
STAGES = {"pole": ("aggregate", "corrected", "confirmed")}


@pytest.fixture
def study(tmp_path, monkeypatch) -> Path:
    """The folder of then, for this test alone, which works there."""
    folder = tmp_path / "study"
    with tarfile.open(FIXTURE) as packed:
        packed.extractall(folder, filter="data")
    monkeypatch.chdir(folder)
    monkeypatch.delitem(sys.modules, "earlier", raising=False)  # of another test's folder
    return folder


def run_folder(study: Path, run: str) -> Path:
    return study / "results/runs" / run


def summary(study: Path, run: str) -> dict:
    return json.loads((run_folder(study, run) / "summary.json").read_text())


def rows_of(metrics: Path) -> list[dict[str, str]]:
    """metrics.csv as text, without the times."""
    rows = csv.DictReader(metrics.read_text().splitlines())
    return [without_times(row) for row in rows]


def without_times(row: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in row.items() if "seconds" not in name}


def check_longer(study: Path, run: str) -> None:
    """A run is where the code of then has come to, straight."""
    longer = RUNS[run]["longer"]
    about = summary(study, run)
    assert about["iterations"] == longer["iterations"], run
    assert about["archive_digest"] == longer["archive_digest"], run
    rows = rows_of(run_folder(study, run) / "metrics.csv")
    assert [int(row["iteration"]) for row in rows] == list(range(1, longer["iterations"] + 1)), run
    assert rows[-1].items() >= longer["metrics"].items(), run


def check_loads(study: Path, run: str) -> None:
    """Python gets the archive, the metrics and the experiment of a run."""
    loaded = load(run_folder(study, run))
    about = loaded.summary
    assert about["id"] == run
    assert len(loaded.archive) == about["num_elites"]
    assert loaded.archive.stats.qd_score == pytest.approx(about["qd_score"])
    assert len(loaded.metrics) == about["iterations"]
    assert loaded.metrics["qd_score"].iloc[-1] == about["qd_score"]
    assert f"-s{loaded.config['seed']}-" in run


def make_tables(name: str) -> None:
    for stage in STAGES.get(name, ("aggregate",)):
        assert main([stage, name]) == 0


def check_tables(study: Path, name: str) -> None:
    """The tables of a sweep are those of then: all columns, cell by cell; there may be more."""
    for path, text in EXPECTED["tables"][name].items():
        if path in NO_LONGER_MADE:
            continue
        file = study / "results/sweeps" / name / path
        mark = "\t" if path == "runs.tsv" else ","
        then, now = (
            csv.DictReader(io.StringIO(content), delimiter=mark)
            for content in (text, file.read_text())
        )
        columns = then.fieldnames or []
        assert set(columns) <= set(now.fieldnames or []), f"{name}: {path}"
        kept = [{column: row[column] for column in columns} for row in now]
        assert kept == list(then), f"{name}: {path}"


def stamps(study: Path, pattern: str) -> dict[Path, tuple[int, int]]:
    """What changes when a file is written anew; Snakemake touches some."""
    return {path: (path.stat().st_ino, path.stat().st_size) for path in study.glob(pattern)}


def planned(text: str) -> dict[str, int]:
    """The jobs that Snakemake would start: how many of which rule."""
    return {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", text, re.MULTILINE)}


def test_the_fixture_has_every_algorithm_and_every_way_to_end():
    names = {run.split("-")[1] for run in FINISHED}
    assert names >= PRESETS
    assert {about["status"] for about in RUNS.values()} == {
        "finished",
        "stopped",
        "failed",
        "running",  # killed
    }
    assert len(HALF_DONE) == 15


@pytest.mark.parametrize("name", SWEEPS)
def test_a_finished_sweep_computes_no_run_again(study, name):
    words = ("-n", "--cores", 1, "--configfile", study / f"{name}.yaml")
    done = snakemake(*words, cwd=study)
    assert f"qdsweep: {name}: " in done.stderr
    assert "nothing left" in done.stderr
    jobs = planned(done.stdout + done.stderr)
    assert "report_page" in jobs, "which the fixture has not"
    assert not jobs.keys() & {"qd_run", "reevaluate"}


def test_status_and_clean_know_all_runs(study, capsys):
    counted = {}
    for name in (*SWEEPS, "half"):
        assert main(["status", name]) == 0
        text = capsys.readouterr().out
        counted[name] = re.search(r"^\d+ runs?: (.*); core-hours", text, re.MULTILINE)[1]
    done = {name: counted.pop(name) for name in SWEEPS}
    assert done == {
        "presets": "14 finished",
        "pole": "6 finished",  # two of them confirm it
        "budgets": "3 finished",
        "shorter": "2 finished",
    }
    for word in ("1 finished", "14 stopped", "1 failed"):
        assert word in counted["half"]
    assert main(["clean", "--orphans", "--dry-run"]) == 0
    assert not [run for run in RUNS if run in capsys.readouterr().out]


def test_half_done_runs_end_as_if_nobody_had_stopped_them(study):
    """By the real Snakefile, which then makes the tables anew, without the unfinished runs."""
    words = ("--cores", 2, "--configfile", study / "half.yaml", "--until", "aggregate")
    snakemake(*words, cwd=study)
    for run in HALF_DONE:
        log = (run_folder(study, run) / "run.log").read_text()
        assert log.count("a new run") == 1, f"{run} went on from its reload file"
        assert log.count("goes on after iteration") == 1, run
        assert len(summary(study, run)["attempts"]) == 2
        check_longer(study, run)
        check_loads(study, run)
    for name in ALWAYS_EQUAL:
        lines = (
            (study / "results/sweeps/half" / name).read_text(),
            (EXPECTED["tables"]["half, finished"][name]),
        )
        delimiter = "\t" if name.endswith(".tsv") else ","
        ours, theirs = (
            [without_times(row) for row in csv.DictReader(io.StringIO(text), delimiter=delimiter)]
            for text in lines
        )
        # Metrics that are new since then may stand beside.
        for now, then in zip(ours, theirs, strict=True):
            assert now.items() >= then.items(), name


def test_finished_runs_can_be_lengthened(study):
    """In this process: nothing but the files is of then."""
    for run in FINISHED:
        out = run_folder(study, run)
        compute_run(out / "config.yaml", out, iterations=RUNS[run]["longer"]["iterations"])
        check_longer(study, run)
        check_loads(study, run)


@pytest.mark.parametrize("run", [run for run in RUNS if re.match("bowl-.*-s12-|bowl-own-", run)])
def test_the_command_line_goes_on_with_a_run(study, run):
    """One that is half done and has a plug-in's emitter, and one that dask's workers finished."""
    out = run_folder(study, run)
    iterations = RUNS[run]["longer"]["iterations"]
    words = ("run", out / "config.yaml", "--set", f"iterations={iterations}", "--out", out)
    command("qdsweep", *words, cwd=study)
    check_longer(study, run)


def test_finished_runs_are_loaded_as_they_are(study):
    for run in FINISHED:
        check_loads(study, run)
        about = summary(study, run)
        assert about["archive_digest"] == RUNS[run]["archive_digest"]
        assert about["iterations"] == RUNS[run]["iteration"]
    assert list(load_sweep("pole")["status"]) == ["finished"] * 4


@pytest.mark.parametrize("name", SWEEPS)
def test_tables_made_anew_are_equal(study, name):
    sweep = study / "results/sweeps" / name
    check_tables(study, name)
    make_tables(name)  # from the cache of then, or not
    check_tables(study, name)
    for path in (sweep / ".aggregated.npz", *(sweep / path for path in EXPECTED["tables"][name])):
        path.unlink(missing_ok=True)
    make_tables(name)
    check_tables(study, name)


def test_a_partial_report_has_the_same_tables(study):
    """With the snapshots of then in `state/partial`, and without them."""
    check_tables(study, "half")
    for _ in range(2):
        assert main(["aggregate", "half", "--partial"]) == 0
        check_tables(study, "half")
        for run in HALF_DONE:
            for path in (run_folder(study, run) / "state/partial").iterdir():
                path.unlink()


def test_the_report_is_made_of_what_is_there(study):
    """Corrected archives and confirming runs are used, and not made again."""
    kept = ("results/runs/*/reevaluated-*.*", "results/runs/*/state/*.*")
    before = [stamps(study, pattern) for pattern in kept]
    assert len(before[0]) >= 8
    winners = (study / "results/sweeps/pole/confirm.json").read_text()
    settings = yaml.safe_load((study / "pole.yaml").read_text())
    snakemake("--cores", 2, "--configfile", study / "pole.yaml", cwd=study)
    assert [stamps(study, pattern) for pattern in kept] == before
    assert (study / "results/sweeps/pole/confirm.json").read_text() == winners
    check_tables(study, "pole")
    page = (study / "results/sweeps/pole/report.html").read_text()
    for label in settings["figures"]["labels"].values():
        assert label in page
    assert "nobody, nowhere" in page
    assert list(study.glob("results/sweeps/pole/plots/rollouts/*.gif"))
