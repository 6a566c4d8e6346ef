"""The commands of the rules: what makes tables, figures and the report of a sweep."""

import argparse
from collections.abc import Callable
from pathlib import Path

from qdsweep.cli.arguments import RESULTS, Add, sweep_name

Command = Callable[[argparse.Namespace], int]


def add_commands(add: Add) -> None:
    """Adds the commands to the parser."""

    def stage(name: str, text: str, command: Command) -> argparse.ArgumentParser:
        parser = add(name, text)
        parser.add_argument(
            "name", type=sweep_name, help="the sweep's name (a folder of results/sweeps/)"
        )
        parser.add_argument("--results", **RESULTS)
        parser.set_defaults(command=command)
        return parser

    aggregate = stage("aggregate", "Collect the runs of a sweep into tables.", _aggregate)
    aggregate.add_argument(
        "--partial", action="store_true", help="take runs that are not finished, too"
    )
    aggregate.add_argument("--at", help=argparse.SUPPRESS)  # a new value is a new job
    stage(
        "corrected",
        "Tabulate the corrected archives of a sweep (for the rule corrected_table).",
        _corrected,
    )
    stage(
        "winners",
        "Choose the groups to be confirmed (for the checkpoint choose_winners).",
        _winners,
    )
    stage(
        "confirmed",
        "Tabulate the winners on unseen seeds (for the rule confirmed_table).",
        _confirmed,
    )
    plot = stage("plot", "Draw the figures of a sweep.", _plot)
    plot.add_argument("--only", metavar="FIGURE", help="one figure, such as learning_curves, again")
    stage("evolution", "Animate how the archives of a sweep filled.", _evolution)
    stage(
        "rollouts",
        "Render elites of a sweep, as its key rollouts says (for the rule rollouts).",
        _rollouts,
    )
    stage("report", "Write the HTML report of a sweep.", _report)


def _aggregate(arguments: argparse.Namespace) -> int:
    from qdsweep.analysis.partial import take_snapshots
    from qdsweep.analysis.tables.aggregate import aggregate
    from qdsweep.analysis.tables.published import write_published
    from qdsweep.analysis.tables.timing_tables import write_timing

    sweep, runs = _folders(arguments)
    if arguments.partial:
        take_snapshots(sweep, runs)
    aggregate(sweep, runs, partial=arguments.partial)
    write_timing(sweep, runs)
    write_published(sweep)
    return 0


def _corrected(arguments: argparse.Namespace) -> int:
    from qdsweep.analysis.plan import read_plan
    from qdsweep.analysis.tables.corrected_table import write_corrected

    sweep, runs = _folders(arguments)
    write_corrected(sweep, runs, read_plan(sweep))
    return 0


def _winners(arguments: argparse.Namespace) -> int:
    from qdsweep.analysis.tables.confirmed import choose_winners

    choose_winners(*_folders(arguments))
    return 0


def _confirmed(arguments: argparse.Namespace) -> int:
    from qdsweep.analysis.tables.confirmed import write_confirmed

    write_confirmed(*_folders(arguments))
    return 0


def _plot(arguments: argparse.Namespace) -> int:
    from qdsweep.analysis.figures.plots import plot, plot_one

    if arguments.only is None:
        plot(*_folders(arguments))
    else:
        for path in plot_one(*_folders(arguments), arguments.only):
            print(path)
    return 0


def _evolution(arguments: argparse.Namespace) -> int:
    from qdsweep.analysis.figures.evolution import evolution

    evolution(*_folders(arguments))
    return 0


def _rollouts(arguments: argparse.Namespace) -> int:
    from qdsweep.host.cpu import apply_baseline, has_avx2

    apply_baseline("avx2" if has_avx2() else "native")
    from qdsweep.analysis.figures.rollouts import rollouts

    rollouts(*_folders(arguments))
    return 0


def _report(arguments: argparse.Namespace) -> int:
    from qdsweep.analysis.page.report import report

    report(*_folders(arguments))
    return 0


def _folders(arguments: argparse.Namespace) -> tuple[Path, Path]:
    """Returns the folder of the sweep and that of the runs."""
    return arguments.results / "sweeps" / arguments.name, arguments.results / "runs"
