"""Files that are generated from the config models: schemas, config/README.md, docs/reference/."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args, get_origin

import jsonschema
import manual
import pytest
import yaml
from composing import presets
from support import REPO

from qdsweep.config.compose import compose
from qdsweep.config.domain_keys import DomainConfig, PolicyDomain
from qdsweep.config.emitters import EmitterKind
from qdsweep.config.model import Model
from qdsweep.config.resampling import Resampling
from qdsweep.sweep.runs import table_of_runs


@pytest.mark.parametrize("path", manual.files(), ids=lambda path: str(path.relative_to(REPO)))
def test_generated_files_are_those_of_the_models(path: Path):
    made = manual.files()[path]
    assert path.is_file(), f"{path} is missing: run `make schemas`"
    assert path.read_text() == made, f"{path} is out of date: run `make schemas`"


# Their keys are described for each type that has them.
BASES = (EmitterKind, DomainConfig, PolicyDomain, Resampling)


def models(model: type[Model] = Model) -> Iterator[type[Model]]:
    """Every model that a file can have, and their bases: EmitterKind and those with a leading _."""
    for part in model.__subclasses__():
        if part.__module__.startswith("qdsweep.config"):
            yield part
            yield from models(part)


def reference() -> str:
    """The text of all pages."""
    return "\n".join(manual.pages().values())


def test_every_key_has_a_description_and_is_in_the_reference():
    text = reference()
    seen = set()
    for model in models():
        for name, field in model.model_fields.items():
            if name == "type" and get_origin(field.annotation) is Literal:
                kind = get_args(field.annotation)[0] or "null"
                assert re.search(rf"^### \w+ `{kind}`$", text, flags=re.M), model
                continue
            assert field.description, f"{model.__name__}.{name} has no description"
            assert "{" not in field.description
            if not (model.__name__.startswith("_") or model in BASES):
                escaped = field.description.replace("|", "\\|")
                assert f"{name}` | " in text and f"| {escaped} |" in text, (model, name)
                seen.add(name)
    assert {"sigma0", "iterations", "workers_per_node", "k_neighbors", "hidden", "sweep"} <= seen
    for key in ("`env_steps` or `steps`", "`domain.mutation_scale` or `domain.step`"):
        assert f"| {key} | " in text


def test_every_key_is_in_one_table():
    lines = [line for line in reference().splitlines() if line.startswith("| `")]
    rows = Counter(tuple(line.split(" | ")[:4]) for line in lines)
    assert len(rows) > 250
    assert [row for row, count in rows.items() if count > 1] == []


def test_the_keys_of_a_type_are_in_its_table_or_in_the_shared_one():
    text = reference()
    for kind, own, shared in (
        ("Emitter `gaussian`", ["sigma"], ["initial_solutions", "bounds"]),
        ("Algorithm `td3`", ["training_ratio"], ["archive", "learner"]),
        ("Domain `atari`", ["game", "policy"], ["measures", "episodes"]),
    ):
        section = text.split(f"### {kind}\n")[1].split("\n#")[0]
        further = section.split("\nFurther keys")[1]
        assert all(f".{key}` | " in section for key in own)
        assert all(f"`{key}`" in further and f".{key}` | " not in section for key in shared)
    rows = [line for line in text.splitlines() if line.startswith("| `algorithm.learner.gamma`")]
    assert [row.split(" | ")[-1] for row in rows] == ["`pga_me`, `td3`, `cma_mega_td3_es` |"]


def test_the_overview_is_short_and_leads_to_every_page():
    made = {str(path.relative_to(REPO)): text for path, text in manual.pages().items()}
    assert len(made["config/README.md"].splitlines()) <= 250
    pages = {name for name in made if name != "config/README.md"}
    assert pages == {f"docs/reference/{name}.md" for name in (*manual.REFERENCE, "index")}
    for name in manual.REFERENCE:
        assert f"](../docs/reference/{name}.md)" in made["config/README.md"]
        assert f"]({name}.md)" in made["docs/reference/index.md"]


def test_it_has_every_preset_and_no_gap():
    text = reference()
    for kind in ("experiments", "domains", "algorithms", "sweeps", "clusters"):
        for name in presets(kind):
            assert f"[{name}](../../config/{kind}/{name}.yaml)" in text
    source = Path(manual.__file__).with_suffix(".md").read_text()
    gaps = re.findall(r"^\{[\w. ]+\}$", source, flags=re.M)
    assert len(gaps) > 15 and not any(gap in text for gap in (*gaps, "{example_id}"))


def test_its_sweeps_expand(in_own_folder: Path):
    (in_own_folder / "seeds.txt").write_text("seed\n1\n2\n")
    sweeps = [line for line in reference().splitlines() if line.startswith("::: ")]
    assert len(sweeps) == 6
    assert [len(table_of_runs("lp_sphere", sweep).rows) for sweep in sweeps] == [6, 6, 6, 4, 4, 4]


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
