"""The command rollout."""

import argparse
import math
import re
from pathlib import Path

from qdsweep.cli.arguments import Add
from qdsweep.cli.elites import experiment_of
from qdsweep.errors import BadInput
from qdsweep.files import write_json
from qdsweep.host.machine import apply_baseline
from qdsweep.records.paths import RunDir

ELITES = ("best", "median", "corners")
ROLLOUT = """\
examples:
  qdsweep rollout results/runs/ID
  qdsweep rollout results/runs/ID --elites best --seconds 10 --out /tmp/videos
  qdsweep rollout results/runs/ID --at -0.2,-1.5 --at 0.5,-1
For a whole sweep, write `rollouts: {}` into the sweep file. An episode has the seed of the elite's
evaluation, and the same score.
"""


def add_commands(add: Add) -> None:
    """Adds the command to the parser."""
    rollout = add("rollout", "Render episodes of a run's elites as animated GIFs.", ROLLOUT)
    rollout.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="a finished run's folder")
    rollout.add_argument(
        "--elites",
        nargs="+",
        choices=ELITES,
        default=[],
        help="which elites; corners: the extreme ones in each measure (default without --at: all)",
    )
    rollout.add_argument(
        "--at",
        action="append",
        type=point,
        default=[],
        metavar="X,Y",
        help="the elite of the cell at these measures (repeatable)",
    )
    rollout._negative_number_matcher = re.compile(r"-[\d.]")  # `--at -0.5,1` is a value
    # Not `out`: that is the folder of a run that is computed.
    rollout.add_argument(
        "--out",
        type=Path,
        dest="folder",
        metavar="DIR",
        help="the folder to fill (default: RUN_DIR/rollouts)",
    )
    rollout.add_argument(
        "--seconds",
        type=float,
        default=6.0,
        metavar="S",
        help="length of an animation at most (default: 6)",
    )
    rollout.set_defaults(command=_rollout)


def point(text: str) -> list[float]:
    """Returns the numbers of a point, such as 1.1,2.0."""
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(map(math.isfinite, values)):
        raise argparse.ArgumentTypeError(f"{text!r}: give one number per measure, such as 1.1,2.0")
    return values


def _rollout(arguments: argparse.Namespace) -> int:
    from qdsweep.config.domain_keys import require_episodes

    if not arguments.seconds > 0:
        raise BadInput(f"--seconds {arguments.seconds:g}: give a number above 0")
    experiment = experiment_of(arguments.run_dir)
    require_episodes(experiment.domain)
    apply_baseline(experiment.cpu_baseline)
    from qdsweep.features.rollouts.rollout import rollout

    folder, at = arguments.folder or RunDir(arguments.run_dir).rollouts, arguments.at
    elites = arguments.elites or ([] if at else ELITES)
    entries = rollout(arguments.run_dir, folder, elites, arguments.seconds, at=at)
    write_json(folder / "rollouts.json", {"rollouts": entries})
    for entry in entries:
        score, own = entry["rendered"]["objective"], "" if entry["own_seed"] else ", not its own"
        print(f"{folder / entry['file']}: {entry['title']}, objective {score:.6g}", end="")
        print(f" (seed {entry['seed']}{own})")
    return 0
