"""The commands audit and reproduce."""

import argparse
import math
import os
import signal
import sys
from functools import partial
from pathlib import Path

from qdsweep.cli.arguments import RESULTS_OPTION, Add, sweep_name
from qdsweep.config.files import HOME
from qdsweep.errors import STOPPED, BadInput
from qdsweep.records.paths import Results

AUDIT = """\
examples:
  qdsweep audit                          1 % of the runs of docs/published.csv
  qdsweep audit --share 5% --seed 3      another and larger sample
  qdsweep audit mine.csv --add my_sweep  write the finished runs of my_sweep to a table
The sample is computed in a temporary folder. Digests of archives and metrics are compared bit by
bit, and sums over elites (QD score, mean objective) to a relative 1e-9. A run that does not fit
into --minutes, or that needs a missing package, is not drawn. Each row names its sweep, a file of
config/sweeps/ that defines the experiment, or sweep.yaml in the folder of an exported package.

exit codes:
  0 all the same bits; 1 a run differs or fails (its line has the reason); 2 wrong input
"""
REPRODUCE = """\
examples:
  qdsweep reproduce study.zip                1 % of its runs, at least one, in an environment that
                                             is made from its requirements.lock
  qdsweep reproduce study.zip --minutes 10   as much of the 1 % as fits into 10 minutes
  qdsweep reproduce study.zip --share 5% --seed 3
  qdsweep reproduce study.zip --runs lp_sphere-cma_me-s1-0a1b2c3d4e --here
  qdsweep reproduce study/ --all --image containers/qdsweep.sif
The package is the zip of `qdsweep export`, or the folder that it was unpacked into. Its checksums
are verified, its sweep is planned, and each run of the sample is computed in a temporary folder.
Each run gets a verdict: its archive (digest), all its metrics and its row of the tables are
compared, as `qdsweep audit` does.

A package runs code of its author. So the command lists it, and asks (or --yes). Checksums show
that a package is whole, not who made it, and no sandbox is made around it.

exit codes:
  0 no run differs, and at least one was computed; 1 a run or a table differs, or no run was
  computed; 2 the package is damaged or hostile, or other wrong input; 75 interrupted
"""
TABLE = HOME / "docs/published.csv"


def add_commands(add: Add) -> None:
    """Adds the commands to the parser."""
    audit = add("audit", "Compute a sample of a table of runs again, and compare the bits.", AUDIT)
    audit.add_argument(
        "table", nargs="?", type=Path, default=TABLE, help="default: the clone's docs/published.csv"
    )
    _add_share(audit)
    _add_sample(audit)
    audit.add_argument(
        "--add",
        nargs="+",
        type=sweep_name,
        metavar="SWEEP",
        help="write the finished runs of these sweeps to the table; it keeps other rows",
    )
    audit.add_argument("--results", **RESULTS_OPTION)
    audit.set_defaults(command=_audit)

    text = "Compute a sample of an exported sweep again, and compare the bits."
    reproduce = add("reproduce", text, REPRODUCE)
    reproduce.add_argument("package", type=Path, help="the zip of `qdsweep export`, or its folder")
    which = reproduce.add_mutually_exclusive_group()
    _add_share(which)
    which.add_argument("--runs", nargs="+", default=[], metavar="ID", help="these runs")
    which.add_argument("--all", action="store_true", help="all runs")
    _add_sample(reproduce)
    where = reproduce.add_mutually_exclusive_group()
    where.add_argument("--here", action="store_true", help="in this environment, not a fresh one")
    where.add_argument("--image", dest="inside", metavar="FILE", help="in this Apptainer image")
    reproduce.add_argument("--yes", action="store_true", help="run the package's code unasked")
    # Of the process in the environment: where it computes the runs of a verified package.
    reproduce.add_argument("--unpacked", type=Path, help=argparse.SUPPRESS)
    reproduce.set_defaults(command=_reproduce)


def _add_share(to: argparse._ActionsContainer) -> None:
    to.add_argument(
        "--share", type=_share, default=0.01, metavar="P%", help="share of the runs (default: 1%%)"
    )


def _add_sample(to: argparse.ArgumentParser) -> None:
    to.add_argument("--seed", type=int, default=0, help="seed of the draw (default: 0)")
    to.add_argument(
        "--minutes",
        type=float,
        default=math.inf,
        metavar="M",
        help="maximum time on all cores, by the table's seconds",
    )
    to.add_argument(
        "--cores", type=int, default=len(os.sched_getaffinity(0)), help="runs at a time"
    )


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

    _require_cores(arguments.cores)
    table, results = arguments.table, Results(arguments.results)
    if arguments.add:
        print(add_runs(table, results, arguments.add))
        return 0
    sample = Sample(arguments.share, arguments.seed, arguments.minutes)
    return 1 if audit(table, results, sample, arguments.cores, partial(print, flush=True)) else 0


def _require_cores(cores: int) -> None:
    if cores < 1:
        raise BadInput(f"--cores {cores}: give 1 or more")


def _reproduce(arguments: argparse.Namespace) -> int:
    from qdsweep.host.signals import SIGNALS

    _require_cores(arguments.cores)
    for number in SIGNALS:
        signal.signal(number, signal.default_int_handler)
    try:
        return _judge(arguments) if arguments.unpacked else _start(arguments)
    except KeyboardInterrupt:
        if not arguments.unpacked:
            print("qdsweep: interrupted; nothing is left of it", file=sys.stderr)
        return STOPPED


def _judge(arguments: argparse.Namespace) -> int:
    """Computes runs of the package in the working directory, and returns the exit code."""
    from qdsweep.features.audit.judgement import judge_package
    from qdsweep.features.audit.recompute import Sample

    is_all = arguments.all or arguments.runs
    sample = Sample(1.0 if is_all else arguments.share, arguments.seed, arguments.minutes)
    show = partial(print, flush=True)
    return judge_package(Results(arguments.unpacked), sample, arguments.runs, arguments.cores, show)


def _start(arguments: argparse.Namespace) -> int:
    """Starts the same command in the environment of the package, and returns its exit code."""
    from qdsweep.features.audit.reproduce import reproduce
    from qdsweep.host.process import image

    words = [f"--{name}={getattr(arguments, name)}" for name in ("seed", "minutes", "cores")]
    if arguments.runs:
        words += ["--runs", *arguments.runs]
    else:
        words += ["--all"] if arguments.all else [f"--share={100 * arguments.share!r}%"]
    return reproduce(
        arguments.package,
        words,
        partial(print, flush=True),
        runs=arguments.runs,
        here=arguments.here or image() is not None,  # as with `qdsweep --image FILE reproduce`
        image=arguments.inside,
        yes=arguments.yes,
    )
