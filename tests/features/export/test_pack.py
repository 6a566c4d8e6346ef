"""`qdsweep export` of a real sweep is complete, loadable, reproducible and anonymous."""

import contextlib
import hashlib
import html
import io
import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rocrate
import yaml
from in_process import compute_sweep, qdsweep, report_sweep
from refusals import names_all
from results import digest, forget_sums, read_json
from rocrate.rocrate import ROCrate
from support import REPO, TINY, command

from qdsweep import load
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.errors import QdsweepError
from qdsweep.features.export.crate import CRATE_FILE as CRATE
from qdsweep.features.export.pack import CORRECTED, SUMMARY
from qdsweep.features.export.pack import export as pack
from qdsweep.records.archive import archive_digest
from qdsweep.records.paths import SweepDir
from qdsweep.records.study_files import read_study, write_study
from qdsweep.records.sums import checksum

FORM = "https://w3id.org/ro/crate/1.1"
HOST, JOB, USER = "login-nora7.cluster.example.edu", "4711007", "nora_jacobsen"
SOMEBODY = {"HOME": f"/home/{USER}", "LOGNAME": USER}
SWEEP = {
    "name": "tiny",
    "experiment": {**TINY, "archive": {"dims": [8, 8]}},
    "sweep": "::: algorithm map_elites cma_mae ::: seed 1 2",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The folder of a sweep with its page, whose attempts were on another machine."""
    folder = tmp_path_factory.mktemp("finished")
    report_sweep(compute_sweep(folder / "results", SWEEP["experiment"], SWEEP["sweep"]))
    for path in folder.glob("results/runs/*/state/*.json"):
        about = json.loads(path.read_text())
        if about.get("attempts"):
            about["attempts"][0] |= {"host": HOST, "slurm_job": JOB}
            if "sha256" in about:
                del about["sha256"]
                about["sha256"] = checksum(about)
            path.write_text(json.dumps(about))
    return forget_sums(folder)


@pytest.fixture
def folder(finished, tmp_path) -> Path:
    """A copy to damage. Declared files are hard links of those in state/, as in the original."""
    subprocess.run(["cp", "-a", finished / "results", tmp_path], check=True)
    return tmp_path


def export(folder: Path, out: str = "tiny.zip", *, code: int = 0, allowed: tuple = ()) -> str:
    """Exports as a user with a name, and returns the output or the refusal."""
    printed = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.chdir(folder),
        contextlib.redirect_stderr(printed),
    ):
        for name, value in SOMEBODY.items():
            patch.setenv(name, value)
        if code == 0:
            return pack(Path("results"), "tiny", Path(out), allowed=allowed) + printed.getvalue()
        with pytest.raises(QdsweepError) as failure:
            pack(Path("results"), "tiny", Path(out), allowed=allowed)
    assert failure.value.exit_code == code
    assert not list(folder.glob("*.zip*")) and not list(folder.glob(".*.tmp"))
    return str(failure.value)


def names_in(archive: Path) -> list[str]:
    with zipfile.ZipFile(archive) as file:
        return file.namelist()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def exported(finished, tmp_path_factory) -> tuple[Path, Path]:
    """The zip of a sweep, and its content."""
    folder = tmp_path_factory.mktemp("exported")
    out = folder / "tiny.zip"
    done = command("qdsweep", "export", "tiny", "--out", out, cwd=finished, **SOMEBODY)
    assert done.stderr == ""
    with zipfile.ZipFile(out) as archive:
        archive.extractall(folder)
    return out, folder / "tiny"


def test_it_has_everything_and_every_sum_is_right(exported, finished):
    _, inside = exported
    names = {str(path.relative_to(inside)) for path in inside.rglob("*") if path.is_file()}
    runs = sorted(path.name for path in (finished / "results/runs").iterdir())
    files = ("config.yaml", "metrics.csv", "archive.npz", "history.npz", "summary.json")
    tables = ("runs.tsv", "summary.csv", "curves.csv", "table.csv", "table.md", "table.tex")
    assert names >= {
        *(f"runs/{run}/{name}" for run in runs for name in files),
        *(f"tables/{name}" for name in tables),
        *(
            f"figures/{name}{suffix}"
            for name in ("overview", "learning_curves", "heatmaps")
            for suffix in (".pdf", ".svg", ".csv")
        ),
        *("README.txt", "sweep.yaml", "report.html", "SHA256SUMS", CRATE),
    }
    assert not [name for name in names if name.endswith((".pkl", ".log", "status.json"))]
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=inside, check=True)
    summed = {line.split("  ")[1] for line in (inside / "SHA256SUMS").read_text().splitlines()}
    assert summed == names - {"SHA256SUMS"}
    planned = yaml.safe_load((inside / "sweep.yaml").read_text())
    assert planned["sweep"].strip() == SWEEP["sweep"]


def test_rocrate_reads_its_metadata(exported, finished, tmp_path):
    _, inside = exported
    crate, runs = ROCrate(inside), sorted(path.name for path in (inside / "runs").iterdir())
    summaries = [read_json(finished / f"results/runs/{run}/summary.json") for run in runs]
    last = max(summary["attempts"][-1]["ended"] for summary in summaries)
    assert crate.datePublished.isoformat()[:10] == last[:10]
    files = {str(path.relative_to(inside)) for path in inside.rglob("*") if path.is_file()}
    others = {name for name in files if not name.startswith("runs/")} - {CRATE}
    assert {part.id for part in crate.root_dataset["hasPart"]} == {
        *others,
        *(f"runs/{run}/" for run in runs),
    }
    (made,) = crate.get_by_type("CreateAction")
    versions = {(part["name"], part["softwareVersion"]) for part in made["instrument"]}
    assert versions == set(summaries[0]["versions"].items())
    assert [run["identifier"] for run in made["result"]] == runs
    assert made["object"].id == "sweep.yaml"
    crate.write(tmp_path / "copy")  # copies every file that it names
    assert (tmp_path / "copy/runs" / runs[0] / "archive.npz").exists()


def test_its_metadata_have_what_the_standard_asks_for(exported):
    """The requirements ("MUST") of RO-Crate 1.1, sections 2 to 5.

    Terms are those of RO-Crate 1.3, which rocrate contains. They include those of 1.1.
    """
    _, inside = exported
    data = read_json(inside / CRATE)
    assert data["@context"] == f"{FORM}/context"
    graph = {entity["@id"]: entity for entity in data["@graph"]}
    assert len(graph) == len(data["@graph"])  # no identifier appears twice
    assert graph[CRATE]["@type"] == "CreativeWork"
    assert graph[CRATE]["conformsTo"] == {"@id": FORM}
    assert graph[CRATE]["about"] == {"@id": "./"}
    root = graph["./"]
    assert root["@type"] == "Dataset"
    assert all(root[key] for key in ("name", "description", "license"))
    for part in root["hasPart"]:
        path, kind = inside / part["@id"], graph[part["@id"]]["@type"]
        assert path.is_file() if kind == "File" else path.is_dir() and kind == "Dataset", path
    terms = read_json(Path(rocrate.__file__).parent / "data/ro-crate.jsonld")["@context"]
    for entity in graph.values():
        assert {key for key in entity if not key.startswith("@")} <= terms.keys()
        assert entity["@type"] in terms
        for value in entity.values():
            for link in value if isinstance(value, list) else [value]:
                assert not isinstance(link, dict) or link["@id"] in {*graph, FORM}


def test_everything_loads_without_pickles_and_equals_the_original(exported, finished):
    _, inside = exported
    for path in inside.rglob("*.npz"):
        original = finished / "results/runs" / path.parent.name / path.name
        with np.load(path, allow_pickle=False) as ours, np.load(original) as theirs:
            assert ours.files == theirs.files
            for name in ours.files:
                np.testing.assert_array_equal(ours[name], theirs[name])
    for folder in (inside / "runs").iterdir():
        original = finished / "results/runs" / folder.name
        about = read_json(folder / "summary.json")
        assert set(about) <= {*SUMMARY, "budget"}
        assert about["budget"] == {"iterations": 12}
        with np.load(folder / "archive.npz", allow_pickle=False) as arrays:
            assert archive_digest(dict(arrays)) == about["archive_digest"]
        assert (folder / "metrics.csv").read_text() == (original / "metrics.csv").read_text()
        config, before = (
            yaml.safe_load((f / "config.yaml").read_text()) for f in (folder, original)
        )
        assert config == before
        assert load(folder).archive.stats.qd_score == pytest.approx(about["qd_score"])
    assert list(pd.read_csv(inside / "tables/summary.csv")["status"]) == ["finished"] * 4


def test_its_readme_names_the_files_the_versions_and_how_to_load_them(exported, snapshot):
    _, inside = exported
    listing, _, versions = (inside / "README.txt").read_text().partition("\nVERSIONS\n")
    assert listing == snapshot
    known = read_json(next(inside.glob("runs/*/summary.json")))["versions"]
    assert dict(line.split() for line in versions.strip().splitlines()) == known


def test_a_run_of_it_can_be_made_again(exported, tmp_path):
    _, inside = exported
    folder = next((inside / "runs").glob("*map_elites-s1-*"))
    command("qdsweep", "run", folder / "config.yaml", "--out", tmp_path / "again")
    assert digest(tmp_path / "again") == digest(folder)


def test_the_same_sweep_gives_the_same_bytes(exported, folder):
    archive, _ = exported
    for path in folder.rglob("*"):
        os.utime(path)
    (folder / "elsewhere").mkdir()
    assert sha256(archive) in export(folder, "elsewhere/other.zip")
    assert sha256(folder / "elsewhere/other.zip") == sha256(archive)
    with zipfile.ZipFile(archive) as file:
        assert {entry.date_time for entry in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_it_names_nobody(exported, finished):
    """Searches the unpacked files for the plain names, without qdsweep's own search."""
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


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f"Computed on {HOST.split('.')[0]}.", HOST.split(".")[0]),
        (f"Computed on {HOST}.", HOST),
        ("Computed on cluster.example.edu.", "cluster.example.edu"),
        (f"by {USER}", USER),
        ("by a.person@example.org", "a.person@example.org"),
        ("from {folder}/results", "{folder}"),
        (f"from /home/{USER[:4]}/data", f"/home/{USER[:4]}"),
        (f"Slurm job {JOB}", JOB),
    ],
)
def test_texts_that_reveal_the_author_are_found_and_named(folder, text, named):
    path = folder / "results/sweeps/tiny/table.md"
    path.write_text(f"{path.read_text()}\n{text}\n".replace("{folder}", str(folder)))
    names_all(export(folder, code=1), "tables/table.md", named.replace("{folder}", str(folder)))


