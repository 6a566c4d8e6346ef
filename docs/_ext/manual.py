"""Generates config/README.md, docs/reference/ and the JSON schemas, from the models and manual.md.

`make schemas` runs it. A test checks that the files are up to date.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml

from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.config.files import HOME, PRESET_FOLDER
from qdsweep.config.keys import ALIASED
from qdsweep.config.model import Model
from qdsweep.config.search import Search
from qdsweep.config.sweep import SweepFile
from qdsweep.features.imported.description import Imported
from qdsweep.sweep.ids import run_id
from qdsweep.text import listed

SCHEMAS: dict[str, type[Model]] = {"experiment": Experiment, "cluster": Cluster}
# The pages of docs/reference/, and their content for the tables of pages.
REFERENCE = {
    "sweep_notation": "how to write a sweep: operators, names, values, drawn values",
    "sweep_file": "the keys of `config.yaml`: runs, report, published and imported results",
    "experiment": "the keys of an experiment; composition, schedules, run ids",
    "domains": "the keys of each type of domain, of measures and of policies",
    "algorithms": "the keys of algorithms, archives, emitters and schedulers",
    "searches": "the key `search`: halving, Hyperband, TPE, population-based training",
    "cluster_file": "the keys of a cluster file, and the engines",
    "presets": "the files of `config/` that come with qdsweep",
}
# Keys whose own keys are on a page of the reference.
_PAGE_OF = {
    (SweepFile, "experiment"): "experiment",
    (SweepFile, "search"): "searches",
    (SweepFile, "cluster"): "cluster_file",
    (Experiment, "domain"): "domains",
    (Experiment, "algorithm"): "algorithms",
}
# Parts that have a `type`, and the word for such a part.
_PARTS = {
    "domain": "domain",
    "domain.policy": "policy",
    "algorithm": "algorithm",
    "algorithm.archive": "archive",
    "algorithm.emitters.N": "emitter",
    "algorithm.scheduler": "scheduler",
    "resampling": "resampling",
}
# Types and limits of JSON schemas, in words.
_KINDS = {"boolean": "true or false", "string": "text", "object": "mapping"}
_LIMITS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}

Node = dict[str, Any]  # a part of a JSON schema
Row = tuple[str, ...]  # the cells of a key: name, type, default, meaning, mid-run


def main() -> None:
    """Writes the files."""
    for path, text in files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def files() -> dict[Path, str]:
    """Returns every generated file of the clone and its content."""
    made = pages()
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    for name, model in SCHEMAS.items():
        schema = model.model_json_schema()
        schema["description"] = schema["description"].partition("\n\nExample:")[0]  # in Python
        text = json.dumps(head | schema, indent=2) + "\n"
        made[HOME / f"workflow/schemas/{name}.schema.json"] = text
    # Snakemake's workflow catalogue looks for a file of this name, and does not follow references.
    schema = head | _filled(SweepFile.model_json_schema())
    text = yaml.safe_dump(schema, sort_keys=False, allow_unicode=True, width=100)
    made[HOME / "workflow/schemas/config.schema.yaml"] = text
    return made


def pages() -> dict[Path, str]:
    """Returns the pages of manual.md with their {parts} filled in."""
    source = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    _, *split = re.split(r"^<!-- page (\S+) -->\n", source, flags=re.M)
    texts = {HOME / name: text for name, text in zip(split[::2], split[1::2], strict=True)}
    parts = {
        "example_id": run_id(compose("lunar_lander")),
        "sweep": _table(_rows(SweepFile)),
        "imported": _table(_rows(Imported)),
        "experiment": _table(_rows(Experiment)),
        "search": _table(_rows(Search, "search.")),
        "cluster": _table(_rows(Cluster)),
        **{key: _part(key, types) for key, types in _types_of_parts().items()},
        **{f"presets {kind}": _presets(kind) for kind in ("experiment", "domain", "algorithm")},
        **{f"presets {kind}": _presets(kind) for kind in ("sweep", "cluster")},
    }
    made = {}
    for page, text in texts.items():
        parts["pages"] = _pages(texts, page.parent)
        for name, part in parts.items():
            text = text.replace(f"{{{name}}}", part)
        note = "<!-- `make schemas` generates this file from docs/_ext/manual.md. -->"
        made[page] = f"{note}\n{text}"
    return made


def _pages(texts: Mapping[Path, str], folder: Path) -> str:
    """Returns the table of the pages of the reference, with links from `folder`."""
    lines = ["| page | content |", "|---|---|"]
    for name, content in REFERENCE.items():
        page = HOME / f"docs/reference/{name}.md"
        title = texts[page].partition("\n")[0].removeprefix("# ")
        lines.append(f"| [{title}]({os.path.relpath(page, folder)}) | {content} |")
    return "\n".join(lines)


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


def _rows(model: type[Model], prefix: str = "") -> Iterator[Row]:
    """Yields the rows of a model; keys with a page of their own have a link to it."""
    apart = {key: page for (owner, key), page in _PAGE_OF.items() if owner is model}
    yield from _rows_in(_schema(model), prefix, apart)


def _rows_in(model: Node, prefix: str, apart: Mapping[str, str] | None = None) -> Iterator[Row]:
    for name, node in model["properties"].items():
        if "const" in node:
            continue
        page, key = (apart or {}).get(name), f"{prefix}{name}"
        kind = _words(node)
        if page:
            kind = re.sub(r"mapping.*?(?= or null|$)", "mapping", kind)
            kind = f"a preset's name or a {kind}" if name in _PARTS else kind
            kind += f" ([keys]({page}.md))"
        shown = f"`{ALIASED[key]}` or `{key}`" if key in ALIASED else f"`{key}`"
        cells = (shown, kind, _default(node), node["description"], str(node.get("mid_run", "")))
        yield tuple(cell.replace("|", "\\|") for cell in cells)
        inner = _models(node)
        if len(inner) == 1 and not page and "const" not in inner[0]["properties"].get("type", {}):
            yield from _rows_in(inner[0], f"{key}{_number(node)}.")


def _types_of_parts() -> dict[str, dict[str, Node]]:
    """Returns the types of each part that has several: key -> type -> model."""
    parts: dict[str, dict[str, Node]] = {}

    def collect(key: str, node: Node) -> None:
        models = _models(node)
        if len(models) > 1:
            parts.setdefault(key, {}).update({_type(model): model for model in models})
        for model in models:
            for name, inner in model["properties"].items():
                collect(f"{key}.{name}{_number(inner)}", inner)

    for name in ("domain", "algorithm", "resampling"):
        collect(name, _schema(Experiment)["properties"][name])
    return parts


def _part(key: str, types: Mapping[str, Node]) -> str:
    """Returns the tables of a part: the keys that several types have, then those of each type."""
    word = _PARTS[key]
    rows = {name: list(_rows_in(model, f"{key}.")) for name, model in types.items()}
    owners: dict[Row, list[str]] = {}
    for name, own in rows.items():
        for row in own:
            owners.setdefault(row, []).append(name)
    shared = {row: _some(names, types) for row, names in owners.items() if len(names) > 1}
    texts = []
    if shared:
        texts += [f"### Keys of several types of {word}", _table(shared, "types", shared.values())]
    for name, model in types.items():
        title = f"{word.capitalize()} `{name}`" if name else f"{word.capitalize()} without a type"
        texts += [f"### {title}", " ".join(model["text"].split())]
        if own := [row for row in rows[name] if row not in shared]:
            texts.append(_table(own))
        keys = [row[0].replace(f"{key}.", "") for row in rows[name] if row in shared]
        if keys := [name for name in keys if "." not in name]:
            texts.append(f"Further keys, in the first table: {', '.join(keys)}.")
    return "\n\n".join(texts)


def _some(names: list[str], types: Iterable[str]) -> str:
    """Returns some of the types of a part, as text."""
    others = [name for name in types if name not in names]
    if len(others) > 1:
        return ", ".join(f"`{name}`" for name in names)
    return " except ".join(["all", *(f"`{name}`" if name else "without a type" for name in others)])


def _table(rows: Iterable[Row], heading: str = "", further: Iterable[str] = ()) -> str:
    """Returns rows as a table, with a further column if it has a heading."""
    cells = list(rows)
    width = 5 if any(row[4] for row in cells) else 4
    columns = [
        *("key", "type", "default", "meaning", "mid-run")[:width],
        *[heading] * bool(heading),
    ]
    last = [[text] for text in further] or [[]] * len(cells)
    lines = [[*row[:width], *end] for row, end in zip(cells, last, strict=True)]
    return "\n".join(
        f"| {' | '.join(line)} |" for line in [columns, ["---"] * len(columns), *lines]
    )


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
    if "const" in node.get("properties", {}).get("type", {}):
        return f"mapping, type {_listed([_type(node)])}"
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
        keys = node.get("properties", {})  # of a union, the other keys have their own defaults
        shown = {key: "null" if of is None else of for key, of in value.items()}
        items = [f"{key}: {shown[key]}" for key in value if _differs(value, key, keys)]
        return f"`{{{', '.join(items)}}}`" if items else ""
    return f"`{value}`" if isinstance(value, str) and value else f"`{json.dumps(value)}`"


def _differs(value: Node, key: str, keys: Node) -> bool:
    return key == "type" or (key in keys and value[key] != keys[key].get("default"))


def _type(model: Node) -> str:
    """Returns the `type` that chooses a model of several; empty for a model without one."""
    node = model["properties"].get("type")
    if node is None:
        return ""
    kind = node.get("const", "module:Class")
    return "null" if kind is None else str(kind)


def _presets(kind: str) -> str:
    """Returns a table of the presets of a kind, with the first sentence of their comments."""
    lines = [f"| {kind} | content |", "|---|---|"]
    for path in sorted((PRESET_FOLDER / f"{kind}s").glob("*.yaml")):
        content = path.read_text(encoding="utf-8").splitlines()
        comment = takewhile(lambda line: line.startswith("#"), content)
        text = " ".join(line.lstrip("# ") for line in comment)
        sentence, *_ = re.split(r"(?<=\.)\s+(?=[A-Z]|snakemake)", text, maxsplit=1)
        lines.append(f"| [{path.stem}](../../config/{kind}s/{path.name}) | {sentence} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
