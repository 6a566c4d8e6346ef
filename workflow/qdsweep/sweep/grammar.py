r"""The sweep grammar: reads and expands the text after `parallel --header :`.

Every algorithm with every seed::

    ::: algorithm cma_me map_elites ::: seed 1 2 3

The second source is linked to the first::

    ::: algorithm cma_me cma_mae :::+ sigma0 0.5 0.1

An empty value of such a source sets no key, as only one of the algorithms has it::

    ::: algorithm map_elites cma_mega :::+ sigma0 '' 10

A source from a file, with one value per line::

    ::: seed 1 2 :::: sizes.txt

Drawn values, each with every seed::

    :::~ sigma0 log 0.05 5 ::: seed 1 2 3

Order and content are those of GNU parallel. Sources give their cross product, and the first source
varies most slowly. `:::+` and `::::+` link a source to the one before it, and the shortest of the
linked sources decides. Several files after `::::` are several sources. After `::::+` each file is
linked to the previous one. Only qdsweep has `:::~` (see `drawn`). All such sources are one source
of samples, at the position of the first one, with a column `sample`.

The text is split into words as in bash, with single and double quotes, backslashes (also at the end
of a line), and comments (from an unquoted `#` at the start of a word). Variables, globs and braces
are not expanded.

Some input that parallel accepts is an error here: an unknown operator (for parallel `:::::` is a
value), a source without values (for parallel one empty value), and a name used twice. So is a value
with a tab (parallel splits it into columns), a line break or a NUL. A blank line of a file is an
empty value, as for parallel.

A shell and Snakemake's config change the text of a sweep, which is recovered here. Its table is
written as TSV.
"""

import errno
import math
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from pathlib import Path

from qdsweep.errors import BadInput
from qdsweep.host.machine import require_memory
from qdsweep.sweep.drawn import SAMPLE, DrawnSource, read_drawn
from qdsweep.sweep.words import Word, fail, words

OPERATORS = (":::", ":::+", "::::", "::::+", ":::~")

# Returns one row of values per sample, with one column per drawn source.
Draw = Callable[[Sequence[DrawnSource]], list[tuple[str, ...]]]

_ALMOST_OPERATOR = re.compile(r":::.*|::[+~]*", re.DOTALL)
_UNFIT = re.compile("[\t\n\r\0\ud800-\udfff]")

_BLOCK = """  sweep: |
    ::: algorithm cma_me map_elites
    ::: seed 1 2 3"""


@dataclass(frozen=True)
class Source:
    """One input source: its name, its values as written, and whether it is linked."""

    name: str
    values: tuple[str, ...]
    linked: bool = False
    file: str = field(default="", compare=False)


@dataclass(frozen=True)
class Table:
    """An expanded sweep, with one column per name, one row per run, and values as written.

    Attributes:
        names: The columns.
        rows: The rows.
        unpaired: One line per linked source about the values that it drops.
        drawn: The drawn sources. Their columns are empty where a condition does not hold.
        files: The sources whose values are lines of a file.
        linked: The columns of `:::+` sources, whose empty values set no key.
    """

    names: tuple[str, ...]
    rows: list[tuple[str, ...]]
    unpaired: tuple[str, ...] = ()
    drawn: tuple[DrawnSource, ...] = ()
    files: tuple[Source, ...] = ()
    linked: tuple[str, ...] = ()

    def unset(self, row: Mapping[str, str]) -> set[str]:
        """Returns the columns of a row that set no key: the number of the draw, and empty ones."""
        optional = (*(draw.name for draw in self.drawn if draw.condition), *self.linked)
        empty = {name for name in optional if row[name] == ""}
        return {SAMPLE, *empty} if self.drawn else empty

    def line_of(self, name: str, value: str) -> str:
        """Returns the line with a value in a source's file, and a remedy; empty if none fits."""
        for source in self.files:
            if source.name == name:
                line = source.values.index(value) + 2  # the first one is the name
                where = f"line {line} of {source.file!r} is {value!r}"
                if not value.strip():
                    return f"{where}: remove the empty line"
                if value != value.strip():
                    return f"{where}: remove the blanks around the value"
                if "#" in value:
                    return f"{where}: a file of values has no comments"
                return where
        return ""


