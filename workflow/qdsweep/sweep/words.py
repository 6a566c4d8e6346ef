"""The words of a sweep's text, split as bash does, and their places in messages."""

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from qdsweep.errors import BadInput

_GAP = re.compile(r"(?:[ \t\n]|\\\n|#[^\n]*)*")
_PIECE = re.compile(
    r"""'(?P<single>[^']*)'
      | "(?P<double>(?:[^"\\]|\\.)*)"
      | \\(?P<escaped>.)
      | (?P<plain>[^ \t\n'"\\]+)""",
    re.DOTALL | re.VERBOSE,
)


class Word(NamedTuple):
    """A word of a text, without its quotes, and its position in the text."""

    text: str
    start: int
    end: int


def words(text: str) -> Iterator[Word]:
    r"""Splits a text into words as bash does: `a 'b c' "d"\ e` has the words `a`, `b c`, `d e`.

    Raises:
        BadInput: A quote is not closed, or the text ends with a backslash.
    """
    at = _gap(text, 0)
    while at < len(text):
        start, parts = at, []
        while piece := _PIECE.match(text, at):
            parts.append(_unquoted(piece))
            at = piece.end()
        if text[at : at + 1] in ("'", '"'):
            remedy = "Close it, or write a backslash before it if it is part of the value."
            fail(text, Word("", at, at + 1), f"the quote {text[at]} is not closed", remedy)
        if text[at : at + 1] == "\\":
            remedy = "Remove it, or write it twice if it is part of the value."
            fail(text, Word("", at, at + 1), "a backslash has nothing after it", remedy)
        yield Word("".join(parts), start, at)
        at = _gap(text, at)


def _gap(text: str, at: int) -> int:
    """Returns the end of the blanks and comments that start at a position."""
    match = _GAP.match(text, at)
    return match.end() if match else at


def _unquoted(piece: re.Match[str]) -> str:
    if piece["double"] is not None:
        return re.sub(r'\\([$`"\\\n])', lambda pair: pair[1].strip("\n"), piece["double"])
    if piece["escaped"] is not None:
        return piece["escaped"].strip("\n")
    return piece["single"] if piece["single"] is not None else piece["plain"]


def fail(text: str, place: Word, problem: str, remedy: str) -> NoReturn:
    """Raises a BadInput that shows a place in the text, the problem and the remedy."""
    first = text.rfind("\n", 0, place.start) + 1
    line = text[first:].split("\n", 1)[0]
    line = "".join(letter if letter.isprintable() else " " for letter in line)
    row, column = text.count("\n", 0, first) + 1, place.start - first
    marks = "^" * max(1, min(place.end, first + len(line)) - place.start)
    raise BadInput(
        f"sweep, line {row}, column {column + 1}: {problem}.\n"
        f"  {line}\n  {' ' * column}{marks}\n"
        f"{remedy}"
    )
