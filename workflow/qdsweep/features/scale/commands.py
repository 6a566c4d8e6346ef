"""The command scale."""

import argparse
import sys
from pathlib import Path

from qdsweep.cli.arguments import CLUSTER, SET, Add, overrides
from qdsweep.errors import STOPPED

SCALE = """\
examples:
  qdsweep scale lunar_lander --set iterations=20 --workers 1,2,4,8 --out scaling/lander
  qdsweep scale arm --set algorithm=cma_mae --set iterations=50 --workers 1,2 --repeats 5 \\
      --out scaling/arm
      writes scaling.csv, .md, .tex, .json and the figure scaling.pdf, .png, .svg into the folder

Each repeat is a run from its start in a separate process. The time of its iterations after the
first one counts. Run nothing else on the machine. If the command is stopped, the same command
resumes it and keeps the finished runs.

exit codes:
  0 measured; 75 stopped (the same command resumes); 2 wrong input;
  1 a run failed, or the number of workers changed a result
"""


def add_commands(add: Add) -> None:
    """Adds the command to the parser."""
    scale = add("scale", "Measure the speed-up with the number of workers.", SCALE)
    scale.add_argument("experiment", help="a YAML file, or a preset of config/experiments/")
    scale.add_argument(
        "--workers", required=True, metavar="N,N,...", help="numbers of workers per node"
    )
    scale.add_argument("--set", **SET)
    scale.add_argument("--cluster", **CLUSTER)
    scale.add_argument(
        "--repeats", type=int, default=3, help="runs per number of workers (default: 3)"
    )
    scale.add_argument(
        "--out", dest="folder", type=Path, required=True, metavar="DIR", help="the folder to fill"
    )
    scale.set_defaults(command=_scale)


def _scale(arguments: argparse.Namespace) -> int:
    from qdsweep.config.cluster import read_cluster
    from qdsweep.config.compose import compose
    from qdsweep.features.scale.study import Study, check_study, measure_times, read_workers

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
        times = measure_times(study)
    except KeyboardInterrupt:
        print("qdsweep: stopped; the same command resumes", file=sys.stderr)
        return STOPPED
    from qdsweep.analysis.sheet import as_markdown
    from qdsweep.features.scale.study import write_scaling

    print(as_markdown(write_scaling(study, times)))
    print(f"written: {arguments.folder}/scaling.csv, .md, .tex, .json, .pdf, .png, .svg")
    return 0
