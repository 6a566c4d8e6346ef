"""What several commands share: their arguments, and how they read them."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.errors import BadInput
from qdsweep.host.memory import require_memory

if TYPE_CHECKING:
    from qdsweep.config.cluster import Cluster

# A worker process takes more; measured: 57 MB [bytes].
_WORKER = 10_000_000

# Adds a command: its name, what it does, and its examples.
Add = Callable[..., argparse.ArgumentParser]

RESULTS: dict[str, Any] = {
    "type": Path,
    "default": Path("results"),
    "metavar": "DIR",
    "help": "where the workflow wrote (default: results)",
}

CLUSTER: dict[str, Any] = {"default": "local", "help": "a YAML file or a preset (default: local)"}

SET: dict[str, Any] = {
    "action": "append",
    "default": [],
    "metavar": "KEY=VALUE",
    "help": "override a key, as in a sweep (repeatable)",
}


def adder(parser: argparse.ArgumentParser) -> Add:
    """Returns what adds commands to a parser."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, text: str, epilog: str = "", **options: Any) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=text,
            description=text,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **options,
        )

    return add


def sweep_name(text: str) -> str:
    """Returns a sweep's name, which is no path: it must stay inside results/sweeps/."""
    if not text or "/" in text or text.startswith("."):
        raise argparse.ArgumentTypeError(f"{text!r} is no name: give one of results/sweeps/")
    return text


def overrides(settings: list[str]) -> dict[str, Any]:
    """Returns the values of `--set`, by name."""
    from qdsweep.config.values import typed

    values = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise BadInput(f"--set {setting}: KEY=VALUE was expected, such as --set seed=3")
        if key in values:
            raise BadInput(f"--set {key} is given twice")
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
        raise BadInput(f"--workers {arguments.workers}: at least 1 is needed")
    require_memory(_WORKER * arguments.workers, f"--workers {arguments.workers}: so many processes")
    return cluster.with_workers(arguments.workers, arguments.cluster)
