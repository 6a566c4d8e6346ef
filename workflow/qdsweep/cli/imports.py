"""The command import."""

import argparse
import sys
from pathlib import Path

from qdsweep.cli.arguments import RESULTS, Add
from qdsweep.records.sweep_dir import Results

IMPORT = """\
examples:
  qdsweep import theirs.yaml --check      whether the description fits its files; writes nothing
  qdsweep import theirs.yaml              one run of results/runs for each of its seeds
  imported: [theirs.yaml]                 a key of the sweep file: tables and figures show them
                                          beside the sweep's own runs, and snakemake imports them

theirs.yaml, beside the files that it names:
  algorithm: CMA-ME of pyribs             what tables and figures call it
  domain: lp_sphere                       runs compare with those of a domain of this name
  seeds: [1, 2, 3]
  objective_range: [0, 100]               the lowest is the offset of the QD score
  archive:
    file: seed{seed}.npz                  or .csv: objective, measures, solution
    dims: [50, 50]
    ranges: [[-51.2, 51.2], [-51.2, 51.2]]
    names: {objective: fitnesses}         where they call it something else
  metrics:                                may be left out: the end alone is known then
    file: seed{seed}.csv
    columns: {evaluations: Evals, qd_score: QD Score, coverage: Coverage (%)}
    times: {coverage: 0.01}               from percent
  source: our own script, pyribs 0.12
"""


def add_commands(add: Add) -> None:
    """Adds the command to the parser."""
    parser = add("import", "Take results of others as runs.", IMPORT)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE.yaml", help="what they are")
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--results", **RESULTS)
    parser.set_defaults(command=_import)


def _import(arguments: argparse.Namespace) -> int:
    from qdsweep.config.imported import read_all
    from qdsweep.experiment.foreign_results import read_foreign, write_run

    for run in read_all(map(str, arguments.files)):
        found = read_foreign(run)
        for warning in found.warnings:
            print(f"qdsweep: warning: {run.archive}: {warning}", file=sys.stderr)
        if not arguments.check:
            write_run(run, found, Results(arguments.results).runs)
        print(f"{run.id}: {found}{', fits' if arguments.check else ''}")
    return 0
