"""The metadata of an export are an RO-Crate: rocrate reads them, and 1.1 has what it asks for."""

import datetime
import json
from pathlib import Path

import pytest
import rocrate
from rocrate.rocrate import ROCrate

from qdsweep.analysis.export.crate import NAME, metadata

VERSIONS = {"qdsweep": "0.2.0", "numpy": "2.4.6"}
FILES = ("README.txt", "tables/table.csv", "figures/overview.pdf", "sweep.yaml", "SHA256SUMS")
RUNS = ("lp-cma_me-s1-0123456789", "lp-cma_me-s2-9876543210")
FORM = "https://w3id.org/ro/crate/1.1"


@pytest.fixture
def folder(tmp_path) -> Path:
    """An export, as far as its metadata go."""
    for name in (*FILES, *(f"runs/{run}/config.yaml" for run in RUNS)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    files = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()]
    files.remove("SHA256SUMS")  # it is written after them
    summaries = {run: {"archive_digest": "ab", "versions": VERSIONS} for run in RUNS}
    (tmp_path / NAME).write_bytes(metadata("mine", files, summaries, "2026-11-23"))
    return tmp_path


def test_rocrate_reads_it(folder, tmp_path_factory):
    crate = ROCrate(folder)
    assert crate.name == "The sweep mine"
    assert crate.datePublished == datetime.datetime(2026, 11, 23)
    assert {part.id for part in crate.root_dataset["hasPart"]} == {
        *FILES,
        *(f"runs/{run}/" for run in RUNS),
    }
    (made,) = crate.get_by_type("CreateAction")
    assert {(one["name"], one["softwareVersion"]) for one in made["instrument"]} == {
        *VERSIONS.items()
    }
    assert [run["identifier"] for run in made["result"]] == list(RUNS)
    assert made["object"].id == "sweep.yaml"
    copy = tmp_path_factory.mktemp("copy")
    crate.write(copy)  # which copies every file that it names
    assert (copy / "tables/table.csv").exists() and (copy / "runs" / RUNS[0]).is_dir()


def test_it_has_what_the_standard_asks_for(folder):
    """The requirements ("MUST") of RO-Crate 1.1, sections 2 to 5."""
    data = json.loads((folder / NAME).read_text())
    assert data["@context"] == f"{FORM}/context"
    graph = {entity["@id"]: entity for entity in data["@graph"]}
    assert len(graph) == len(data["@graph"])  # no identifier stands twice
    assert graph[NAME]["@type"] == "CreativeWork"
    assert graph[NAME]["conformsTo"] == {"@id": FORM} and graph[NAME]["about"] == {"@id": "./"}
    root = graph["./"]
    assert root["@type"] == "Dataset"
    assert all(root[key] for key in ("name", "description", "license"))
    datetime.date.fromisoformat(root["datePublished"])
    for part in root["hasPart"]:
        path, kind = folder / part["@id"], graph[part["@id"]]["@type"]
        assert path.is_file() if kind == "File" else path.is_dir() and kind == "Dataset", path
    for entity in graph.values():
        for value in entity.values():
            for link in value if isinstance(value, list) else [value]:
                assert not isinstance(link, dict) or link["@id"] in {*graph, FORM}


def test_every_key_is_a_term_of_the_context(folder):
    """Of that of RO-Crate 1.3, which rocrate has with it; 1.1's terms are among them."""
    file = Path(rocrate.__file__).parent / "data/ro-crate.jsonld"
    terms = json.loads(file.read_text())["@context"]
    for entity in json.loads((folder / NAME).read_text())["@graph"]:
        assert {key for key in entity if not key.startswith("@")} <= terms.keys()
        assert entity["@type"] in terms