def test_a_number_is_no_job_and_a_name_that_is_a_common_word_may_stay(folder):
    (folder / "results/sweeps/tiny/table.md").write_text(f"{JOB} evaluations by {USER}\n")
    export(folder, allowed=(USER,))


def test_a_page_that_names_a_person_is_left_out(folder):
    page = folder / "results/sweeps/tiny/report.html"
    page.write_text(page.read_text().replace("<body>", f"<body> {HOST}"))
    names_all(export(folder), "report.html", HOST)
    assert "tiny/report.html" not in names_in(folder / "tiny.zip")


def test_unfinished_runs_are_refused_unless_the_tables_are_of_them(folder):
    """After a larger budget, the runs are not at its end."""
    path = folder / "results/sweeps/tiny/plan.json"
    plan = read_json(path)
    for row in plan["rows"][:2]:
        row["iterations"] = 50
    path.write_text(json.dumps(plan))
    ids = [row["id"] for row in plan["rows"][:2]]
    aggregate(path.parent, folder / "results/runs")
    names_all(export(folder, code=2), *ids, "unfinished", "partial=true")
    aggregate(path.parent, folder / "results/runs", partial=True)
    names_all(export(folder), *ids, "partial")
    with zipfile.ZipFile(folder / "tiny.zip") as file:
        assert "partial" in file.read("tiny/tables/summary.csv").decode()