def expand(text: str, directory: Path = Path(), draw: Draw | None = None) -> Table:
    """Expands a sweep into its rows, in GNU parallel's order.

    Args:
        text: The sweep, e.g. `"::: a 1 2 ::: b x y"`.
        directory: The folder of the files of `::::` sources.
        draw: Draws the values of `:::~` sources.

    Returns:
        The table. `"::: a 1 2 ::: b x y"` has the rows (1, x), (1, y), (2, x), (2, y).

    Raises:
        BadInput: The text is not a sweep (see `parse`), or it has drawn sources without samples, or
            samples without a drawn source.
    """
    sources = parse(text, directory)
    drawn = [source for source in sources if isinstance(source, DrawnSource)]
    if bool(drawn) != (draw is not None):
        raise BadInput(
            f"sweep: the number of samples of {drawn[0].name} is missing. Write search: "
            "{samples: N} next to the sweep (`qdsweep expand --samples N`)"
            if drawn
            else "search: samples are drawn from `:::~` sources, and the sweep has none. Write "
            "e.g. `:::~ sigma0 log 0.05 5`, or remove the key search"
        )
    names: list[str] = []
    blocks: list[list[tuple[str, ...]]] = []
    unpaired = []
    for before, source in zip([sources[0], *sources], sources, strict=False):
        if isinstance(source, DrawnSource):
            if draw is not None and SAMPLE not in names:
                names += [SAMPLE, *(source.name for source in drawn)]
                blocks.append([(str(i), *values) for i, values in enumerate(draw(drawn))])
            continue
        names.append(source.name)
        if source.linked:
            alone = [row[-1] for row in blocks[-1][len(source.values) :]]
            unpaired += _left_out(before.name, alone, source.name)
            unpaired += _left_out(source.name, source.values[len(blocks[-1]) :], before.name)
            pairs = zip(blocks[-1], source.values, strict=False)  # the shortest decides
            blocks[-1] = [(*row, value) for row, value in pairs]
        else:
            blocks.append([(value,) for value in source.values])
    size = (56 + 8 * len(names)) * math.prod(map(len, blocks))
    require_memory(size, f"sweep: {math.prod(map(len, blocks)):,} rows: their table")
    rows = [tuple(chain.from_iterable(parts)) for parts in product(*blocks)]
    if any(source.condition for source in drawn):
        rows = [_conditioned(dict(zip(names, row, strict=True)), drawn) for row in rows]
    written = [source for source in sources if isinstance(source, Source)]
    files = tuple(source for source in written if source.file)
    linked = tuple(source.name for source in written if source.linked and not source.file)
    return Table(tuple(names), rows, tuple(unpaired), tuple(drawn), files, linked)


def _conditioned(row: dict[str, str], drawn: Sequence[DrawnSource]) -> tuple[str, ...]:
    """Returns a row without the values whose conditions do not hold."""
    for source in drawn:  # in their order, because a condition only names earlier sources
        if not source.holds(row):
            row[source.name] = ""
    return tuple(row.values())


def _left_out(name: str, values: Sequence[str], other: str) -> list[str]:
    if not values:
        return []
    return [
        f"{name} {' '.join(values)}: dropped, because the linked source {other} has fewer values "
        "(the shortest decides, as in GNU parallel)"
    ]


