"""Messages for pydantic's errors: they name file, key, value and remedy."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from qdsweep.config.keys import Path, aliases_in, dotted, key_paths, with_alias
from qdsweep.config.model import TARGET
from qdsweep.config.refused import ALGORITHMS, EMITTERS
from qdsweep.errors import BadInput
from qdsweep.text import nearest, quoted

# Tags of models that no user writes as a `type`.
_UNWRITTEN = ("plugin", "module:Class", "composition")
# Values of keys that most algorithms have in common.
_COMMON = {"algorithm.archive": "{type: grid}", "algorithm.emitters": "[{type: gaussian}]"}


def explain(
    error: ValidationError,
    model: Any,
    data: Any,
    sources: Mapping[Path, str],
) -> str:
    """Returns one line for each error.

    Args:
        error: What pydantic raised.
        model: The model, or the union of models, that `data` was checked with.
        data: The raw values.
        sources: The source of each value, by path; `()` for everything else.
    """
    known = [path for path, _ in key_paths(model, data)]
    lines = [_line(detail, data, sources, known) for detail in error.errors()]
    # Each branch of a union has its own error: they become one line.
    joined: dict[str, list[str]] = {}
    for line, expectation in lines:
        expectations = joined.setdefault(line, [])
        if expectations:
            expectation = expectation.removeprefix("should ").removeprefix("be ")
        if expectation and expectation not in expectations:
            expectations.append(expectation)
    return "\n".join(
        line + " or ".join(expectations) for line, expectations in joined.items() if line
    )


def _line(
    detail: ErrorDetails, data: Any, sources: Mapping[Path, str], known: list[Path]
) -> tuple[str, str]:
    """Returns what is wrong, and what the value should be if it has a wrong type."""
    kind, message, value = detail["type"], detail["msg"], detail["input"]
    path = _real_path(detail["loc"], data, absent=kind == "missing")
    place = f"{_source(path, sources)}: "
    if kind == "extra_forbidden":
        if path[:-1] in known:  # a mapping that is one key, such as the origin of a preset
            return f"{place}unknown key {dotted(path)}; leave it out", ""
        known_keys = [p[len(path) - 1] for p in known if p[: len(path) - 1] == path[:-1]]
        siblings = [str(key) for key in dict.fromkeys(known_keys)]
        siblings += [name for name, key in aliases_in(path[:-1]).items() if key in siblings]
        if not siblings:  # another line reports the wrong type of the part
            return "", ""
        hint = nearest(str(path[-1]), siblings)
        if "arguments" in siblings:  # the part is the user's own code
            argument = f"arguments: {{{path[-1]}: {quoted(value)}}}"
            hint += f"for an argument of its class, write {argument}; "
        return f"{place}unknown key {dotted(path)}; {hint}known here: {', '.join(siblings)}", ""
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return f"{place}{_wrong_type(path, value, detail.get('ctx', {}))}", ""
    if kind == "missing" and isinstance(path[-1], str):
        common = _COMMON.get(dotted(path))
        hint = f"; write, for example, {path[-1]}: {common}" if common else ""
        return f"{place}the key {dotted(path)} is missing{hint}", ""
    if kind in ("value_error", "assertion_error"):
        message = message.removeprefix("Value error, ")
        prefix = f"{dotted(path)}: " if path and dotted(path) not in message else ""
        return f"{place}{prefix}{message}", ""
    if kind == "missing":  # an item of a list of fixed length
        return f"{place}{dotted(path[:-1])} = {quoted(value)}: ", "should have more items"
    pattern = str(detail.get("ctx", {}).get("pattern"))
    if kind == "string_pattern_mismatch" and pattern.startswith(TARGET):
        hint = f" ({form.strip()})" if (form := _with_colon(value)) else ""
        message = f"should be module:name{hint}"
        if pattern != TARGET:
            message += " or the name of a class of gymnasium.wrappers"
        return f"{place}{dotted(path)} = {quoted(value)}: ", message
    message = re.sub(r"^\w+ should ", "should ", message).replace(" after validation", "")
    message = message.replace("a valid array", "a list").replace("an object", "a mapping")
    if kind == "string_type" and isinstance(value, int | float):
        message = "should be text in quotes"
    if kind == "literal_error" and isinstance(value, str):
        options = re.findall(r"'([^']*)'", message)
        message = nearest(value, options) + message
    return f"{place}{with_alias(path)} = {quoted(value)}: ", message


def _wrong_type(path: Path, value: Any, context: Mapping[str, Any]) -> str:
    """Returns the message for a part with an unknown `type`."""
    named = value.get("type") if isinstance(value, dict) else None
    where = dotted((*path, "type"))
    if not isinstance(value, dict):
        return f"{dotted(path)} = {quoted(value)}: should be a mapping with the key type"
    if named is None:
        return f"the key {where} is missing"
    if not isinstance(named, str):
        return f"{where} = {quoted(named)}: should be text"
    if reason := {**EMITTERS, **ALGORITHMS}.get(named.lower()):
        return f"{where} = {quoted(named)}: {reason}"
    options = re.findall(r"'([\w:]+)'", str(context.get("expected_tags", "")))
    kinds = [option for option in options if option not in _UNWRITTEN]
    own = " or your own module:Class" if set(options) & {"plugin", "module:Class"} else ""
    hint = (own and _with_colon(named)) or nearest(named, kinds) or "not installed; "
    return f"{where} = {quoted(named)}: {hint}installed: {', '.join(kinds)}{own}"


def _with_colon(name: str) -> str:
    """Returns "did you mean ...? " for a `module:name` that is written without its colon."""
    form = re.sub(r"(\.|/|::)(?=\w+$)", ":", name)
    return f"did you mean {form!r}? " if form != name and re.fullmatch(TARGET, form) else ""


def _real_path(loc: tuple[int | str, ...], data: Any, *, absent: bool) -> Path:
    """Returns pydantic's location without the tags of unions, which the user never wrote.

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
    """Returns the source of a value, or of the part that it belongs to."""
    for length in range(len(path), 0, -1):
        names = {source for key, source in sources.items() if key[:length] == path[:length]}
        if names:
            return " + ".join(sorted(names))
    return sources.get((), " + ".join(dict.fromkeys(sources.values())) or "config")


@contextlib.contextmanager
def naming_file(sources: Mapping[Path, str], key: str) -> Iterator[None]:
    """Puts the file of a key of the sweep, from `key_sources`, before what is wrong with it."""
    try:
        yield
    except BadInput as error:
        where = sources.get((key,), sources.get((), ""))
        raise BadInput(f"{where}: {error}" if where else str(error)) from None