def test_missing_runs_may_stay_away_from_tables_that_say_so(folder):
    sweep, runs = folder / "results/sweeps/tiny", folder / "results/runs"
    (lost, *_) = sorted(runs.iterdir())
    shutil.rmtree(lost)
    names_all(export(folder, code=2), lost.name, "missing")  # the tables contain its results
    aggregate(sweep, runs, partial=True)
    names_all(export(folder), lost.name, "missing")
    assert not [name for name in names_in(folder / "tiny.zip") if f"runs/{lost.name}/" in name]


def test_links_to_other_folders_and_other_drawings_are_left_out(folder):
    sweep = folder / "results/sweeps/tiny"
    (folder / "mine.csv").write_text("private\n")
    (sweep / "plots/mine.csv").symlink_to(folder / "mine.csv")
    (sweep / "tables/mine.csv").symlink_to(folder / "mine.csv")
    (sweep / "tables/again.csv").symlink_to("timing.csv")
    (sweep / "plots/by_hand.svg").write_text("<svg/>")
    names_all(export(folder), "plots/mine.csv", "tables/mine.csv", "plots/by_hand.svg")
    names = names_in(folder / "tiny.zip")
    assert not [name for name in names if name.endswith(("/mine.csv", "by_hand.svg"))]
    assert "tiny/tables/again.csv" in names


