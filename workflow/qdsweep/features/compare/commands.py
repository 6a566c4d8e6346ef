"""The commands compare, tables and figures of several sweeps, and tuned, a preset of the best."""

import argparse
from collections.abc import Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.cli.arguments import RESULTS_OPTION, Add, paragraph, sweep_name
from qdsweep.cli.sweeps import add_sweep, chosen_sweep
from qdsweep.records.paths import Results

if TYPE_CHECKING:
    from qdsweep.analysis.sheet import Sheet

COMPARE = """\
examples:
  qdsweep compare demo mine               tables and figures in results/comparisons/demo+mine
  qdsweep compare demo mine third
Finished runs of the sweeps are compared like those of one sweep. A run of several sweeps counts
once. Settings of a search are tested only on held-out seeds (confirm). Nothing is computed. Repeat
the command after further runs are finished.
"""

TUNED_PRESET = """\
examples:
  qdsweep tuned tune_cma_me                                      print the preset
  qdsweep tuned tune_cma_me --out config/algorithms/tuned.yaml   write it: `::: algorithm tuned`
The preset has the algorithm of the winner: of a search, the best of its last level; of another
sweep, the group with the best mean of the metric that ranks. Comments name its origin. Swept keys
that no algorithm has, such as batch_size, are listed: the experiment must set them. Later sweeps
with the seeds that chose it say so, and do not test it.
"""


def add_commands(add: Add) -> None:
    """Adds the command to the parser."""
    compare = add("compare", "Compare sweeps in tables and figures, with tests.", COMPARE)
    compare.add_argument("names", nargs="+", type=sweep_name, metavar="SWEEP", help="their names")
    compare.add_argument("--results", **RESULTS_OPTION)
    compare.set_defaults(command=_compare)
    tuned = add("tuned", "Write the setting that a sweep has chosen as a preset.", TUNED_PRESET)
    add_sweep(tuned)
    tuned.add_argument(
        "--out",
        type=Path,
        metavar="FILE.yaml",
        help="the file to write, such as config/algorithms/tuned.yaml (default: print it)",
    )
    tuned.set_defaults(command=_tuned)


def _compare(arguments: argparse.Namespace) -> int:
    from qdsweep.analysis.stages import STAGES
    from qdsweep.analysis.turns import run_stage
    from qdsweep.features.compare.merged import merge_sweeps
    from qdsweep.files import write_json

    results = Results(arguments.results)
    merged = merge_sweeps(results, arguments.names)
    sweep = results.comparison(merged.plan["name"])
    sweep.path.mkdir(parents=True, exist_ok=True)
    write_json(sweep.plan, merged.plan)
    stages = {stage.name: stage for stage in STAGES if stage.name in ("aggregate", "plot")}
    run_stage(stages["aggregate"], sweep.path, results.runs)

    from qdsweep.analysis.sheet import read_sheet
    from qdsweep.features.compare.several import sentence_apart
    from qdsweep.files import read_csv

    sheets = (sweep.table, sweep.tables / "factors.json", sweep.tables / "comparisons.json")
    for path in filter(Path.exists, sheets):
        print(*_lines(read_sheet(path)), sep="\n", end="\n\n")
    summary = read_csv(sweep.summary, stages["aggregate"].first)
    for note in (*merged.notes, *sentence_apart(merged, summary)):
        print(paragraph(note))
    print(f"{sweep.path}/: drawing the figures", flush=True)
    run_stage(stages["plot"], sweep.path, results.runs)
    folders = (sweep.tables, sweep.plots, sweep.plots / "more")
    files = [*sweep.path.glob("table.*"), *chain(*(sorted(path.glob("*.*")) for path in folders))]
    for stem, paths in groupby(files, lambda path: path.with_suffix("")):
        print(f"{stem}{', '.join(path.suffix for path in paths)}")
    return 0


def _tuned(arguments: argparse.Namespace) -> int:
    from qdsweep.features.compare.tuned_preset import tuned_preset, write_tuned

    preset = tuned_preset(chosen_sweep(arguments))
    if arguments.out is None:
        print(preset.text, end="")
        return 0
    write_tuned(preset, arguments.out)
    print(*preset.lines(arguments.out), sep="\n")
    return 0


def _lines(sheet: "Sheet") -> Iterator[str]:
    """Yields the title of a table, its rows with aligned columns, and its note; bold becomes *."""
    yield sheet.title
    rows = [sheet.columns, *([cell.text + "*" * cell.bold for cell in row] for row in sheet.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        texts = [
            text.ljust(width) if place < sheet.text else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(texts).rstrip()
    yield paragraph(sheet.note.replace("Bold:", "*:"))
