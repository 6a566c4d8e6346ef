"""The commands of the stages (tables, figures, report), import and scale."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qdsweep.analysis.stages import STAGES, Stage
from qdsweep.cli.arguments import CLUSTER, RESULTS_OPTION, SET, Add, overrides, sweep_name
from qdsweep.errors import STOPPED
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

IMPORT = """\
examples:
  qdsweep import theirs.yaml --check      check the description against its files; writes nothing
  qdsweep import theirs.yaml              one run of results/runs for each of its seeds
  imported: [theirs.yaml]                 a key of the sweep file: tables and figures show them
                                          with the sweep's own runs, and snakemake imports them

theirs.yaml, in the folder of the files that it names:
  algorithm: CMA-ME of pyribs             its name in tables and figures
  domain: lp_sphere                       the domain's name: tables compare runs of one domain
  seeds: [1, 2, 3]
  objective_range: [0, 100]               the lower end is the offset of the QD score
  archive:
    file: seed{seed}.npz                  or .csv: objective, measures, solution
    dims: [50, 50]
    ranges: [[-51.2, 51.2], [-51.2, 51.2]]
    names: {objective: fitnesses}         where a column has another name
  metrics:                                may be left out: then there are no curves
    file: seed{seed}.csv
    columns: {evaluations: Evals, qd_score: QD Score, coverage: Coverage (%)}
    times: {coverage: 0.01}               from percent
  source: our own script, pyribs 0.12
"""
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
        results = Results(arguments.results)
        chosen = {option: getattr(arguments, option) for option in options}
        stage.run(results.sweep(arguments.name).path, results.runs, **chosen)
        return 0

    return command


def add_import_commands(add: Add) -> None:
    """Adds the command to the parser."""
    parser = add("import", "Import results computed elsewhere.", IMPORT)
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE.yaml", help="their descriptions"
    )
    parser.add_argument("--check", action="store_true", help="check only, write nothing")
    parser.add_argument("--results", **RESULTS_OPTION)
    parser.set_defaults(command=_import)


def _import(arguments: argparse.Namespace) -> int:
    from qdsweep.config.imported import read_all
    from qdsweep.runs.foreign_results import read_foreign, write_run

    for run in read_all(map(str, arguments.files)):
        results = read_foreign(run)
        for warning in results.warnings:
            print(f"qdsweep: warning: {run.archive}: {warning}", file=sys.stderr)
        if not arguments.check:
            write_run(run, results, Results(arguments.results).runs)
        print(f"{run.id}: {results}{', fits' if arguments.check else ''}")
    return 0


def add_scale_commands(add: Add) -> None:
    """Adds the commands to the parser."""
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
    from qdsweep.scaling.study import Study, check_study, measure_times, read_workers

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
    from qdsweep.scaling.study import write_scaling

    print(as_markdown(write_scaling(study, times)))
    print(f"written: {arguments.folder}/scaling.csv, .md, .tex, .json, .pdf, .png, .svg")
    return 0
