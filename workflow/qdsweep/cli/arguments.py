"""Arguments that several commands share, and text in columns for a terminal."""

import argparse
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.errors import BadInput
from qdsweep.host.machine import require_memory
from qdsweep.text import cut

if TYPE_CHECKING:
    from qdsweep.config.cluster import Cluster


# A lower bound of the memory of a worker process (measured: 57 MB) [bytes].
_WORKER = 10_000_000

# Adds a command: its name, what it does, and its examples.
Add = Callable[..., argparse.ArgumentParser]

RESULTS_OPTION: dict[str, Any] = {
    "type": Path,
    "default": Path("results"),
    "metavar": "DIR",
    "help": "folder with the results (default: results)",
}

CLUSTER: dict[str, Any] = {"default": "local", "help": "a YAML file or a preset (default: local)"}

SET: dict[str, Any] = {
    "action": "append",
    "default": [],
    "metavar": "KEY=VALUE",
    "help": "override a key, as in a sweep (repeatable)",
}

_WIDTH = 120
_LABEL = 44  # longest label; a longer one is cut in its middle


def adder(parser: argparse.ArgumentParser) -> tuple[Add, dict[str, argparse.ArgumentParser]]:
    """Returns the function that adds commands to a parser, and the commands as they are added."""
    commands = parser.add_subparsers(prog="qdsweep", help=argparse.SUPPRESS)

    def add(name: str, text: str, epilog: str = "", **options: Any) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            description=text,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **options,
        )

    return add, commands.choices


def sweep_name(text: str) -> str:
    """Returns a sweep's name. It is not a path: its folder must be in results/sweeps/."""
    if not text or "/" in text or text.startswith("."):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a name: give the name of a folder in results/sweeps/"
        )
    return text


def overrides(settings: list[str]) -> dict[str, Any]:
    """Returns the values of `--set`, by name."""
    from qdsweep.config.model import typed

    values = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise BadInput(f"--set {setting}: write it as KEY=VALUE, such as --set seed=3")
        if key in values:
            raise BadInput(f"--set {key} is given twice; leave one out")
        try:
            values[key] = typed(value)
        except BadInput as error:
            raise BadInput(f"--set {key}: {error}") from None
    return values


def cluster_of(arguments: argparse.Namespace) -> "Cluster":
    """Returns the cluster of `--cluster` with the workers of `--workers`."""
    from qdsweep.config.cluster import read_cluster

    cluster = read_cluster(arguments.cluster)
    if arguments.workers is None:
        return cluster
    if arguments.workers < 1:
        raise BadInput(f"--workers {arguments.workers}: give 1 or more")
    require_memory(_WORKER * arguments.workers, f"--workers {arguments.workers}")
    return cluster.with_workers(arguments.workers, arguments.cluster)


def lines(sides: str, rows: Sequence[Sequence[str]], label: int) -> Iterator[str]:
    """Yields one line per row; the last column takes the remaining width, and is cut.

    Args:
        sides: The alignment of each column but the last: < or >.
        rows: The heading and the rows, with one text per column.
        label: The index of the column with labels.
    """
    texts = [list(row) for row in rows]
    for row in texts:
        row[label] = cut(row[label], _LABEL)
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)][:-1]
    columns = [f"{{:{side}{width}}}" for side, width in zip(sides, widths, strict=True)]
    template = "  ".join([*columns, "{}"])
    for *cells, last in texts:
        line = template.format(*cells, last.replace("\n", " ")).rstrip()
        yield line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"


def paragraph(text: str) -> str:
    """Returns a text of several lines, none longer; no path is broken."""
    return textwrap.fill(
        text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