def test_what_cannot_be_exported_is_refused(folder):
    names_all(export(folder, "no/such/tiny.zip", code=2), "--out", "no/such")
    names_all(export(folder, "results", code=2), "--out", "results/tiny.zip")
    path = folder / "results/sweeps/tiny/plan.json"
    plan = path.read_text()
    path.write_text(json.dumps({**json.loads(plan), "rows": json.loads(plan)["rows"][:3]}))
    names_all(export(folder, code=2), "tiny/summary.csv", "snakemake")
    path.write_text(plan)
    archive = next(folder.glob("results/runs/*/archive.npz"))
    archive.unlink()
    with archive.open("wb") as file:
        np.savez(file, objective=np.array([object()]), allow_pickle=True)
    names_all(export(folder, code=2), archive.relative_to(folder))
    shutil.rmtree(folder / "results/sweeps/tiny/plots")
    names_all(export(folder, code=2), "qdsweep plot tiny")


def test_the_sweeps_own_corrected_archives_come_along(folder):
    path = folder / "results/sweeps/tiny/plan.json"
    path.write_text(json.dumps({**read_json(path), "reevaluate": {"times": 2, "seed": 7}}))
    run = next(folder.glob("results/runs/*map_elites-s1-*"))
    qdsweep("reevaluate", run, "--times", 2, "--seed", 7, "--common", cwd=folder)
    for ending in (".json", ".npz"):  # written by hand, or of another sweep
        shutil.copy(run / f"reevaluated-2-7{ending}", run / f"reevaluated-3-7{ending}")
    export(folder)
    with zipfile.ZipFile(folder / "tiny.zip") as file:
        about = json.loads(file.read(f"tiny/runs/{run.name}/reevaluated-2-7.json"))
        assert set(about) == set(CORRECTED)
        content = io.BytesIO(file.read(f"tiny/runs/{run.name}/reevaluated-2-7.npz"))
        assert not [name for name in file.namelist() if "reevaluated-3-7" in name]
    with np.load(content, allow_pickle=False) as arrays:
        assert len(arrays["objective"]) == about["elites"]


def shown(page: Path) -> str:
    """Returns the text of the box at the top of a page."""
    head = page.read_text().partition('<p class="lead">')[2]
    return html.unescape(re.search("<pre>(.*?)</pre>", head, re.DOTALL)[1])


def test_the_page_shows_the_packed_sweep_file(exported, finished, folder):
    _, inside = exported
    packed = (inside / "sweep.yaml").read_text()
    assert shown(inside / "report.html") == packed
    assert shown(finished / "results/sweeps/tiny/report.html") == packed
    # A later start, which the finished page did not need.
    changed = f"{packed}cluster: local\n"
    study = read_study(SweepDir(folder / "results/sweeps/tiny"))
    files = {**study, "sweep.yaml": changed.encode()}
    write_study(files, SweepDir(folder / "results/sweeps/tiny"))
    export(folder)
    with zipfile.ZipFile(folder / "tiny.zip") as file:
        file.extractall(folder)
    assert shown(folder / "tiny/report.html") == (folder / "tiny/sweep.yaml").read_text() == changed


def test_the_table_of_digests_is_that_of_audit(exported, folder):
    _, inside = exported
    qdsweep("audit", "runs.csv", "--add", "tiny", cwd=folder)
    assert (inside / "tables/digests.csv").read_text() == (folder / "runs.csv").read_text()
    assert len((folder / "runs.csv").read_text().splitlines()) == 5


def test_the_libraries_are_locked_and_the_image_has_its_recipe(exported):
    _, inside = exported
    lock = (inside / "requirements.lock").read_text()
    assert "--hash=sha256:" in lock and "://" not in lock
    assert (inside / "requirements.lock").read_bytes() == (
        REPO / "envs/requirements.lock"
    ).read_bytes()
    assert "install.sh" in (inside / "containers/Dockerfile").read_text()


