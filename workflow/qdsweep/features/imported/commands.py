"""The command import."""

import argparse
import sys
from pathlib import Path

from qdsweep.cli.arguments import RESULTS_OPTION, Add
from qdsweep.records.paths import Results

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
  metrics:                                or `evaluations: 100000`: then there are no curves
    file: seed{seed}.csv
    columns: {evaluations: Evals, qd_score: QD Score, coverage: Coverage (%)}
    times: {coverage: 0.01}               from percent
  source: our own script, pyribs 0.12
"""


def add_commands(add: Add) -> None:
    """Adds the command to the parser."""
    parser = add("import", "Import results computed elsewhere.", IMPORT)
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE.yaml", help="their descriptions"
    )
    parser.add_argument("--check", action="store_true", help="check only, write nothing")
    parser.add_argument("--results", **RESULTS_OPTION)
    parser.set_defaults(command=_import)


def _import(arguments: argparse.Namespace) -> int:
    from qdsweep.features.imported.description import read_all
    from qdsweep.features.imported.foreign_results import read_foreign, write_run

    for run in read_all(map(str, arguments.files)):
        results = read_foreign(run)
        for warning in results.warnings:
            print(f"qdsweep: warning: {run.archive}: {warning}", file=sys.stderr)
        if not arguments.check:
            write_run(run, results, Results(arguments.results).runs)
        print(f"{run.id}: {results}{', fits' if arguments.check else ''}")
    return 0