def parse(text: str, directory: Path = Path()) -> list[Source | DrawnSource]:
    """Reads a sweep's sources, in their order in the text.

    Args:
        text: The sweep, e.g. `"::: a 1 2 :::: values.txt"`.
        directory: The folder of the files of `::::` sources.

    Returns:
        At least one source, each with at least one value. The first is not linked.

    Raises:
        BadInput: The text has an unknown operator, an unbalanced quote, no source, or text before
            the first source. A source has no name, no values, a name used twice, an invalid
            character or nothing to link to. A file is missing, unreadable or empty. A drawn source
            has another form. The message shows the place.
    """
    sources: list[Source | DrawnSource] = []
    for operator, arguments in _groups(text):
        taken = {source.name: _possible(source) for source in sources}
        if operator.text == ":::~":
            drawn = read_drawn(text, operator, arguments, taken)
            _check(text, arguments[0], drawn.name, [*drawn.arguments], [*taken, SAMPLE])
            sources.append(drawn)
            continue
        linked = operator.text.endswith("+")
        if linked and sources and isinstance(sources[-1], DrawnSource):
            remedy = "Put it before the drawn sources, or use :::~ for it too."
            fail(text, operator, f"{operator.text} cannot link to a drawn source", remedy)
        if linked and not sources:
            remedy = f"Start with {operator.text[:-1]}, or put the source to link to before it."
            fail(text, operator, f"{operator.text} has no source before it to link to", remedy)
        for place, (name, *values) in _contents(text, operator, arguments, directory):
            _check(text, place, name, values, [source.name for source in sources])
            file = place.text if operator.text.startswith("::::") else ""
            sources.append(Source(name, tuple(values), linked, file))
    is_drawn = any(isinstance(source, DrawnSource) for source in sources)
    if is_drawn and SAMPLE in [source.name for source in sources]:
        raise BadInput(f"sweep: {SAMPLE} is the number of a draw: no source can have this name")
    return sources


def drawn_in(text: str) -> list[DrawnSource]:
    """Returns the drawn sources of a sweep that `parse` has already read. It reads no file."""
    if ":::~" not in text:
        return []
    groups = [group for group in _groups(text) if group[0].text == ":::~"]
    return [read_drawn(text, operator, arguments) for operator, arguments in groups]


def files_in(text: str) -> list[Word]:
    """Returns the words of a sweep that name files of values. It reads none of them."""
    groups = _groups(text) if text.strip() else []
    return [
        word for operator, words in groups for word in words if operator.text.startswith("::::")
    ]


def _possible(source: Source | DrawnSource) -> tuple[str, ...]:
    """Returns the possible values of a source; none if it may be any number."""
    if isinstance(source, Source):
        return source.values
    return source.arguments if source.kind == "choice" else ()


def _groups(text: str) -> list[tuple[Word, list[Word]]]:
    """Returns each operator with the words that follow it."""
    groups: list[tuple[Word, list[Word]]] = []
    for word in words(text):
        if word.text in OPERATORS:
            groups.append((word, []))
        elif _ALMOST_OPERATOR.fullmatch(word.text):
            remedy = f"Write one of {' '.join(OPERATORS)} with a blank on both sides."
            fail(text, word, f"{word.text!r} is not an operator", remedy)
        elif groups:
            groups[-1][1].append(word)
        else:
            remedy = "A sweep starts with ::: NAME VALUE..., e.g. `::: seed 1 2 3`."
            fail(text, word, f"{word.text!r} is before the first source", remedy)
    if not groups:
        raise BadInput("sweep: it is empty. Write ::: NAME VALUE..., e.g. `::: seed 1 2 3`.")
    return groups


def _contents(
    text: str, operator: Word, arguments: list[Word], directory: Path
) -> Iterator[tuple[Word, list[str]]]:
    """Returns name and values of a group's sources, each with the word for error messages."""
    sign = operator.text
    if not sign.startswith("::::"):
        place = operator if not arguments else arguments[0]
        if len(arguments) < 2:
            lacks = "values" if arguments else "a name and values"
            remedy = f"Write {sign} NAME VALUE..., e.g. `{sign} seed 1 2 3`."
            fail(text, place, f"this source lacks {lacks}", remedy)
        yield place, [word.text for word in arguments]
        return
    if not arguments:
        remedy = f"Write {sign} FILE..., e.g. `{sign} seeds.txt`."
        fail(text, operator, f"{sign} has no file", remedy)
    for word in arguments:
        yield word, _read(text, word, directory)