def test_a_sweep_of_an_earlier_release_is_started_again_first(folder):
    shutil.rmtree(folder / "results/sweeps/tiny/study")
    names_all(
        export(folder, code=2), "study/sweep.yaml", "earlier release", "Start the sweep again"
    )


def test_a_config_that_was_edited_in_the_results_is_refused(folder):
    path = folder / "results/sweeps/tiny/study/sweep.yaml"
    write_study(read_study(SweepDir(path.parents[1])) | {"x.txt": b""}, SweepDir(path.parents[1]))
    path.write_text(path.read_text().replace("12", "13"))
    names_all(export(folder, code=2), path.relative_to(folder), "has changed")


CITATION = """cff-version: 1.2.0
message: Cite it.
title: Ours
authors:
  - {given-names: Nora, family-names: Jacobsen, email: nora@example.org}
  - name: The Group
"""


def public(folder: Path, licence: str = "MIT") -> Path:
    qdsweep("export", "tiny", "--public", "--licence", licence, cwd=folder)
    with zipfile.ZipFile(folder / "tiny.zip") as file:
        file.extractall(folder)
    return folder / "tiny"


def test_a_public_package_has_licence_authors_and_what_archives_read(folder, monkeypatch):
    for name, value in SOMEBODY.items():
        monkeypatch.setenv(name, value)
    (folder / "CITATION.cff").write_text(CITATION)
    table = folder / "results/sweeps/tiny/table.md"
    table.write_text(f"{table.read_text()}by {USER}, nora@example.org\n")
    inside = public(folder)
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=inside, check=True)
    assert (inside / "CITATION.cff").read_text() == CITATION
    names_all((inside / "LICENSE").read_text(), "MIT License", "Nora Jacobsen, The Group")
    zenodo = read_json(inside / ".zenodo.json")
    assert zenodo["license"] == "mit" and zenodo["upload_type"] == "dataset"
    assert [one["name"] for one in zenodo["creators"]] == ["Nora Jacobsen", "The Group"]
    root = ROCrate(inside).root_dataset
    assert root["license"]["name"] == "MIT License" and "MIT" in root["license"].id
    assert [one["name"] for one in root["author"]] == ["Nora Jacobsen", "The Group"]
    assert "quality diversity" in root["keywords"]
    # Machines are still not named.
    table.write_text(f"{table.read_text()}on {HOST}\n")
    printed = qdsweep("export", "tiny", "--public", "--licence", "MIT", cwd=folder, code=1)
    names_all(printed, "table.md", HOST)


def test_the_authors_are_those_of_git_where_nothing_else_names_them(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    names_all(
        qdsweep("export", "tiny", "--public", "--licence", "CC-BY-4.0", cwd=folder, code=2),
        *("CITATION.cff", "authors", "git config"),
    )
    (folder / ".gitconfig").write_text("[user]\nname = Ada Lovelace\n")
    inside = public(folder, "CC-BY-4.0")
    cited = yaml.safe_load((inside / "CITATION.cff").read_text())
    assert cited["authors"] == [{"name": "Ada Lovelace"}] and cited["license"] == "CC-BY-4.0"
    names_all((inside / "LICENSE").read_text(), "CC-BY-4.0", "Ada Lovelace", "spdx.org")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--public"], ["--public", "--licence MIT"]),
        (["--licence", "MIT"], ["--licence MIT", "--public"]),
        (["--public", "--licence", "MITT"], ["--licence", "MIT"]),
        (["--public", "--licence", "MIT", "--to", "tensorboard", "tb"], ["--to", "--public"]),
    ],
)
def test_a_licence_goes_with_a_public_package(folder, words, named):
    names_all(qdsweep("export", "tiny", *words, cwd=folder, code=2), *named)


@pytest.mark.parametrize("key", ["family-names: ''", "orcid: 1"])
def test_an_author_without_a_name_is_refused(folder, key):
    (folder / "CITATION.cff").write_text(f"authors: [{{{key}}}]\n")
    words = ("export", "tiny", "--public", "--licence", "MIT")
    names_all(qdsweep(*words, cwd=folder, code=2), "CITATION.cff", "authors", "family-names")
    (folder / "CITATION.cff").write_text("title: Ours\n")
    names_all(qdsweep(*words, cwd=folder, code=2), "CITATION.cff", "authors")
