"""Makes the JSON schemas and the manual, config/README.md, from the models and manual.md.

`make schemas` runs it; a test checks that the files are up to date.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml

from qdsweep.config.base import Model
from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.config.domain import DomainConfig
from qdsweep.config.experiment import Experiment
from qdsweep.config.files import HOME, PRESETS
from qdsweep.config.imported import Imported
from qdsweep.config.sweep import SweepFile
from qdsweep.sweep.ids import run_id
from qdsweep.text import listed

SCHEMAS: dict[str, type[Model]] = {"experiment": Experiment, "cluster": Cluster}
# Types and limits of JSON schemas, in words.
_KINDS = {"boolean": "true or false", "string": "text", "object": "mapping"}
_LIMITS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}

Node = dict[str, Any]  # a part of a JSON schema


def main() -> None:
    """Writes the files."""
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")


def files() -> dict[Path, str]:
    """Returns every generated file of the clone and its content."""
    made = {PRESETS / "README.md": manual()}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    for name, model in SCHEMAS.items():
        text = json.dumps(head | model.model_json_schema(), indent=2) + "\n"
        made[HOME / f"workflow/schemas/{name}.schema.json"] = text
    # Snakemake's workflow catalogue looks for a file of this name, and does not follow references.
    schema = head | _filled(SweepFile.model_json_schema())
    text = yaml.safe_dump(schema, sort_keys=False, allow_unicode=True, width=100)
    made[HOME / "workflow/schemas/config.schema.yaml"] = text
    return made


def manual() -> str:
    """Returns the manual: manual.md with its {parts} filled in."""
    text = Path(__file__).with_name("manual.md").read_text(encoding="utf-8")
    experiment, domain = _schema(Experiment), _schema(DomainConfig)
    domains = _types(experiment["properties"]["domain"], "domain", domain)
    composition, *others = _models(experiment["properties"]["algorithm"])
    families = _types({"anyOf": others}, "algorithm", composition)
    for name, part in {
        "example_id": [run_id(compose("lunar_lander"))],
        "presets": map(_presets, ("experiment", "domain", "algorithm", "sweep")),
        "sweep": _tables(_schema(SweepFile)),
        "experiment": [_table(_rows(experiment))],
        "domain": [*_tables(domain, "domain."), *domains],
        "algorithm": [*_tables(composition, "algorithm."), *families],
        "cluster": _tables(_schema(Cluster)),
        "imported": _tables(_schema(Imported)),
    }.items():
        text = text.replace(f"{{{name}}}", "\n\n".join(part))
    return text


def _schema(model: type[Model]) -> Node:
    """Returns the JSON schema with every reference filled in; `text` is a model's docstring."""
    return {"properties": _filled(model.model_json_schema(), text=True)["properties"]}


def _filled(schema: Node, *, text: bool = False) -> Node:
    """Returns a JSON schema with every reference filled in.

    Args:
        schema: The schema.
        text: Whether the docstring of a key's model is kept as `text`, next to the description of
            the key.
    """

    def filled(node: Node) -> Node:
        return dict(json.loads(json.dumps(node), object_hook=fill))

    def fill(node: Node) -> Node:
        if "$ref" not in node:
            return node
        part = filled(definitions[node["$ref"].rsplit("/", 1)[-1]])
        own = {key: value for key, value in node.items() if key != "$ref"}
        return part | ({"text": part["description"]} if text else {}) | own

    definitions = schema.get("$defs", {})
    return filled({key: value for key, value in schema.items() if key != "$defs"})


def _tables(model: Node, prefix: str = "", base: Node | None = None) -> Iterator[str]:
    """Yields the table of a model's keys, then what each type of a key adds."""
    if own := list(_rows(model, prefix, base)):
        yield _table(own)
    for name, node in model["properties"].items():
        inner = _models(node)
        if len(inner) > 1 and not (base and inner == _models(base["properties"].get(name, {}))):
            yield from _types(node, f"{prefix}{name}{_number(node)}")


