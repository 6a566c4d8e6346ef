"""The command reevaluate."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.cli.arguments import Add, cluster_of
from qdsweep.errors import BadInput
from qdsweep.files import require
from qdsweep.host.machine import apply_baseline
from qdsweep.records.paths import RunDir, is_imported

if TYPE_CHECKING:
    from qdsweep.config.experiment import Experiment

REEVALUATE = """\
examples:
  qdsweep reevaluate results/runs/ID
  qdsweep reevaluate results/runs/ID --times 50 --seed 7 --workers 4
For a whole sweep, write `reevaluate: {times: 10}` into the sweep file. After Ctrl-C, the same
command resumes. The run's own files do not change.
"""


def add_commands(add: Add) -> None:
    """Adds the command to the parser."""
    parser = add("reevaluate", "Re-evaluate a run's elites with fresh seeds.", REEVALUATE)
    parser.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="a finished run's folder")
    parser.add_argument("--times", type=int, default=10, help="evaluations per elite (default: 10)")
    parser.add_argument(
        "--seed", type=int, default=1_000_003, help="seed of the fresh seeds (default: 1000003)"
    )
    parser.add_argument("--common", action="store_true", help="the same fresh seeds for every run")
    parser.add_argument(
        "--cluster",
        default="local",
        help="a YAML file or a preset, of which one node is used (default: local)",
    )
    parser.add_argument("--workers", type=int, help="workers (default: the cluster's)")
    parser.add_argument("--cores", type=int, help=argparse.SUPPRESS)  # used by the rule reevaluate
    parser.set_defaults(command=_reevaluate)


def experiment_of(run_dir: Path) -> "Experiment":
    """Returns the experiment of a run whose elites can be evaluated here."""
    from qdsweep.config.compose import compose

    if is_imported(run_dir.resolve().name):
        raise BadInput(
            f"{run_dir} was imported, so its elites cannot be evaluated here; give the folder of "
            "a run that qdsweep computed"
        )
    return compose(str(require(RunDir(run_dir).config, "Give the folder of a finished run.")))


def _reevaluate(arguments: argparse.Namespace) -> int:
    cluster = cluster_of(arguments).on_one_node()
    if arguments.cores is not None:
        cluster = cluster.within(arguments.cores)
    apply_baseline(experiment_of(arguments.run_dir).cpu_baseline)  # before numpy is imported
    from qdsweep.elites.reevaluation import start_reevaluation

    words = arguments.run_dir, arguments.times, arguments.seed, cluster
    return start_reevaluation(*words, common=arguments.common)
