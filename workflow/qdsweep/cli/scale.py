"""The command scale."""

import argparse
import sys
from pathlib import Path

from qdsweep.cli.arguments import CLUSTER, SET, Add, overrides

SCALE = """\
examples:
  qdsweep scale lunar_lander --set iterations=20 --workers 1,2,4,8 --out scaling/lander
  qdsweep scale arm --set algorithm=cma_mae --set iterations=50 --workers 1,2 --repeats 5 \\
      --out scaling/arm
      writes scaling.csv, .md, .tex, .json and the figure scaling.pdf, .png, .svg into the folder

Each repeat is a run from its beginning, in a process of its own. What counts is the time of its
iterations after the first. Leave the machine to it. Killed, the same command goes on: what is
finished is not run again.

exit codes:
  0 measured; 75 stopped (the same command goes on); 2 bad input;
  1 a run failed, or the number of workers changed a result
"""


def add_commands(add: Add) -> None:
    """Adds the commands to the parser."""
    scale = add("scale", "Measure how an experiment scales with its workers.", SCALE)
    scale.add_argument("experiment", help="a YAML file, or a preset of config/experiments/")
    scale.add_argument(
        "--workers", required=True, metavar="N,N,...", help="numbers of workers, on each node"
    )
    scale.add_argument("--set", **SET)
    scale.add_argument("--cluster", **CLUSTER)
    scale.add_argument(
        "--repeats", type=int, default=3, help="runs of each number of workers (default: 3)"
    )
    scale.add_argument(
        "--out", dest="folder", type=Path, required=True, metavar="DIR", help="the folder to fill"
    )
    scale.set_defaults(command=_scale)


def _scale(arguments: argparse.Namespace) -> int:
    from qdsweep.config.cluster import read_cluster
    from qdsweep.config.compose import compose
    from qdsweep.scaling.study import Study, check_study, measure, read_workers

    workers = read_workers(arguments.workers)
    experiment = compose(arguments.experiment, overrides(arguments.set), source="--set")
    cluster = read_cluster(arguments.cluster)
    settings = [f"--set={setting}" for setting in arguments.set]
    study = Study(
        experiment,
        [arguments.experiment, *settings, "--cluster", arguments.cluster],
        {n: cluster.with_workers(n, arguments.cluster) for n in workers},
        arguments.repeats,
        arguments.folder,
    )
    check_study(study, arguments.cluster)
    try:
        times = measure(study)
    except KeyboardInterrupt:
        print("qdsweep: stopped; the same command goes on", file=sys.stderr)
        return 75
    from qdsweep.analysis.tables.sheet import as_markdown
    from qdsweep.scaling.scaling_results import write_scaling

    print(as_markdown(write_scaling(study, times)))
    print(f"written: {arguments.folder}/scaling.csv, .md, .tex, .json, .pdf, .png, .svg")
    return 0
