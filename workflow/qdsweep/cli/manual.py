"""Makes the JSON schemas and the manual, config/README.md, from the models and manual.md.

`make schemas` runs it; a test holds what it makes equal to the files.
"""

import json
import re
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo

from qdsweep.config.algorithm import Algorithm
from qdsweep.config.base import Model
from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.config.domain import DomainConfig
from qdsweep.config.experiment import Experiment
from qdsweep.config.files import CLONE
from qdsweep.config.keys import models_in
from qdsweep.config.sweep import SweepFile
from qdsweep.sweep.ids import run_id

SCHEMAS: dict[str, type[Model]] = {
    "experiment": Experiment,
    "cluster": Cluster,
    "sweep": SweepFile,
}
_OWN_TYPE = "module:Class"
_SCALARS: dict[Any, str] = {
    bool: "true or false",
    int: "integer",
    float: "number",
    str: "text",
    dict: "mapping",
    tuple: "[lower, upper]",
    types.NoneType: "null",
}

Row = tuple[str, str, str, str]


def main() -> None:
    """Writes the files."""
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def files() -> dict[Path, str]:
    """Every generated file of the clone and its content."""
    schemas = CLONE.parent / "workflow/schemas"
    made = {schemas / f"{name}.schema.json": schema(model) for name, model in SCHEMAS.items()}
    return {**made, CLONE / "README.md": manual()}


def schema(model: type[Model]) -> str:
    """The JSON schema of a model; for an experiment, of the composed one."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(head | model.model_json_schema(), indent=2) + "\n"


def manual() -> str:
    """The manual: manual.md with its {parts} filled in."""
    text = Path(__file__).with_name("manual.md").read_text(encoding="utf-8")
    for name, part in {
        "example_id": run_id(compose("lunar_lander")),
        "presets": "\n\n".join(map(_presets, ("experiment", "domain", "algorithm", "sweep"))),
        "sweep": table(rows(SweepFile)),
        "experiment": table(rows(Experiment)),
        "domain": "\n\n".join(
            [
                table(rows(DomainConfig, "domain.")),
                *_of_types(Experiment, "domain", "domain.", DomainConfig),
            ]
        ),
        "algorithm": "\n\n".join(
            [
                table(rows(Algorithm, "algorithm.")),
                *_of_types(Algorithm, "archive", "algorithm.archive."),
                *_of_types(Algorithm, "emitters", "algorithm.emitters.N."),
                *_of_types(Algorithm, "scheduler", "algorithm.scheduler."),
            ]
        ),
        "cluster": table(rows(Cluster)),
    }.items():
        text = text.replace(f"{{{name}}}", part)
    return text


def rows(model: type[Model], prefix: str = "", base: type[Model] | None = None) -> Iterator[Row]:
    """A row for each key: dotted key, type, default, description.

    Args:
        model: The model. The tables of a domain, an algorithm and of each type are others'.
        prefix: What stands before its keys.
        base: A model whose table has the keys that are the same there.
    """
    for name, field in model.model_fields.items():
        if (base and _same(field, base.model_fields.get(name))) or _fixed_type(name, field):
            continue
        preset = model is Experiment and name in ("domain", "algorithm")
        kind = "a preset's name, or a mapping" if preset else words(field.annotation, field)
        yield f"{prefix}{name}", kind, _default(field), field.description or ""
        inner = list(models_in(field.annotation))
        if len(inner) == 1 and not preset:
            number = ".N" if get_origin(field.annotation) is list else ""
            yield from rows(inner[0], f"{prefix}{name}{number}.")


def _of_types(
    owner: type[Model], key: str, prefix: str, base: type[Model] | None = None
) -> Iterator[str]:
    """For each type that a key of `owner` may have, its heading and table."""
    for model in models_in(owner.model_fields[key].annotation):
        yield f"#### `{prefix}type: {_type(model)}`\n\n{' '.join((model.__doc__ or '').split())}"
        own = list(rows(model, prefix, base))
        if own:
            yield table(own)
        for name, field in model.model_fields.items():
            if len(list(models_in(field.annotation))) > 1:
                yield from _of_types(model, name, f"{prefix}{name}.")


def table(lines: Iterable[Row]) -> str:
    """A Markdown table of keys."""
    head = "| key | type | default | |\n|---|---|---|---|"
    escaped = (tuple(cell.replace("|", "\\|") for cell in line) for line in lines)
    return "\n".join([head, *(f"| `{key}` | {' | '.join(rest)} |" for key, *rest in escaped)])


def words(annotation: Any, limits: FieldInfo | None = None) -> str:
    """A type in words, such as "integer >= 1 or null".

    Args:
        annotation: The type.
        limits: The field with the limits of the value.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    models = list(models_in(annotation))
    if origin is list:
        item = words(arguments[0])
        return "list of " + re.sub(r"^(integer|number|mapping)", r"\1s", item)
    if models:
        kind = f"mapping, type {_listed(map(_type, models))}" if len(models) > 1 else "mapping"
        return kind + (" or null" if types.NoneType in arguments else "")
    if origin is Annotated:
        return words(arguments[0], next((a for a in arguments if isinstance(a, FieldInfo)), None))
    if origin is Literal:
        return _listed(arguments)
    if origin in (Union, types.UnionType):
        parts = sorted(arguments, key=lambda part: part is types.NoneType)
        return " or ".join(words(part, limits) for part in parts)
    if origin in _SCALARS or annotation is types.NoneType:
        return _SCALARS[origin or annotation]
    return f"{_SCALARS[annotation]} {', '.join(_limits(limits))}".rstrip()


