"""`qdsweep export` of a real sweep: complete, loadable, the same bytes, and it names nobody."""

import contextlib
import hashlib
import io
import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from in_process import compute_sweep, report_sweep
from results import forget_sums
from rocrate.rocrate import ROCrate
from support import TINY, command

from qdsweep import load
from qdsweep.analysis.export.crate import NAME as CRATE
from qdsweep.analysis.export.pack import CORRECTED, SUMMARY
from qdsweep.analysis.export.pack import export as pack
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.errors import QdsweepError
from qdsweep.records.archive import archive_digest

HOST, JOB, USER = "login-nora7.cluster.example.edu", "4711007", "nora_jacobsen"
SOMEBODY = {"HOME": f"/home/{USER}", "LOGNAME": USER}
SWEEP = {
    "name": "tiny",
    "experiment": {**TINY, "archive": {"dims": [8, 8]}},
    "sweep": "::: algorithm map_elites cma_mae ::: seed 1 2",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The folder of a sweep with its page; its attempts were on another machine."""
    folder = tmp_path_factory.mktemp("finished")
    report_sweep(compute_sweep(folder / "results", SWEEP["experiment"], SWEEP["sweep"]))
    for path in folder.glob("results/runs/*/state/*.json"):
        about = json.loads(path.read_text())
        if about.get("attempts"):
            about["attempts"][0] |= {"host": HOST, "slurm_job": JOB}
            path.write_text(json.dumps(about))
    return forget_sums(folder)


@pytest.fixture
def folder(finished, tmp_path) -> Path:
    """A copy of it, to spoil; declared files are hard links of those in state/, as they were."""
    subprocess.run(["cp", "-a", finished / "results", tmp_path], check=True)
    return tmp_path


def export(folder: Path, out: str = "tiny.zip", *, code: int = 0, allowed: tuple = ()) -> str:
    """Exports in the name of somebody; returns what is said."""
    said = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.chdir(folder),
        contextlib.redirect_stderr(said),
    ):
        for name, value in SOMEBODY.items():
            patch.setenv(name, value)
        if code == 0:
            return pack(Path("results"), "tiny", Path(out), allowed=allowed) + said.getvalue()
        with pytest.raises(QdsweepError) as failure:
            pack(Path("results"), "tiny", Path(out), allowed=allowed)
    assert failure.value.exit_code == code
    return str(failure.value)


@pytest.fixture(scope="module")
def exported(finished, tmp_path_factory) -> tuple[Path, Path]:
    """The zip of it, and what is in it."""
    folder = tmp_path_factory.mktemp("exported")
    out = folder / "tiny.zip"
    done = command("qdsweep", "export", "tiny", "--out", out, cwd=finished, **SOMEBODY)
    assert done.stderr == ""
    assert "of 4 runs" in done.stdout
    with zipfile.ZipFile(folder / "tiny.zip") as archive:
        archive.extractall(folder)
    return folder / "tiny.zip", folder / "tiny"


def test_it_has_everything_and_every_sum_is_right(exported, finished):
    _, inside = exported
    names = {str(path.relative_to(inside)) for path in inside.rglob("*") if path.is_file()}
    runs = sorted(path.name for path in (finished / "results/runs").iterdir())
    for run in runs:
        for name in ("config.yaml", "metrics.csv", "archive.npz", "history.npz", "summary.json"):
            assert f"runs/{run}/{name}" in names
    for name in ("runs.tsv", "summary.csv", "curves.csv", "table.csv", "table.md", "table.tex"):
        assert f"tables/{name}" in names
    for name in ("overview", "learning_curves", "heatmaps"):
        for suffix in (".pdf", ".svg", ".csv"):
            assert f"figures/{name}{suffix}" in names
    assert {"README.txt", "sweep.yaml", "report.html", "SHA256SUMS", CRATE} <= names
    crate = ROCrate(inside)
    listed = {part.id for part in crate.root_dataset["hasPart"]}
    others = {name for name in names if not name.startswith("runs/")} - {CRATE}
    assert listed == {*others, *(f"runs/{run}/" for run in runs)}
    ended = [
        json.loads(path.read_text())["attempts"][-1]["ended"]
        for path in finished.glob("results/runs/*/summary.json")
    ]
    assert crate.datePublished.isoformat()[:10] == max(ended)[:10]
    assert not [name for name in names if name.endswith((".pkl", ".log", "status.json"))]
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=inside, check=True)
    summed = {line.split("  ")[1] for line in (inside / "SHA256SUMS").read_text().splitlines()}
    assert summed == names - {"SHA256SUMS"}
    planned = yaml.safe_load((inside / "sweep.yaml").read_text())
    assert planned["sweep"].strip() == SWEEP["sweep"]


def test_everything_loads_without_pickles_and_equals_the_original(exported, finished):
    _, inside = exported
    for path in inside.rglob("*.npz"):
        run = finished / "results/runs" / path.parent.name
        with np.load(path, allow_pickle=False) as ours, np.load(run / path.name) as theirs:
            assert ours.files == theirs.files
            for name in ours.files:
                np.testing.assert_array_equal(ours[name], theirs[name])
    for folder in (inside / "runs").iterdir():
        original = finished / "results/runs" / folder.name
        summary = json.loads((folder / "summary.json").read_text())
        assert set(summary) <= {*SUMMARY, "budget"}
        assert summary["budget"] == {"iterations": 12}
        with np.load(folder / "archive.npz", allow_pickle=False) as arrays:
            assert archive_digest(dict(arrays)) == summary["archive_digest"]
        assert (folder / "metrics.csv").read_text() == (original / "metrics.csv").read_text()
        assert yaml.safe_load((folder / "config.yaml").read_text()) == yaml.safe_load(
            (original / "config.yaml").read_text()
        )
        run = load(folder)
        assert run.archive.stats.qd_score == pytest.approx(summary["qd_score"])
    table = pd.read_csv(inside / "tables/summary.csv")
    assert list(table["status"]) == ["finished"] * 4
    readme = (inside / "README.txt").read_text()
    for library in ("numpy", "ribs", "python"):
        assert f"  {library:14} {summary['versions'][library]}" in readme
    assert "allow_pickle=False" in readme


def test_a_run_of_it_can_be_made_again(exported, tmp_path):
    _, inside = exported
    folder = next((inside / "runs").glob("*map_elites-s1-*"))
    command("qdsweep", "run", folder / "config.yaml", "--out", tmp_path / "again")
    again = json.loads((tmp_path / "again/summary.json").read_text())
    assert (
        again["archive_digest"]
        == json.loads((folder / "summary.json").read_text())["archive_digest"]
    )


def test_the_same_sweep_gives_the_same_bytes(exported, folder):
    archive, _ = exported
    for path in folder.rglob("*"):
        os.utime(path)
    (folder / "elsewhere").mkdir()
    said = export(folder, "elsewhere/other.zip")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert digest in said
    assert hashlib.sha256((folder / "elsewhere/other.zip").read_bytes()).hexdigest() == digest
    with zipfile.ZipFile(archive) as file:
        assert {entry.date_time for entry in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_it_names_nobody(exported, finished):
    """Looked for by other means than its own: unpacked, and with the plain names."""
    _, inside = exported
    names = [HOST, HOST.split(".")[0], JOB, USER, str(finished), "attempts", "slurm_job"]
    files = [path for path in inside.rglob("*") if path.is_file()]
    contents = {path: path.read_bytes() for path in files}
    for path in inside.rglob("*.npz"):
        with zipfile.ZipFile(path) as file:
            contents |= {path / name: file.read(name) for name in file.namelist()}
    for path, content in contents.items():
        for name in names:
            assert name.encode() not in content, f"{name} in {path}"


SECRET = [HOST.split(".")[0], HOST, "cluster.example.edu", USER, "somebody@example.org"]


@pytest.mark.parametrize("secret", SECRET)
def test_what_tells_who_made_it_is_found_and_named(folder, secret):
    path = folder / "results/sweeps/tiny/table.md"
    path.write_text(f"{path.read_text()}\nComputed on/by {secret}.\n")
    said = export(folder, code=1)
    assert "tables/table.md" in said
    assert secret in said
    assert not list(folder.glob("*.zip*")) and not list(folder.glob(".*.tmp"))


def test_paths_and_jobs_are_found(folder):
    sweep = folder / "results/sweeps/tiny"
    (sweep / "table.md").write_text(f"from {folder}/results\n")
    assert "the path" in export(folder, code=1)
    (sweep / "table.md").write_text(f"from /home/{USER[:4]}/data\n")
    assert "a home directory '/home/nora'" in export(folder, code=1)
    (sweep / "table.md").write_text(f"Slurm job {JOB}\n")
    assert "a Slurm job" in export(folder, code=1)
    (sweep / "table.md").write_text(f"{JOB} evaluations\n")  # a number is no job
    export(folder)


def test_a_name_that_is_a_common_word_may_stay(folder):
    (folder / "results/sweeps/tiny/table.md").write_text(f"by {USER}\n")
    export(folder, allowed=(USER,))


def test_a_page_that_names_somebody_is_left_out(folder):
    page = folder / "results/sweeps/tiny/report.html"
    page.write_text(page.read_text().replace("<body>", f"<body> {HOST}"))
    said = export(folder)
    assert "left out, report.html" in said and HOST in said
    with zipfile.ZipFile(folder / "tiny.zip") as file:
        assert "tiny/report.html" not in file.namelist()


def test_unfinished_runs_are_refused_unless_the_tables_are_of_them(folder):
    """A budget is raised: runs are not at its end."""
    path = folder / "results/sweeps/tiny/plan.json"
    plan = json.loads(path.read_text())
    for row in plan["rows"][:2]:
        row["iterations"] = 50
    path.write_text(json.dumps(plan))
    sweep, results = path.parent, folder / "results/runs"
    aggregate(sweep, results)
    said = export(folder, code=2)
    ids = {row["id"] for row in plan["rows"][:2]}
    assert all(f"{run} (unfinished)" in said for run in ids)
    assert "partial=true" in said
    aggregate(sweep, results, partial=True)
    said = export(folder)
    assert all(f"{run} (partial)" in said for run in ids)
    with zipfile.ZipFile(folder / "tiny.zip") as file:
        assert "partial" in file.read("tiny/tables/summary.csv").decode()


def test_missing_runs_may_stay_away_from_tables_that_say_so(folder):
    sweep, runs = folder / "results/sweeps/tiny", folder / "results/runs"
    (lost, *_) = sorted(runs.iterdir())
    shutil.rmtree(lost)
    assert f"{lost.name} (missing)" in export(folder, code=2)  # the tables have its results
    aggregate(sweep, runs, partial=True)
    assert f"not finished: {lost.name} (missing)" in export(folder)
    with zipfile.ZipFile(folder / "tiny.zip") as file:
        assert not [name for name in file.namelist() if f"runs/{lost.name}/" in name]


def test_links_to_other_folders_and_other_drawings_are_left_out(folder):
    sweep = folder / "results/sweeps/tiny"
    (folder / "mine.csv").write_text("private\n")
    (sweep / "plots/mine.csv").symlink_to(folder / "mine.csv")
    (sweep / "tables/mine.csv").symlink_to(folder / "mine.csv")
    (sweep / "tables/again.csv").symlink_to("timing.csv")
    (sweep / "plots/by_hand.svg").write_text("<svg/>")
    said = export(folder)
    assert said.count("left out") == 3 and "plots/mine.csv: a link" in said
    assert "by_hand.svg: no figure of this sweep" in said
    with zipfile.ZipFile(folder / "tiny.zip") as file:
        assert not [name for name in file.namelist() if name.endswith(("/mine.csv", "by_hand.svg"))]
        assert "tiny/tables/again.csv" in file.namelist()


def test_what_cannot_be_exported_is_said(folder):
    done = command("qdsweep", "export", "other", cwd=folder, check=2)
    assert "known: tiny" in done.stderr
    assert "make it" in export(folder, "no/such/tiny.zip", code=2)
    assert "such as results/tiny.zip" in export(folder, "results", code=2)
    path = folder / "results/sweeps/tiny/plan.json"
    plan = json.loads(path.read_text())
    path.write_text(json.dumps({**plan, "rows": plan["rows"][:3]}))
    assert "run `snakemake` first" in export(folder, code=2)
    path.write_text(json.dumps(plan))
    archive = next(folder.glob("results/runs/*/archive.npz"))
    archive.unlink()
    with archive.open("wb") as file:
        np.savez(file, objective=np.array([object()]), allow_pickle=True)
    assert "archive.npz is damaged (Object arrays cannot" in export(folder, code=2)
    shutil.rmtree(folder / "results/sweeps/tiny/plots")
    assert "qdsweep plot tiny" in export(folder, code=2)


def test_the_sweeps_own_corrected_archives_come_along(folder):
    path = folder / "results/sweeps/tiny/plan.json"
    plan = json.loads(path.read_text())
    path.write_text(json.dumps({**plan, "reevaluate": {"times": 2, "seed": 7}}))
    run = next(folder.glob("results/runs/*map_elites-s1-*"))
    command("qdsweep", "reevaluate", run, "--times", 2, "--seed", 7, cwd=folder)
    for ending in (".json", ".npz"):  # by hand, or of another sweep
        shutil.copy(run / f"reevaluated-2-7{ending}", run / f"reevaluated-3-7{ending}")
    export(folder)
    with zipfile.ZipFile(folder / "tiny.zip") as file:
        about = json.loads(file.read(f"tiny/runs/{run.name}/reevaluated-2-7.json"))
        assert set(about) == set(CORRECTED)
        content = io.BytesIO(file.read(f"tiny/runs/{run.name}/reevaluated-2-7.npz"))
        assert not [name for name in file.namelist() if "reevaluated-3-7" in name]
    with np.load(content, allow_pickle=False) as arrays:
        assert len(arrays["objective"]) == about["elites"]
