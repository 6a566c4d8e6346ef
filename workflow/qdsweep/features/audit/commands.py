"""The command audit."""

import argparse
import math
import os
from functools import partial
from pathlib import Path

from qdsweep.cli.arguments import RESULTS_OPTION, Add, sweep_name
from qdsweep.config.files import HOME
from qdsweep.errors import BadInput
from qdsweep.records.paths import Results

AUDIT = """\
examples:
  qdsweep audit                          1 % of the runs of docs/published.csv
  qdsweep audit --share 5% --seed 3      another and larger sample
  qdsweep audit mine.csv --add my_sweep  write the finished runs of my_sweep to a table
The sample is computed in a temporary folder. Digests of archives and metrics are compared bit by
bit, and sums over elites (QD score, mean objective) to a relative 1e-9. A run that does not fit
into --minutes, or that needs a missing package, is not drawn. Each row names its sweep, a file of
config/sweeps/ that defines the experiment.

exit codes:
  0 all the same bits; 1 a run differs or fails (its line has the reason); 2 wrong input
"""
TABLE = HOME / "docs/published.csv"


def add_commands(add: Add) -> None:
    """Adds the command to the parser."""
    audit = add("audit", "Compute a sample of a table of runs again, and compare the bits.", AUDIT)
    audit.add_argument(
        "table", nargs="?", type=Path, default=TABLE, help="default: the clone's docs/published.csv"
    )
    audit.add_argument(
        "--share", type=_share, default=0.01, metavar="P%", help="share of the runs (default: 1%%)"
    )
    audit.add_argument("--seed", type=int, default=0, help="seed of the draw (default: 0)")
    audit.add_argument(
        "--minutes",
        type=float,
        default=math.inf,
        metavar="M",
        help="maximum time on all cores, by the table's seconds",
    )
    audit.add_argument(
        "--cores", type=int, default=len(os.sched_getaffinity(0)), help="runs at a time"
    )
    audit.add_argument(
        "--add",
        nargs="+",
        type=sweep_name,
        metavar="SWEEP",
        help="write the finished runs of these sweeps to the table; it keeps other rows",
    )
    audit.add_argument("--results", **RESULTS_OPTION)
    audit.set_defaults(command=_audit)


def _share(text: str) -> float:
    """Returns the fraction of a percentage such as 1%."""
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = math.nan
    if not (text.endswith("%") and 0 < share <= 1):
        raise argparse.ArgumentTypeError(f"{text!r}: give a percentage above 0%, such as 1%")
    return share


def _audit(arguments: argparse.Namespace) -> int:
    from qdsweep.features.audit.audit import add_runs, audit
    from qdsweep.features.audit.recompute import Sample

    if arguments.cores < 1:
        raise BadInput(f"--cores {arguments.cores}: give 1 or more")
    table, results = arguments.table, Results(arguments.results)
    if arguments.add:
        print(add_runs(table, results, arguments.add))
        return 0
    draw = Sample(arguments.share, arguments.seed, arguments.minutes)
    return 1 if audit(table, results, draw, arguments.cores, partial(print, flush=True)) else 0