def _limits(field: FieldInfo | None) -> Iterator[str]:
    for limit in field.metadata if field else ():
        match limit:
            case Ge():
                yield f">= {limit.ge}"
            case Gt():
                yield f"> {limit.gt}"
            case Le():
                yield f"<= {limit.le}"
            case Lt(lt=int(bound)) if bound.bit_count() == 1:
                yield f"< 2^{bound.bit_length() - 1}"


def _listed(values: Iterable[Any]) -> str:
    *most, last = [f"`{value}`" for value in values]
    return f"{', '.join(most)} or {last}" if most else last


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "*required*"
    value = field.default
    if isinstance(value, Model):
        value = value.model_dump(exclude_defaults=True)
        return f"`{{type: {value['type']}}}`" if value else ""
    return f"`{value}`" if isinstance(value, str) and value else f"`{json.dumps(value)}`"


def _type(model: type[Model]) -> str:
    """The `type` that chooses a model of several."""
    options = get_args(model.model_fields["type"].annotation)
    return str(options[0]) if options else _OWN_TYPE


def _fixed_type(name: str, field: FieldInfo) -> bool:
    """Whether it is the `type` that a heading names."""
    return name == "type" and get_origin(field.annotation) is Literal


def _same(field: FieldInfo, other: FieldInfo | None) -> bool:
    return other is not None and repr(field) == repr(other)


def _presets(kind: str) -> str:
    """A table of the presets of a kind."""
    lines = [f"| {kind} | |", "|---|---|"]
    for path in sorted((CLONE / f"{kind}s").glob("*.yaml")):
        lines.append(f"| [{path.stem}]({kind}s/{path.name}) | {_first_sentence(path)} |")
    return "\n".join(lines)


def _first_sentence(path: Path) -> str:
    """The first sentence of the comment that a preset begins with."""
    block = re.match(r"(?:#.*\n)*", path.read_text(encoding="utf-8"))
    text = " ".join(line.lstrip("# ") for line in block[0].splitlines()) if block else ""
    sentence = re.match(r".*?\.(?=\s+[A-Z]|\s+snakemake|$)", text)
    return sentence[0] if sentence else text


if __name__ == "__main__":
    main()
