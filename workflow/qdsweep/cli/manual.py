"""Makes the JSON schemas and the manual, config/README.md, from the models and manual.md.

`make schemas` runs it; a test holds what it makes equal to the files.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from qdsweep.config.base import Model
from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.config.domain import DomainConfig
from qdsweep.config.experiment import Experiment
from qdsweep.config.files import CLONE
from qdsweep.config.sweep import SweepFile
from qdsweep.sweep.ids import run_id

SCHEMAS: dict[str, type[Model]] = {
    "experiment": Experiment,
    "cluster": Cluster,
    "sweep": SweepFile,
}
_KINDS = {
    "boolean": "true or false",
    "integer": "integer",
    "number": "number",
    "string": "text",
    "object": "mapping",
    "null": "null",
}
_LIMITS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}

Node = dict[str, Any]  # of a JSON schema
Row = tuple[str, str, str, str]


def main() -> None:
    """Writes the files."""
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def files() -> dict[Path, str]:
    """Returns every generated file of the clone and its content."""
    schemas = CLONE.parent / "workflow/schemas"
    made = {schemas / f"{name}.schema.json": schema(model) for name, model in SCHEMAS.items()}
    return {**made, CLONE / "README.md": manual()}


def schema(model: type[Model]) -> str:
    """Returns the JSON schema of a model; for an experiment, of the composed one."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(head | model.model_json_schema(), indent=2) + "\n"


def manual() -> str:
    """Returns the manual: manual.md with its {parts} filled in."""
    text = Path(__file__).with_name("manual.md").read_text(encoding="utf-8")
    domain = _whole(DomainConfig)
    experiment = _whole(Experiment)
    domains = _of_types(experiment["properties"]["domain"], "domain.", domain)
    composition, *families = _models(experiment["properties"]["algorithm"])
    for name, part in {
        "example_id": run_id(compose("lunar_lander")),
        "presets": "\n\n".join(map(_presets, ("experiment", "domain", "algorithm", "sweep"))),
        "sweep": table(rows(_whole(SweepFile))),
        "experiment": table(rows(experiment)),
        "domain": "\n\n".join([table(rows(domain, "domain.")), *domains]),
        "algorithm": "\n\n".join(
            [
                table(rows(composition, "algorithm.")),
                *_inner_types(composition, "algorithm."),
                *(_of_types({"anyOf": families}, "algorithm.", composition) if families else ()),
            ]
        ),
        "cluster": table(rows(_whole(Cluster))),
    }.items():
        text = text.replace(f"{{{name}}}", part)
    return text


def rows(model: Node, prefix: str = "", base: Node | None = None) -> Iterator[Row]:
    """Yields a row for each key: dotted key, type, default, description.

    Args:
        model: The model. The domain, the algorithm and each `type` have tables of their own.
        prefix: What stands before its keys.
        base: A model whose table has the keys that are the same there.
    """
    for name, node in model["properties"].items():
        if (base and node == base["properties"].get(name)) or "const" in node:
            continue
        preset = not prefix and name in ("domain", "algorithm")
        kind = "a preset's name, or a mapping" if preset else words(node)
        yield f"{prefix}{name}", kind, _default(node), node["description"]
        inner = _models(node)
        if len(inner) == 1 and not preset:
            yield from rows(inner[0], f"{prefix}{name}{_number(node)}.")


def _of_types(node: Node, prefix: str, base: Node | None = None) -> Iterator[str]:
    """Yields a heading and a table for each type that a key may have."""
    for model in _models(node):
        yield f"#### `{prefix}type: {_type(model)}`\n\n{' '.join(model['text'].split())}"
        own = list(rows(model, prefix, base))
        if own:
            yield table(own)
        yield from _inner_types(model, prefix)


def _inner_types(model: Node, prefix: str) -> Iterator[str]:
    for name, node in model["properties"].items():
        if len(_models(node)) > 1:
            yield from _of_types(node, f"{prefix}{name}{_number(node)}.")


def table(lines: Iterable[Row]) -> str:
    """Returns a Markdown table of keys."""
    head = "| key | type | default | |\n|---|---|---|---|"
    escaped = (tuple(cell.replace("|", "\\|") for cell in line) for line in lines)
    return "\n".join([head, *(f"| `{key}` | {' | '.join(rest)} |" for key, *rest in escaped)])


def words(node: Node) -> str:
    """Returns a type in words, such as "integer >= 1 or null"."""
    if "prefixItems" in node:
        return "[lower, upper]"
    if "items" in node:
        return "list of " + re.sub(r"^(integer|number|mapping)", r"\1s", words(node["items"]))
    if "enum" in node:
        return _listed(node["enum"])
    if "oneOf" in node:
        return f"mapping, type {_listed(map(_type, node['oneOf']))}"
    if "anyOf" in node:
        parts = sorted(node["anyOf"], key=lambda part: part.get("type") == "null")
        return " or ".join(map(words, parts))
    limits = [f"{sign} {_short(node[key])}" for key, sign in _LIMITS.items() if key in node]
    return f"{_KINDS[node['type']]} {', '.join(limits)}".rstrip()


def _short(number: float) -> str:
    power = int(number).bit_length() - 1
    return f"2^{power}" if power >= 32 and number == 2**power else str(number)


def _whole(model: type[Model]) -> Node:
    """Returns the JSON schema with every reference filled in; `text` is a model's docstring."""
    schema = model.model_json_schema()
    parts = schema.get("$defs", {})

    def fill(node: Any) -> Any:
        if isinstance(node, list):
            return [fill(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            part = parts[node["$ref"].rsplit("/", 1)[-1]]
            node = part | {"text": part["description"]} | node
        return {key: fill(item) for key, item in node.items() if key not in ("$ref", "$defs")}

    whole: Node = fill(schema)
    return whole


def _models(node: Node) -> list[Node]:
    """Returns the models that a key may be or hold."""
    if "properties" in node:
        return [node]
    inner = (
        node.get("oneOf") or node.get("anyOf") or [node[key] for key in ("items",) if key in node]
    )
    return [model for part in inner for model in _models(part)]


def _number(node: Node) -> str:
    return ".N" if node.get("type") == "array" else ""


def _listed(values: Iterable[Any]) -> str:
    *most, last = [f"`{value}`" for value in values]
    return f"{', '.join(most)} or {last}" if most else last


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
    """Returns a table of the presets of a kind."""
    lines = [f"| {kind} | |", "|---|---|"]
    for path in sorted((CLONE / f"{kind}s").glob("*.yaml")):
        lines.append(f"| [{path.stem}]({kind}s/{path.name}) | {_first_sentence(path)} |")
    return "\n".join(lines)


def _first_sentence(path: Path) -> str:
    """Returns the first sentence of the comment that a preset begins with."""
    block = re.match(r"(?:#.*\n)*", path.read_text(encoding="utf-8"))
    text = " ".join(line.lstrip("# ") for line in block[0].splitlines()) if block else ""
    sentence = re.match(r".*?\.(?=\s+[A-Z]|\s+snakemake|$)", text)
    return sentence[0] if sentence else text


if __name__ == "__main__":
    main()
