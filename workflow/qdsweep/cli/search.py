"""The commands of a search's jobs: place and decide."""

import argparse
import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from qdsweep.cli.arguments import RESULTS, Add, sweep_name

if TYPE_CHECKING:
    from qdsweep.records.run_dir import RunDir


def add_commands(add: Add) -> None:
    """Adds the commands to the parser."""
    place = add("place", "Lengthen the run of a place of a search (for the rule search_place).")
    place.add_argument("name", metavar="SWEEP", type=sweep_name)
    place.add_argument("level", metavar="LEVEL")
    place.add_argument("place", metavar="PLACE", type=int)
    place.add_argument("--seed", default="", help="the swept seed, if one is swept")
    place.add_argument("--cluster", default="local")
    place.add_argument("--cores", type=int, help="cores of this machine that it may use")
    place.add_argument("--results", **RESULTS)
    place.set_defaults(command=_place)

    decide = add("decide", "Decide who goes on in a search (for the rule search_decide).")
    decide.add_argument("name", metavar="SWEEP", type=sweep_name)
    decide.add_argument("level", metavar="LEVEL")
    decide.add_argument("block", metavar="BLOCK", type=int)
    decide.add_argument("--results", **RESULTS)
    decide.set_defaults(command=_decide)


def _place(arguments: argparse.Namespace) -> int:
    from qdsweep.experiment.place import take_place
    from qdsweep.host.briefing import RANKS
    from qdsweep.planning.decision import given, level_of
    from qdsweep.records.plan import read_plan
    from qdsweep.records.sweep_dir import Results

    sweep = Results(arguments.results).sweep(arguments.name)
    plan = read_plan(sweep)
    level = level_of(plan, arguments.level)
    start = partial(_start, arguments, f"{plan.unit}={level.budget}")
    if RANKS in os.environ:  # the process that started the ranks writes the marker
        run = given(sweep, plan.candidates, level, arguments.place).runs[arguments.seed]
        return start(sweep.results.run(run))

    def said(run: "RunDir") -> int:
        print(
            f"qdsweep: {run.name} to {level.budget:,} {plan.unit}; its log: {run.state.log}. With "
            "no line below, the process was killed or ended by itself (os._exit, a crash)",
            file=sys.stderr,
            flush=True,
        )
        code = start(run)
        print(f"qdsweep: {run.name} ended with exit code {code}", file=sys.stderr)
        return code

    return take_place(sweep, plan, arguments.level, arguments.place, arguments.seed, said)


def _start(arguments: argparse.Namespace, budget: str, run: "RunDir") -> int:
    from qdsweep.cli.runs import planned, start_planned

    experiment, cluster = planned(run, budget, arguments.cluster, arguments.cores)
    return start_planned(experiment, run, cluster)


def _decide(arguments: argparse.Namespace) -> int:
    from qdsweep.planning.decision import decide
    from qdsweep.records.sweep_dir import Results

    decide(Results(arguments.results).sweep(arguments.name), arguments.level, arguments.block)
    return 0
