"""The commands of the stages: what makes tables, figures and the report of a sweep."""

import argparse
from collections.abc import Callable
from typing import Any

from qdsweep.analysis.stages import STAGES, Stage
from qdsweep.cli.arguments import RESULTS, Add, sweep_name
from qdsweep.records.sweep_dir import Results

# Stage -> its own options, which its function takes as keyword arguments.
_OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "aggregate": {
        "--partial": {"action": "store_true", "help": "take runs that are not finished, too"},
    },
    "plot": {
        "--only": {"metavar": "FIGURE", "help": "one figure, such as learning_curves, again"},
    },
}


def add_commands(add: Add) -> None:
    """Adds the commands to the parser."""
    for stage in STAGES:
        parser = add(stage.name, stage.help)
        parser.add_argument(
            "name", type=sweep_name, help="the sweep's name (a folder of results/sweeps/)"
        )
        parser.add_argument("--results", **RESULTS)
        options = [
            parser.add_argument(option, **about).dest
            for option, about in _OPTIONS.get(stage.name, {}).items()
        ]
        parser.set_defaults(command=_command(stage, options))
        if stage.name == "aggregate":
            parser.add_argument("--at", help=argparse.SUPPRESS)  # a new value is a new job


def _command(stage: Stage, options: list[str]) -> Callable[[argparse.Namespace], int]:
    def command(arguments: argparse.Namespace) -> int:
        results = Results(arguments.results)
        chosen = {option: getattr(arguments, option) for option in options}
        stage.run(results.sweep(arguments.name).path, results.runs, **chosen)
        return 0

    return command
