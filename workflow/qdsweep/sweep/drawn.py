"""Drawn sources of a sweep: `:::~ NAME KIND ARGUMENTS [if NAME=VALUE,...]`."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qdsweep.config.model import typed, value_text
from qdsweep.sweep.words import Word, fail

if TYPE_CHECKING:
    from statistics import NormalDist

SAMPLE = "sample"
"""The column with the number of a draw."""
DIGITS = 6
"""The digits of a drawn number, which is rounded so that it is equal on every machine."""
_SHAPE = {
    "uniform": "uniform LO HI",
    "log": "log LO HI (0 < LO)",
    "int": "int LO HI",
    "logint": "logint LO HI (0 < LO)",
    "normal": "normal MEAN SD (0 < SD)",
    "choice": "choice VALUE...",
}
_TINY = 2.0**-33  # the normal quantiles of 0 and 1 are infinite
_QUANTILES: dict[str, Callable[[float, float, float], float]] = {
    "uniform": lambda low, high, u: low + u * (high - low),
    "log": lambda low, high, u: low * (high / low) ** u,
    "int": lambda low, high, u: math.floor(low + u * (high - low + 1)),
    # Each number has the same probability as on a continuous scale.
    "logint": lambda low, high, u: math.floor(
        (low - 0.5) * ((high + 0.5) / (low - 0.5)) ** u + 0.5
    ),
}


@dataclass(frozen=True)
class DrawnSource:
    """A source whose values are drawn.

    Attributes:
        name: The swept parameter.
        kind: The distribution.
        arguments: Its numbers, or the values to choose from, as written.
        condition: Names and values of other sources. The source has a value only if all hold.
    """

    name: str
    kind: str
    arguments: tuple[str, ...]
    condition: tuple[tuple[str, str], ...] = ()

    def value(self, u: float) -> str:
        """Returns its value at a quantile.

        Args:
            u: The quantile, in [0, 1].
        """
        u = min(max(u, _TINY), 1 - _TINY)
        if self.kind == "choice":
            return self.arguments[int(u * len(self.arguments))]
        first, second = map(float, self.arguments)
        if self.kind == "normal":
            return repr(_rounded(_normal(first, second).inv_cdf(u)))
        quantile = _QUANTILES[self.kind](first, second, u)
        if self.kind.endswith("int"):
            return str(int(min(max(quantile, first), second)))
        return repr(min(max(_rounded(quantile), first), second))

    def quantile(self, text: str) -> float:
        """Returns the quantile of a number, or the middle of the quantiles of a whole number.

        Args:
            text: The number. A choice has no quantile.
        """
        number = float(text)
        first, second = map(float, self.arguments)
        if self.kind == "normal":
            return _normal(first, second).cdf(number)
        if self.kind == "int":
            return (number - first + 0.5) / (second - first + 1)
        if self.kind == "uniform":
            return (number - first) / (second - first)
        half = 0.5 if self.kind == "logint" else 0.0
        low = math.log(first - half)
        middle = (math.log(number - half) + math.log(number + half)) / 2
        return (middle - low) / (math.log(second + half) - low)

    def scaled(self, value: float | str, factor: float) -> str:
        """Returns a value times a factor, within its bounds. A choice is unchanged.

        A whole number changes by at least one, if the bounds allow it.

        Args:
            value: One of its values.
            factor: The factor, above 0.
        """
        if self.kind == "choice" or isinstance(value, str):
            return value_text(value)
        first, second = map(float, self.arguments)
        if self.kind == "normal":
            return repr(_rounded(value * factor))
        if not self.kind.endswith("int"):
            return repr(min(max(_rounded(value * factor), first), second))
        step = 0 if factor == 1 else 1 if factor > 1 else -1
        product = round(value * factor)
        return str(int(min(max(value + step if product == value else product, first), second)))

    def holds(self, row: Mapping[str, str], *, unknown: bool = False) -> bool:
        """Returns whether it has a value in a row.

        Args:
            row: The row, name -> value as written.
            unknown: Whether a condition on a name that the row lacks holds.
        """
        return all(
            (unknown and name not in row) or typed(row[name]) == typed(value)
            for name, value in self.condition
        )

    def every(self) -> Iterable[str] | None:
        """Returns all its values; None if they cannot be counted."""
        if self.kind == "choice":
            return self.arguments
        if not self.kind.endswith("int"):
            return None
        first, last = map(int, self.arguments)
        return map(str, range(first, last + 1))


def _normal(mean: float, deviation: float) -> "NormalDist":
    from statistics import NormalDist  # the Snakefile needs it only for such a source

    return NormalDist(mean, deviation)


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")


def read_drawn(
    text: str,
    operator: Word,
    arguments: Sequence[Word],
    before: Mapping[str, Sequence[str]] | None = None,
) -> DrawnSource:
    """Reads a drawn source.

    Args:
        text: The whole sweep, for errors.
        operator: `:::~`.
        arguments: The words after it.
        before: The sources before it, and their possible values. An empty list means any value.
            None: its condition is not checked again.

    Raises:
        BadInput: The source does not have that form, or its condition can never hold.
    """
    remedy = "Write :::~ NAME KIND ARGUMENTS, e.g. `:::~ sigma0 log 0.05 5`."
    if len(arguments) < 2:
        fail(text, operator, "this source lacks a name or a distribution", remedy)
    name, kind, *rest = arguments
    condition: tuple[tuple[str, str], ...] = ()
    if len(rest) >= 2 and rest[-2].text == "if":
        condition = tuple(_pairs(text, rest[-1], before))
        rest = rest[:-2]
    if kind.text not in _SHAPE:
        remedy = f"Write one of: {'; '.join(_SHAPE.values())}."
        fail(text, kind, f"{kind.text!r} is not a distribution for {name.text!r}", remedy)
    values = tuple(word.text for word in rest)
    problem = _problem(kind.text, values)
    if problem:
        remedy = f"Write :::~ {name.text} {_SHAPE[kind.text]}."
        fail(text, rest[0] if rest else kind, problem, remedy)
    return DrawnSource(name.text, kind.text, values, condition)


def _problem(kind: str, values: tuple[str, ...]) -> str:
    """Returns the fault in the arguments of a distribution; empty if there is none."""
    if kind == "choice":
        if not values or "" in values:
            return "a value to choose is missing" if not values else "a value to choose is empty"
        twice = [value for value in values if values.count(value) > 1]
        return f"the value {twice[0]!r} appears twice" if twice else ""
    whole = kind.endswith("int")
    number = r"[-+]?\d+" if whole else r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
    wrong = [value for value in values if not re.fullmatch(number, value)]
    if len(values) != 2 or wrong or not all(math.isfinite(float(value)) for value in values):
        what = "whole numbers" if whole else "numbers"
        return f"{kind} takes two {what}, not {' '.join(values)!r}"
    first, second = map(float, values)
    if kind == "normal":
        return "" if second > 0 else f"the standard deviation {values[1]} is not above 0"
    if kind.startswith("log") and first <= 0:
        return f"{values[0]} has no logarithm"
    if first >= second:
        return f"its lower end {values[0]} is not below its upper end {values[1]}"
    if not math.isfinite(second / first if kind == "log" else second - first):
        return f"{values[0]} and {values[1]} are too far apart for floating-point numbers"
    return "a bound is larger than 2^53" if whole and max(-first, second) > 2**53 else ""


def _pairs(
    text: str, place: Word, before: Mapping[str, Sequence[str]] | None
) -> list[tuple[str, str]]:
    """Reads `NAME=VALUE,...`, and refuses conditions that can never hold."""
    if before is None:
        return [(name, value) for name, _, value in _split(place)]
    conditions: dict[str, str] = {}
    for name, sign, value in _split(place):
        part = name + sign + value
        if not sign or name not in before:
            remedy = f"Write if NAME=VALUE,... with a source before it: {', '.join(before) or '-'}."
            fail(text, place, f"{part!r} is not a condition on a source before this one", remedy)
        if name in conditions:
            remedy = "Name each source once, and write a second :::~ source for another value."
            fail(text, place, f"the condition names {name!r} twice", remedy)
        can = before[name]
        if can and typed(value) not in [typed(possible) for possible in can]:
            remedy = f"{name} is one of {', '.join(can)}."
            fail(text, place, f"{part!r} never holds", remedy)
        conditions[name] = value
    return list(conditions.items())


def _split(place: Word) -> list[tuple[str, str, str]]:
    return [part.partition("=") for part in place.text.split(",")]
