"""Sweeps from command lines and from Snakemake's config, and their table as TSV."""

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from qdsweep.errors import BadInput
from qdsweep.sweep.grammar import Draw, Table, expand
from qdsweep.sweep.words import words

_BLOCK = """  sweep: |
    ::: algorithm cma_me map_elites
    ::: seed 1 2 3"""


def from_argv(
    arguments: Sequence[str], directory: Path = Path(), draw: Draw | None = None
) -> Table:
    """Expands a sweep of a command line: one argument, or many as parallel has them.

    Args:
        arguments: `["::: a 1 2 ::: b 'x y'"]`, or what the shell made of the same text without
            the outer quotes: `[":::", "a", "1", "2", ":::", "b", "x y"]`, taken as they are.
        directory: Where the files of `::::` sources are looked for.
        draw: Draws the values of `:::~` sources.

    Raises:
        BadInput: The arguments are not a sweep.
    """
    text = arguments[0] if len(arguments) == 1 else shlex.join(arguments)
    return expand(text, directory, draw)


def to_tsv(table: Table) -> str:
    """Returns the table as TSV: the names, then a line for each run, values as written."""
    return "".join("\t".join(cells) + "\n" for cells in (table.names, *table.rows))


def recover(value: object, entries: Iterable[str] | None = (), key: str = "sweep") -> str:
    """Returns the text of a sweep as its user wrote it, however Snakemake has read it.

    Snakemake takes the quotes off the ends of a `--config` value and reads the rest as YAML, so
    `::: seed 1 2` arrives as {"::": "seed 1 2"}, `::: a 1 ''` as {"::": "a 1"}, and of two lines
    that begin with `:::` only the last is left. The value cannot tell what it has lost; the
    command line can, and it is the same in every job.

    Args:
        value: What Snakemake made of it, `config["sweep"]`.
        entries: The `KEY=VALUE` of `--config` as they were typed,
            `workflow.config_settings.config_args`. They win over files, the last one over all.
        key: The key of the sweep in the config.

    Returns:
        The text, not yet parsed.

    Raises:
        BadInput: A config file has something else than text; or the text on the command line
            holds what does not reach the jobs of a remote executor unchanged.
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
        f"Write it as text, with a | behind the key:\n{_BLOCK}"
    )


def _from_command_line(text: str, key: str) -> str:
    """Returns a text of `--config` without quotes around it, if jobs will see it unchanged."""
    if not text.isprintable() or re.search(r"[$`\\]|'.*\"|\".*'", text):
        raise BadInput(
            f"{key}: a sweep with $, `, \\, both kinds of quotes or several lines does not reach "
            f"Snakemake's jobs unchanged from the command line: {text!r}. "
            f"Write it into a file and give that with --configfile FILE:\n{_BLOCK}"
        )
    parts = list(words(text))
    return parts[0].text if len(parts) == 1 else text
