"""The command explore, which shows archives on a page."""

import argparse

from qdsweep.cli.arguments import RESULTS_OPTION, Add
from qdsweep.errors import BadInput
from qdsweep.records.paths import Results

EXPLORE = """\
examples:
  qdsweep explore                         the sweep that was started last
  qdsweep explore demo                    the runs of this sweep, also while they are computed
  qdsweep explore results/mine results/runs/ID
  qdsweep explore demo --port 8123        on a cluster; then, on your own machine:
                                          ssh -L 8123:127.0.0.1:8123 cluster
The command prints the address of the page, which only this machine can open. Move the pointer over
a cell to compare all runs. Click a cell to play its elite, which runs the code of its domain.
"""


def add_commands(add: Add) -> None:
    """Adds the command to the parser."""
    explore = add("explore", "Show archives on a page, and play their elites.", EXPLORE)
    explore.add_argument(
        "names",
        nargs="*",
        metavar="SWEEP|RUN",
        help="a sweep's name, or the folder of a run (default: the last sweep)",
    )
    explore.add_argument(
        "--port", type=int, default=0, metavar="N", help="port of 127.0.0.1 (default: a free one)"
    )
    explore.add_argument("--results", **RESULTS_OPTION)
    explore.set_defaults(command=_explore)


def _explore(arguments: argparse.Namespace) -> int:
    import asyncio
    from functools import partial

    from qdsweep.features.explore.page_server import serve
    from qdsweep.features.explore.shown_runs import choose_runs

    if not 0 <= arguments.port < 2**16:
        raise BadInput(f"--port {arguments.port}: give a number from 0 to 65535")
    results = Results(arguments.results)
    names = arguments.names or [sweep.name for sweep in results.known_sweeps()[:1]]
    if not names:
        raise BadInput(f"{results.path}/ has no sweep; name the folder of a run, or start a sweep")
    asyncio.run(serve(partial(choose_runs, results, names), results, arguments.port))
    return 0
