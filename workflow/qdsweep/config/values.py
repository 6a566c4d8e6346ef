"""The types of a sweep's values: those of the YAML 1.2 core schema."""

import json
import math
import re
from typing import Any

from qdsweep.config.files import LONGEST_INT
from qdsweep.errors import BadInput

Value = int | float | bool | str | list["Value"] | None

_NAMED = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~"), None),
}
_INT = re.compile(r"[-+]?[0-9]+")
_PREFIXED_INT = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_ITEM = re.compile(r"""'([^']*)'|"([^"]*)"|([^][,'"\s][^][,'"]*)""")
_BLANKS = re.compile(r"\s*")


def typed(value: str) -> Value:
    """Returns a value of a sweep with its type.

    An int (`3`, `0x1f`, `0o17`), a float (`0.5`, `1e-3`, `.inf`, `.nan`), `true`, `false`,
    `null` (or `~`), or a `[...]` list of these, of lists and of texts. Everything else is text,
    also `no`, `on`, `1:30`, `1_000`, a date and the empty value. In a list, quotes keep a text
    as it is (`['1', 'a, b']`); what only looks like a list (`[a`, `[a][b]`) is text.

    Args:
        value: The value as it was written, without the shell's quotes.

    Returns:
        The typed value, e.g. `[1, [0.001, "a"]]` for `[1, [1e-3, a]]`.
    """
    try:
        if value.startswith("["):
            whole = _list(value, 1)
            return whole[0] if whole and whole[1] == len(value) else value
        return _scalar(value)
    except (RecursionError, ValueError):
        raise BadInput(
            f"the value {value[:40]}...: its lists are nested too deep, or a number has more than "
            f"the {LONGEST_INT} digits that are allowed"
        ) from None


def _scalar(value: str) -> int | float | bool | str | None:
    if value in _NAMED:
        return _NAMED[value]
    if len(value) > LONGEST_INT and (_INT.fullmatch(value) or _PREFIXED_INT.fullmatch(value)):
        raise ValueError
    if _INT.fullmatch(value):
        return int(value)
    if _PREFIXED_INT.fullmatch(value):
        return int(value, base=0)
    if _FLOAT.fullmatch(value):
        return float(value)
    if _NOT_FINITE.fullmatch(value):
        return float(value.replace(".", ""))
    return value


def _list(text: str, at: int) -> tuple[list[Value], int] | None:
    """Returns the items after a `[`, and the place after its `]`; None if it is no list."""
    items: list[Value] = []
    while True:
        at = _past_blanks(text, at)
        if text.startswith("]", at):
            return items, at + 1
        if text.startswith("[", at):
            inner = _list(text, at + 1)
            if inner is None:
                return None
            items.append(inner[0])
            at = inner[1]
        elif match := _ITEM.match(text, at):
            plain = match[3]
            items.append(_scalar(plain.rstrip()) if plain else match[1] or match[2] or "")
            at = match.end()
        else:
            return None
        at = _past_blanks(text, at)
        if text.startswith(",", at):
            at += 1
        elif not text.startswith("]", at):
            return None


def _past_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at


def value_text(value: Any) -> str:
    """Returns a swept value as a user types it in a sweep."""
    if isinstance(value, str):
        return value
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return repr(value)  # as json does, in a fifth of its time: rows are many
    return json.dumps(value)
