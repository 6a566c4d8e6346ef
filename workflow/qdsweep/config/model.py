"""The base of all config models (strict, immutable, documented), and the types of swept values."""

import contextlib
import json
import math
import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, get_args

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, JsonValue, Tag

from qdsweep.config.files import FLOAT, INT, LONGEST_INT, NOT_FINITE, PREFIXED_INT
from qdsweep.errors import BadInput

# `json_schema_extra` of a key that a schedule can change while a run lasts. The change acts at
# once, or from the next restart of each emitter on. A key without it never changes.
NOW: dict[str, JsonValue] = {"mid_run": "now"}
RESTART: dict[str, JsonValue] = {"mid_run": "restart"}

# A float whose default is 0. A run's id leaves defaults out, so that -0.0 must be this default.
FromZero = Annotated[float, AfterValidator(lambda value: value + 0.0)]
TARGET = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"
"""The form of a `type` that names the user's code: `module:name`."""
Value = int | float | bool | str | list["Value"] | None
_NAMED = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~"), None),
}
_ITEM = re.compile(r"""'([^']*)'|"([^"]*)"|([^][,'"\s][^][,'"]*)""")
_QUOTED = re.compile(r"'([^']|'')*'|\"([^\"\\]|\\.)*\"")
_BLANKS = re.compile(r"\s*")

_INT, _PREFIXED_INT, _FLOAT, _NOT_FINITE = map(re.compile, (INT, PREFIXED_INT, FLOAT, NOT_FINITE))


class Model(BaseModel):
    """A config model. It refuses unknown keys and values of another type.

    Every field has a `description`, which ends with the unit in brackets if there is one.
    `docs/reference/` and the JSON schemas are generated from these descriptions.
    """

    # Free mappings, such as arguments, may have NaN and infinities, which JSON would lose as null.
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        ser_json_inf_nan="constants",
    )

    # Why its keys never change while a run lasts, except those with `mid_run`.
    fixed: ClassVar[str] = "it is decided when a run starts"

    @classmethod
    def mid_run(cls, key: str) -> str:
        """Returns when a change of a key during a run acts: now, restart, or never."""
        extra = cls.model_fields[key].json_schema_extra
        return str(extra["mid_run"]) if isinstance(extra, dict) and "mid_run" in extra else "never"

    def why_fixed(self, key: str) -> str:
        """Returns why a key cannot change while a run lasts; empty where it can."""
        return self.fixed if self.mid_run(key) == "never" else ""

    def idle(self) -> Iterator[tuple[str, str]]:
        """Yields each key that is set, but that other keys leave without effect, and the reason.

        Two values of such a key would be two run ids with one result.
        """
        yield from ()

    def set_keys(self, why: str, *keys: str) -> Iterator[tuple[str, str]]:
        """Yields those of some keys, or of all, that do not have their defaults, with a reason."""
        fields = type(self).model_fields
        for key in keys or [key for key in fields if not fields[key].is_required()]:
            if getattr(self, key) != fields[key].default:
                yield key, why

    def idle_in(self, *parts: str) -> Iterator[tuple[str, str]]:
        """Yields what `idle` yields for nested models, and lists of them, with dotted keys."""
        for name in parts:
            part = getattr(self, name)
            numbered = enumerate(part) if isinstance(part, list) else [(None, part)]
            for number, model in numbered:
                prefix = name if number is None else f"{name}.{number}"
                yield from ((f"{prefix}.{key}", why) for key, why in model.idle())


def ordered(interval: tuple[float, float]) -> tuple[float, float]:
    """Refuses an interval whose lower end is not below its upper end."""
    if interval[0] >= interval[1]:
        raise ValueError(f"the lower end {interval[0]} is not below the upper end {interval[1]}")
    return interval


Interval = Annotated[tuple[float, float], AfterValidator(ordered)]


def own_or_type(value: Any) -> str:
    """Returns the tag of a part with a `type`: the type, or "plugin" for one of the user's."""
    name = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "plugin" if isinstance(name, str) and ":" in name else str(name)


def typed(value: str) -> Value:
    """Returns a value of a sweep with its type.

    An int (`3`, `0x1f`, `0o17`), a float (`0.5`, `1e-3`, `.inf`, `.nan`), `true`, `false`,
    `null` (or `~`), or a `[...]` list of these, of lists and of texts. Everything else is text,
    also `no`, `on`, `1:30`, `1_000`, a date and the empty value. Quotes keep a text as it is, as
    in YAML: `"007"`, `['1', 'a, b']`; what only looks like a list (`[a`, `[a][b]`) is text.

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
        number = int(value, base=0)
        if len(str(number)) > LONGEST_INT:
            raise ValueError
        return number
    if _FLOAT.fullmatch(value):
        return float(value)
    if _NOT_FINITE.fullmatch(value):
        return float(value.replace(".", ""))
    if _QUOTED.fullmatch(value):
        with contextlib.suppress(yaml.YAMLError):
            return str(yaml.safe_load(value))
    return value


def _list(text: str, at: int) -> tuple[list[Value], int] | None:
    """Returns the items after a `[`, and the place after its `]`; None if it is not a list."""
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
        with contextlib.suppress(BadInput):
            return value if typed(value) == value else json.dumps(value, ensure_ascii=False)
        return value
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return repr(value)  # as json does, in a fifth of its time
    if isinstance(value, float):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    if isinstance(value, list):
        items = (json.dumps(item) if isinstance(item, str) else value_text(item) for item in value)
        return f"[{', '.join(items)}]"
    return json.dumps(value)


def same_value(first: Any, second: Any) -> bool:
    """Returns whether two values are equal: 1 is 1.0 and .nan is itself, but true is not 1."""
    is_equal = bool(first == second) or repr(first) == repr(second)
    return is_equal and isinstance(first, bool) == isinstance(second, bool)


def tagged(model: Any) -> Any:
    """Returns a model as a member of a union, with the value of its `type` as its tag."""
    return Annotated[model, Tag(get_args(model.model_fields["type"].annotation)[0])]
