"""The commands of the stages: tables, figures, report."""

import argparse
import os
from collections.abc import Callable
from typing import Any

from qdsweep.analysis.stage import Stage
from qdsweep.analysis.stages import STAGES
from qdsweep.cli.arguments import RESULTS_OPTION, Add, sweep_name
from qdsweep.records.paths import Results

# Stage -> its own options, which its function takes as keyword arguments.
_OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "aggregate": {
        "--partial": {"action": "store_true", "help": "include unfinished runs"},
        "--cores": {
            "type": int,
            "default": len(os.sched_getaffinity(0)),
            "help": "cores that may read the runs of a large sweep (default: all)",
        },
    },
    "plot": {
        "--only": {"metavar": "FIGURE", "help": "redraw only this one, such as learning_curves"},
    },
}


def add_commands(add: Add) -> None:
    """Adds the commands to the parser."""
    for stage in STAGES:
        parser = add(stage.name, stage.help, f"example:\n  qdsweep {stage.name} demo\n")
        parser.add_argument(
            "name", type=sweep_name, help="the sweep's name (a folder of results/sweeps/)"
        )
        parser.add_argument("--results", **RESULTS_OPTION)
        options = [
            parser.add_argument(option, **about).dest
            for option, about in _OPTIONS.get(stage.name, {}).items()
        ]
        parser.set_defaults(command=_command(stage, options))
        if stage.name == "aggregate":
            parser.add_argument("--at", help=argparse.SUPPRESS)  # a new value makes a new job


def _command(stage: Stage, options: list[str]) -> Callable[[argparse.Namespace], int]:
    def command(arguments: argparse.Namespace) -> int:
        from qdsweep.analysis.turns import run_stage

        results = Results(arguments.results)
        chosen = {option: getattr(arguments, option) for option in options}
        run_stage(stage, results.sweep(arguments.name).path, results.runs, **chosen)
        return 0

    return command
