"""Turns pydantic's errors into messages that name file, key, value and remedy."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from qdsweep.config.algorithm import REFUSED
from qdsweep.config.base import Model
from qdsweep.config.files import nearest
from qdsweep.config.keys import Path, dotted, key_paths


def explain(
    error: ValidationError,
    model: type[Model],
    data: Any,
    sources: Mapping[Path, str],
) -> str:
    """One line for each thing that is wrong.

    Args:
        error: What pydantic raised.
        model: The model that `data` was checked with.
        data: The raw values.
        sources: The source of each value, by path; `()` for everything else.
    """
    known = [path for path, _ in key_paths(model, data)]
    return "\n".join(_line(detail, data, sources, known) for detail in error.errors())


def _line(detail: ErrorDetails, data: Any, sources: Mapping[Path, str], known: list[Path]) -> str:
    kind, message = detail["type"], detail["msg"]
    path = _real_path(detail["loc"], data, absent=kind == "missing")
    place = f"{_source(path, sources)}: "
    if kind == "extra_forbidden":
        siblings = [str(p[-1]) for p in known if p[:-1] == path[:-1]] or [str(p[-1]) for p in known]
        hint = nearest(str(path[-1]), siblings)
        return f"{place}unknown key {dotted(path)}; {hint}known here: {', '.join(siblings)}"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        context = detail.get("ctx", {})
        named = detail["input"].get("type") if isinstance(detail["input"], dict) else None
        where = dotted((*path, "type"))
        if named is None:
            return f"{place}the key {where} is missing"
        if named in REFUSED:
            return f"{place}{where} = {named!r}: {REFUSED[named]}"
        options = re.findall(r"'(\w+)'", str(context.get("expected_tags", "")))
        kinds = ", ".join(option for option in options if option != "plugin")
        own = " or a module:Class of yours" if "plugin" in options else ""
        return f"{place}{where} = {named!r}: {nearest(named, options)}known: {kinds}{own}"
    if kind == "missing":
        return f"{place}the key {dotted(path)} is missing"
    message = message.removeprefix("Value error, ").removeprefix("Input should be ")
    if kind in ("value_error", "assertion_error"):
        prefix = f"{dotted(path)}: " if path and dotted(path) not in message else ""
        return f"{place}{prefix}{message}"
    if kind == "literal_error" and isinstance(detail["input"], str):
        options = [part.strip("' ") for part in message.replace(" or ", ", ").split(",")]
        hint = nearest(detail["input"], options)
        return f"{place}{dotted(path)} = {detail['input']!r}: {hint}should be {message}"
    return f"{place}{dotted(path)} = {detail['input']!r}: should be {message}"


def _real_path(loc: tuple[int | str, ...], data: Any, *, absent: bool) -> Path:
    """Pydantic's location without the tags of unions, which the user never wrote.

    Args:
        loc: The location.
        data: The raw values.
        absent: Whether the last part is a key that `data` lacks.
    """
    path: list[int | str] = []
    node = data
    for index, part in enumerate(loc):
        last = index == len(loc) - 1
        if isinstance(node, dict) and part in node:  # noqa: SIM114 - mypy needs two branches
            node = node[part]
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            node = node[part]
        elif not (last and absent):
            continue
        path.append(part)
    return tuple(path)


def _source(path: Path, sources: Mapping[Path, str]) -> str:
    """The source of the value, or of the part that it stands in."""
    for length in range(len(path), 0, -1):
        found = {source for key, source in sources.items() if key[:length] == path[:length]}
        if found:
            return " + ".join(sorted(found))
    return sources.get((), " + ".join(dict.fromkeys(sources.values())) or "config")
