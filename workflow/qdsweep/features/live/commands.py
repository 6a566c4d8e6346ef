"""The command watch."""

import argparse
import os
import sys

from qdsweep.cli.arguments import Add
from qdsweep.cli.sweeps import add_sweep, print_status
from qdsweep.errors import BadInput

WATCH = """\
examples:
  qdsweep watch            the sweep that was started last, or the first one that is started
  qdsweep watch demo
  ssh -t cluster 'cd study && .venv/bin/qdsweep watch demo --every 10'
keys: arrows, PgUp, PgDn, Home, End select a run; f filters (all, unfinished, failed); q quits
It only reads files: any number of people may watch a sweep.
"""


def add_commands(add: Add) -> None:
    """Adds the command to the parser."""
    watch = add("watch", "Follow a sweep live in the terminal.", WATCH)
    add_sweep(watch)
    watch.add_argument(
        "--every",
        type=float,
        default=2.0,
        metavar="S",
        help="refresh interval in seconds (default: 2)",
    )
    watch.set_defaults(command=_watch)


def _watch(arguments: argparse.Namespace) -> int:
    if arguments.every < 0.1:
        raise BadInput(f"--every {arguments.every:g}: give 0.1 seconds or more")
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if not all(stream.isatty() for stream in streams) or os.environ.get("TERM") == "dumb":
        text = "qdsweep: this is not a terminal (ssh -t opens one), so the state is printed once"
        print(text, file=sys.stderr)
        return print_status(arguments)
    from qdsweep.features.live.app import WatchApp

    WatchApp(arguments.results, arguments.name, arguments.every).run(mouse=False)
    return 0
