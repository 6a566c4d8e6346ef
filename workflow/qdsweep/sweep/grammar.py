r"""The sweep grammar: the text after `parallel --header :`, read and expanded.

    ::: algorithm cma_me map_elites ::: seed 1 2 3      every algorithm with every seed
    ::: algorithm cma_me cma_mae :::+ sigma0 0.5 0.1    the second source linked to the first
    ::: seed 1 2 :::: sizes.txt                         a source from a file, one value per line

Order and content are GNU parallel's: the cross product of the sources, the first one slowest;
`:::+` and `::::+` link a source to the one before it, and the shortest of the linked decides.
Several files after `::::` are several sources; after `::::+` each is linked to the one before.

The text is cut into words as bash cuts it: single quotes, double quotes, backslashes, a backslash
at the end of a line, and comments (an unquoted `#` at the start of a word, to the end of the line).
Nothing else is special: no variables, globs or braces are expanded.

Some things that parallel accepts are mistakes, and errors here: an unknown operator (`:::::` is a
value for parallel), a source without values (one empty value for parallel), a name used twice, and
a tab (parallel cuts the value into columns), a line break or a NUL in a value. A blank line of a
file is an empty value, as for parallel.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import NamedTuple, NoReturn

from qdsweep.config.values import typed
from qdsweep.errors import BadInput

__all__ = ["Source", "Table", "Word", "expand", "parse", "typed", "words"]

OPERATORS = (":::", ":::+", "::::", "::::+")

_GAP = re.compile(r"(?:[ \t\n]|\\\n|#[^\n]*)*")
_PIECE = re.compile(
    r"""'(?P<single>[^']*)'
      | "(?P<double>(?:[^"\\]|\\.)*)"
      | \\(?P<escaped>.)
      | (?P<plain>[^ \t\n'"\\]+)""",
    re.DOTALL | re.VERBOSE,
)
_ALMOST_OPERATOR = re.compile(r":::.*|::\+*", re.DOTALL)
_UNFIT = re.compile("[\t\n\r\0\ud800-\udfff]")


class Word(NamedTuple):
    """A word of a text, without its quotes, and its place in the text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Source:
    """One input source: its name, its values as they were written, and whether it is linked."""

    name: str
    values: tuple[str, ...]
    linked: bool = False


@dataclass(frozen=True)
class Table:
    """An expanded sweep: a column for each name, a row for each run, values as written.

    Attributes:
        names: The columns.
        rows: The rows.
        unpaired: What linked sources have left out, a line for each of them.
    """

    names: tuple[str, ...]
    rows: list[tuple[str, ...]]
    unpaired: tuple[str, ...] = ()


def expand(text: str, directory: Path = Path()) -> Table:
    """Expands a sweep into its rows, in GNU parallel's order.

    Args:
        text: The sweep, e.g. `"::: a 1 2 ::: b x y"`.
        directory: Where the files of `::::` sources are looked for.

    Returns:
        The table; `"::: a 1 2 ::: b x y"` has the rows (1, x), (1, y), (2, x), (2, y).

    Raises:
        BadInput: The text is not a sweep (see `parse`).
    """
    sources = parse(text, directory)
    blocks: list[list[tuple[str, ...]]] = []
    unpaired = []
    for before, source in zip([sources[0], *sources], sources, strict=False):
        if source.linked:
            alone = [row[-1] for row in blocks[-1][len(source.values) :]]
            unpaired += _left_out(before.name, alone, source.name)
            unpaired += _left_out(source.name, source.values[len(blocks[-1]) :], before.name)
            pairs = zip(blocks[-1], source.values, strict=False)  # the shortest decides
            blocks[-1] = [(*row, value) for row, value in pairs]
        else:
            blocks.append([(value,) for value in source.values])
    rows = [tuple(chain.from_iterable(parts)) for parts in product(*blocks)]
    return Table(tuple(source.name for source in sources), rows, tuple(unpaired))


def _left_out(name: str, values: Sequence[str], other: str) -> list[str]:
    if not values:
        return []
    return [
        f"{name} {' '.join(values)}: left out, as the linked source {other} has fewer values (the "
        "shortest decides, as in GNU parallel)"
    ]


def parse(text: str, directory: Path = Path()) -> list[Source]:
    """Reads a sweep's sources, in the order in which they stand.

    Args:
        text: The sweep, e.g. `"::: a 1 2 :::: values.txt"`.
        directory: Where the files of `::::` sources are looked for.

    Returns:
        At least one source, each with at least one value; the first is not linked.

    Raises:
        BadInput: No source, text before the first one, an unknown operator, an unbalanced quote,
            a source without name or values, a name used twice, a link to nothing, a file that is
            missing, unreadable or empty, or a character that no value may hold. The message
            shows the place.
    """
    sources: list[Source] = []
    for operator, arguments in _groups(text):
        linked = operator.text.endswith("+")
        if linked and not sources:
            remedy = f"Begin with {operator.text[:-1]}, or put the source to link to before it."
            _fail(text, operator, f"{operator.text} has no source before it to link to", remedy)
        for place, (name, *values) in _contents(text, operator, arguments, directory):
            _check(text, place, name, values, [source.name for source in sources])
            sources.append(Source(name, tuple(values), linked))
    return sources


def words(text: str) -> Iterator[Word]:
    r"""Cuts a text into words as bash does: `a 'b c' "d"\ e` has the words `a`, `b c`, `d e`.

    Raises:
        BadInput: A quote that is not closed, or a backslash at the very end.
    """
    at = _gap(text, 0)
    while at < len(text):
        start, parts = at, []
        while piece := _PIECE.match(text, at):
            parts.append(_unquoted(piece))
            at = piece.end()
        if text[at : at + 1] in ("'", '"'):
            remedy = "Close it, or write a backslash before it if it belongs to the value."
            _fail(text, Word("", at, at + 1), f"the quote {text[at]} is not closed", remedy)
        if text[at : at + 1] == "\\":
            remedy = "Leave it out, or write it twice if it belongs to the value."
            _fail(text, Word("", at, at + 1), "a backslash has nothing after it", remedy)
        yield Word("".join(parts), start, at)
        at = _gap(text, at)


def _gap(text: str, at: int) -> int:
    """Returns the end of the blanks and comments that begin at a place."""
    match = _GAP.match(text, at)
    return match.end() if match else at


def _unquoted(piece: re.Match[str]) -> str:
    if piece["double"] is not None:
        return re.sub(r'\\([$`"\\\n])', lambda pair: pair[1].strip("\n"), piece["double"])
    if piece["escaped"] is not None:
        return piece["escaped"].strip("\n")
    return piece["single"] if piece["single"] is not None else piece["plain"]


def _groups(text: str) -> list[tuple[Word, list[Word]]]:
    """Returns each operator with the words that follow it."""
    groups: list[tuple[Word, list[Word]]] = []
    for word in words(text):
        if word.text in OPERATORS:
            groups.append((word, []))
        elif _ALMOST_OPERATOR.fullmatch(word.text):
            remedy = f"Write one of {' '.join(OPERATORS)} with a blank on both sides."
            _fail(text, word, f"{word.text!r} is not an operator", remedy)
        elif groups:
            groups[-1][1].append(word)
        else:
            remedy = "A sweep begins with ::: NAME VALUE..., e.g. `::: seed 1 2 3`."
            _fail(text, word, f"{word.text!r} stands before the first source", remedy)
    if not groups:
        raise BadInput("sweep: it is empty. Write ::: NAME VALUE..., e.g. `::: seed 1 2 3`.")
    return groups


def _contents(
    text: str, operator: Word, arguments: list[Word], directory: Path
) -> Iterator[tuple[Word, list[str]]]:
    """Returns name and values of a group's sources, each with the word to show in an error."""
    sign = operator.text
    if not sign.startswith("::::"):
        place = operator if not arguments else arguments[0]
        if len(arguments) < 2:
            lacks = "values" if arguments else "a name and values"
            remedy = f"Write {sign} NAME VALUE..., e.g. `{sign} seed 1 2 3`."
            _fail(text, place, f"this source lacks {lacks}", remedy)
        yield place, [word.text for word in arguments]
        return
    if not arguments:
        remedy = f"Write {sign} FILE..., e.g. `{sign} seeds.txt`."
        _fail(text, operator, f"{sign} has no file", remedy)
    for word in arguments:
        yield word, _read(text, word, directory)


def _read(text: str, word: Word, directory: Path) -> list[str]:
    """Reads a file source: its name, then its values."""
    shape = "Its first line is the name, every further line a value."
    if word.text == "-":
        remedy = "Write the values to a file and give its name."
        _fail(text, word, "a sweep does not read standard input, it is read many times", remedy)
    path = directory / word.text
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        _fail(text, word, f"the file {str(path)!r} cannot be read: {reason}", shape)
    if "\r" in content:
        remedy = f"Convert it, e.g. with sed -i 's/\\r$//' {word.text}"
        _fail(text, word, f"the file {str(path)!r} has Windows line ends", remedy)
    lines = content.removesuffix("\n").split("\n")
    if len(lines) < 2:
        lacks = "has a name but no values" if content else "is empty"
        _fail(text, word, f"the file {str(path)!r} {lacks}", shape)
    return lines


def _check(text: str, place: Word, name: str, values: list[str], taken: list[str]) -> None:
    """Refuses a name that is empty or taken, and characters that no value may hold."""
    if not name:
        _fail(text, place, "the name of this source is empty", "Its first value is its name.")
    if name in taken:
        remedy = f"Give each source its own name; the names so far: {', '.join(taken)}."
        _fail(text, place, f"the name {name!r} is used twice", remedy)
    for number, value in enumerate((name, *values)):
        if match := _UNFIT.search(value):
            what = f"value {number} of {name!r}" if number else "the name"
            problem = f"{what}, {value!r}, holds the character {match[0]!r}"
            remedy = "A name or value is one line of Unicode text without tabs."
            _fail(text, place, problem, remedy)


def _fail(text: str, place: Word, problem: str, remedy: str) -> NoReturn:
    """Raises a BadInput that shows a place in the text, what is wrong and the remedy."""
    first = text.rfind("\n", 0, place.start) + 1
    line = text[first:].split("\n", 1)[0].replace("\t", " ")
    row, column = text.count("\n", 0, first) + 1, place.start - first
    marks = "^" * max(1, min(place.end, first + len(line)) - place.start)
    raise BadInput(
        f"sweep, line {row}, column {column + 1}: {problem}.\n"
        f"  {line}\n  {' ' * column}{marks}\n"
        f"{remedy}"
    )