def _types(node: Node, key: str, base: Node | None = None) -> Iterator[str]:
    """Yields heading and tables of each type of a key, without the keys that `base` has too."""
    for model in _models(node):
        yield f"#### `{key}.type: {_type(model)}`\n\n{' '.join(model['text'].split())}"
        yield from _tables(model, f"{key}.", base)


def _rows(model: Node, prefix: str = "", base: Node | None = None) -> Iterator[list[str]]:
    """Yields dotted key, type, default, description and mid_run of each key not in `base`."""
    for name, node in model["properties"].items():
        if (base and node == base["properties"].get(name)) or "const" in node:
            continue
        preset = not prefix and name in ("domain", "algorithm")  # they have separate tables
        kind = "a preset's name, or a mapping" if preset else _words(node)
        mid_run = str(node.get("mid_run", ""))
        cells = (f"`{prefix}{name}`", kind, _default(node), node["description"], mid_run)
        yield [cell.replace("|", "\\|") for cell in cells]
        inner = _models(node)
        if len(inner) == 1 and not preset:
            yield from _rows(inner[0], f"{prefix}{name}{_number(node)}.")


def _table(rows: Iterable[list[str]]) -> str:
    cells = list(rows)
    changes = any(row[4] for row in cells)
    lines = ["| key | type | default | |" + " mid-run |" * changes, "|---" * (4 + changes) + "|"]
    lines += [f"| {' | '.join(row[: 4 + changes])} |" for row in cells]
    return "\n".join(lines)


def _words(node: Node) -> str:
    """Returns a type in words, such as "integer >= 1 or null"."""
    if "prefixItems" in node:
        return "[lower, upper]"
    if "items" in node:
        return "list of " + re.sub(r"^(integer|number|mapping)", r"\1s", _words(node["items"]))
    if "enum" in node:
        return _listed(node["enum"])
    if "oneOf" in node:
        return f"mapping, type {_listed(map(_type, node['oneOf']))}"
    if "anyOf" in node:
        return " or ".join(sorted(map(_words, node["anyOf"]), key="null".__eq__))
    limits = [f"{sign} {_short(node[key])}" for key, sign in _LIMITS.items() if key in node]
    return f"{_KINDS.get(node['type'], node['type'])} {', '.join(limits)}".rstrip()


def _short(limit: float) -> str:
    return f"2^{int(limit).bit_length() - 1}" if limit in (2**32, 2**63) else str(limit)


def _models(node: Node) -> list[Node]:
    """Returns the models that a key may be or hold."""
    if "properties" in node:
        return [node]
    inner = node.get("oneOf") or node.get("anyOf") or ([node["items"]] if "items" in node else [])
    return [model for part in inner for model in _models(part)]


def _number(node: Node) -> str:
    return ".N" if node.get("type") == "array" else ""


def _listed(values: Iterable[Any]) -> str:
    return listed([f"`{value}`" for value in values], "or")


def _default(node: Node) -> str:
    if "default" not in node:
        return "*required*"
    value = node["default"]
    if value and _models(node):
        return f"`{{type: {value['type']}}}`" if "type" in value else ""
    return f"`{value}`" if isinstance(value, str) and value else f"`{json.dumps(value)}`"


def _type(model: Node) -> str:
    """Returns the `type` that chooses a model of several."""
    return str(model["properties"]["type"].get("const", "module:Class"))


def _presets(kind: str) -> str:
    """Returns a table of the presets of a kind, with the first sentence of their comments."""
    lines = [f"| {kind} | |", "|---|---|"]
    for path in sorted((PRESETS / f"{kind}s").glob("*.yaml")):
        content = path.read_text(encoding="utf-8").splitlines()
        comment = takewhile(lambda line: line.startswith("#"), content)
        text = " ".join(line.lstrip("# ") for line in comment)
        sentence, *_ = re.split(r"(?<=\.)\s+(?=[A-Z]|snakemake)", text, maxsplit=1)
        lines.append(f"| [{path.stem}]({kind}s/{path.name}) | {sentence} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
