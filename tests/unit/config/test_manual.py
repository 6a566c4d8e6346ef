"""What is generated of the config models: schemas and the manual."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args, get_origin

import jsonschema
import pytest
import yaml
from composing import presets
from support import REPO

from qdsweep.cli import manual
from qdsweep.config.base import Model
from qdsweep.config.compose import compose
from qdsweep.config.emitters import EmitterKind
from qdsweep.sweep.runs import table_of_runs


@pytest.mark.parametrize("path", manual.files(), ids=lambda path: path.name)
def test_generated_files_are_those_of_the_models(path: Path):
    made = manual.files()[path]
    assert path.is_file(), f"{path} is missing: run `make schemas`"
    assert path.read_text() == made, f"{path} is out of date: run `make schemas`"


def models(model: type[Model] = Model) -> Iterator[type[Model]]:
    """Every model that a file can have, and their bases: EmitterKind and those with a leading _."""
    for part in model.__subclasses__():
        if part.__module__.startswith("qdsweep.config"):
            yield part
            yield from models(part)


def test_every_key_has_a_description_and_stands_in_the_manual():
    text = manual.manual()
    seen = set()
    for model in models():
        for name, field in model.model_fields.items():
            if name == "type" and get_origin(field.annotation) is Literal:
                assert f"type: {get_args(field.annotation)[0]}`" in text, model
                continue
            assert field.description, f"{model.__name__}.{name} has no description"
            assert "{" not in field.description
            if not (model.__name__.startswith("_") or model is EmitterKind):
                escaped = field.description.replace("|", "\\|")
                assert f"{name}` | " in text and f"| {escaped} |" in text, (model, name)
                seen.add(name)
    assert {"sigma0", "iterations", "workers_per_node", "k_neighbors", "hidden", "sweep"} <= seen


def test_manual_has_every_preset_and_no_gap():
    text = manual.manual()
    for kind in ("experiments", "domains", "algorithms", "sweeps"):
        for name in presets(kind):
            assert f"[{name}]({kind}/{name}.yaml)" in text
    for name in ("example_id", "presets", "sweep", "experiment", "domain", "algorithm", "cluster"):
        assert f"{{{name}}}" not in text


def test_manual_sweeps_expand(in_own_folder: Path):
    (in_own_folder / "seeds.txt").write_text("seed\n1\n2\n")
    sweeps = [line for line in manual.manual().splitlines() if line.startswith("::: ")]
    assert len(sweeps) == 5
    assert [len(table_of_runs("lp_sphere", sweep).rows) for sweep in sweeps] == [6, 6, 4, 4, 4]


@pytest.mark.parametrize("name", presets("experiments"))
def test_schema_fits_what_a_run_writes(name: str):
    schema = json.loads((REPO / "workflow/schemas/experiment.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(compose(name).model_dump(mode="json"), schema)
    refuses(schema)


@pytest.mark.parametrize("path", [REPO / "config/config.yaml", *(REPO / "config/sweeps").iterdir()])
def test_schema_of_the_catalogue_fits_every_sweep_file(path: Path):
    schema = yaml.safe_load((REPO / "workflow/schemas/config.schema.yaml").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(path.read_text()), schema)
    assert {"columns"} == set(schema["properties"]["tables"]["properties"]), "not in its place"
    refuses(schema)


def refuses(schema: dict) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"sede": 1}, schema)