def _read(text: str, word: Word, directory: Path) -> list[str]:
    """Reads a file source: its name, then its values."""
    shape = "Its first line is the name, and every further line is a value."
    if word.text == "-":
        remedy = "Write the values to a file and give its name."
        fail(text, word, "a sweep cannot read standard input, as it is read several times", remedy)
    path = directory / word.text
    try:
        if path.is_char_device() or path.is_block_device():  # such as the endless /dev/zero
            raise OSError(errno.EINVAL, "it is a device")
        content = path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        fail(text, word, f"the file {str(path)!r} cannot be read: {reason}", shape)
    if "\r" in content:
        remedy = f"Convert it, e.g. with sed -i 's/\\r$//' {word.text}"
        fail(text, word, f"the file {str(path)!r} has Windows line ends", remedy)
    lines = content.removesuffix("\n").split("\n")
    if len(lines) < 2:
        lacks = "has a name but no values" if content else "is empty"
        fail(text, word, f"the file {str(path)!r} {lacks}", shape)
    return lines


def _check(text: str, place: Word, name: str, values: list[str], taken: list[str]) -> None:
    """Refuses an empty or used name, and invalid characters."""
    if not name:
        fail(text, place, "the name of this source is empty", "Its first value is its name.")
    if name in taken:
        remedy = f"Give each source its own name; the names so far: {', '.join(taken)}."
        fail(text, place, f"the name {name!r} is used twice", remedy)
    for number, value in enumerate((name, *values)):
        if match := _UNFIT.search(value):
            what = f"value {number} of {name!r}" if number else "the name"
            problem = f"{what}, {value!r}, contains the character {match[0]!r}"
            remedy = "A name or value is one line of Unicode text without tabs."
            fail(text, place, problem, remedy)


def from_argv(
    arguments: Sequence[str], directory: Path = Path(), draw: Draw | None = None
) -> Table:
    """Expands a sweep of a command line, which is one argument, or many as for parallel.

    Args:
        arguments: `["::: a 1 2 ::: b 'x y'"]`, or the result of the shell for the same text without
            the outer quotes: `[":::", "a", "1", "2", ":::", "b", "x y"]`. These are not split.
        directory: The folder of the files of `::::` sources.
        draw: Draws the values of `:::~` sources.

    Raises:
        BadInput: The arguments are not a sweep.
    """
    text = arguments[0] if len(arguments) == 1 else shlex.join(arguments)
    return expand(text, directory, draw)


def to_tsv(table: Table) -> str:
    """Returns the table as TSV: a line with the names, then one line per run, values as written."""
    return "".join("\t".join(cells) + "\n" for cells in (table.names, *table.rows))


def recover(value: object, entries: Iterable[str] | None = (), key: str = "sweep") -> str:
    """Returns the text of a sweep as the user wrote it, before Snakemake has read it.

    Snakemake removes the quotes at the ends of a `--config` value and reads the rest as YAML. So
    `::: seed 1 2` arrives as {"::": "seed 1 2"}, and `::: a 1 ''` as {"::": "a 1"}. Of two lines
    that start with `:::`, only the last arrives. The command line still has the whole text, and is
    the same in every job.

    Args:
        value: The value that Snakemake has read, `config["sweep"]`.
        entries: The `KEY=VALUE` of `--config` as they were typed,
            `workflow.config_settings.config_args`. They override files, and the last one overrides
            all others.
        key: The key of the sweep in the config.

    Returns:
        The text, not yet parsed.

    Raises:
        BadInput: The value in a config file is not text, or the text on the command line would not
            reach the jobs of a remote executor unchanged.
    """
    texts = [
        text for name, _, text in (entry.partition("=") for entry in entries or ()) if name == key
    ]
    if texts:
        return _from_command_line(texts[-1], key)
    if isinstance(value, str):
        return value
    raise BadInput(
        f"{key}: YAML has read it as {value!r}, and may have lost a part of it. "
        f"Write it as text, with a | after the key:\n{_BLOCK}"
    )


def _from_command_line(text: str, key: str) -> str:
    """Returns a text of `--config` without quotes around it, if jobs will see it unchanged."""
    if not text.isprintable() or re.search(r"[$`\\]|'.*\"|\".*'", text):
        raise BadInput(
            f"{key}: a sweep with $, `, \\, both kinds of quotes or several lines does not reach "
            f"Snakemake's jobs unchanged from the command line: {text!r}. "
            f"Write it into a file, and pass the file with --configfile FILE:\n{_BLOCK}"
        )
    parts = list(words(text))
    return parts[0].text if len(parts) == 1 else text
