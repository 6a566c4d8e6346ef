"""The command plan: what a start of a sweep would do, and why."""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.cli.arguments import RESULTS, Add
from qdsweep.cli.columns import lines, paragraph

if TYPE_CHECKING:
    from qdsweep.planning.forecast import Forecast

PLAN = """\
examples:
  qdsweep plan                                   what `snakemake --cores 8` would compute
  qdsweep plan my_sweep.yaml                     the same of another sweep file
  qdsweep plan published_lp                      and of one that comes with qdsweep
  qdsweep plan my_sweep.yaml | grep -v nothing   only what there is to do
A line for each row of the sweep: what was swept, the state of its run, how much of the budget is
used, evaluations and core time left (known as soon as a run like it has begun), what will be done
and why. Of a search a line for each level. It computes and changes nothing.
"""


def add_commands(add: Add) -> None:
    """Adds the command to the parser."""
    plan = add("plan", "Show what a start of a sweep would do, a line a row, and why.", PLAN)
    plan.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="a sweep file or a preset (default: config/config.yaml)",
    )
    plan.add_argument("--results", **RESULTS)
    plan.set_defaults(command=_plan)


def _plan(arguments: argparse.Namespace) -> int:
    from qdsweep.config.files import find_config, find_preset
    from qdsweep.planning.changes import find_changes
    from qdsweep.planning.checks import check_fit, check_sweep
    from qdsweep.planning.confirmation import confirming
    from qdsweep.planning.forecast import first_batches, forecast
    from qdsweep.planning.outlook import outlook
    from qdsweep.planning.places import places_of
    from qdsweep.planning.search_outlook import search_outlook, spoiled
    from qdsweep.planning.settings import clusters_of, key_sources, plan_data, read_sweep
    from qdsweep.planning.table import sweep_of
    from qdsweep.records.plan import Plan
    from qdsweep.records.progress import read_standings
    from qdsweep.records.sweep_dir import Results

    file = arguments.file or find_config("config.yaml")
    if not Path(file).exists():
        file = find_preset("sweeps", file)
    results, files = Results(arguments.results), [file]
    settings = read_sweep({}, (), files)
    sources = key_sources((), files)
    sweep = sweep_of(settings, results, sources)
    check_sweep(settings, sweep, sources)
    for name, cluster in clusters_of(settings, sources).items():
        if settings.cluster != "auto":  # else it is not known before the executor is
            check_fit(cluster, name, sweep.runs)
    places = places_of(settings, sweep, sources)
    if places is not None:
        again = spoiled(settings.name, places, results)
        for line in search_outlook(settings, places, sweep, again, results):
            print(line.removeprefix("qdsweep: "))
        return 0
    confirm = confirming(settings, sweep, results)
    plan = Plan.of(plan_data(settings, sweep))
    runs = sweep.runs | confirm.runs
    standings = read_standings(results.sweep(settings.name), plan)
    changes = find_changes(settings.name, sweep, confirm, results)
    for line in _table(forecast(plan, standings, runs, changes)):
        print(line)
    said = outlook(settings.name, sweep, confirm, standings, changes, results)
    for line in (*first_batches(runs), *(line.removeprefix("qdsweep: ") for line in said)):
        print(paragraph(line))
    return 0


def _table(rows: "Iterable[Forecast]") -> Iterator[str]:
    """Yields heading and rows."""
    from qdsweep.experiment.run_log import duration

    rows = list(rows)
    units = {row.unit for row in rows}
    used = units.pop().upper() if len(units) == 1 else "DONE"
    cells = [("ROW", "RUN", "STATE", used, "EVALS LEFT", "CORE TIME", "WHAT WILL BE DONE")]
    for number, row in enumerate(rows, start=1):
        time = "unknown" if row.seconds is None else duration(row.seconds) if row.seconds else ""
        left = f"{'>= ' * row.least}{row.evaluations:,}" if row.evaluations else ""
        done = f"{row.done:,}/{row.budget:,}" + (f" {row.unit}" if units else "")
        cells.append((f"{number}", row.label, row.state, done, left, time, row.action))
    yield from lines("><<>>>", cells, label=1)
