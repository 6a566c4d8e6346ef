"""The commands of a sweep: expand, plan, status, clean.

plan prints the work that a start of the sweep would do. clean removes files that nothing needs, and
runs that no sweep refers to.
"""

import argparse
import gc
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.cli.arguments import RESULTS_OPTION, Add, lines, paragraph, sweep_name
from qdsweep.errors import BadInput
from qdsweep.records.paths import Results, SweepDir

if TYPE_CHECKING:
    from qdsweep.planning.outlook import Forecast


EXPAND = """\
examples:
  qdsweep expand "::: algorithm cma_me map_elites ::: seed 1 2 3"
  qdsweep expand ::: a 1 2 :::+ b x y
  qdsweep expand ::: seed 1 2 :::: values.txt
  qdsweep expand --samples 4 ":::~ sigma0 log 0.05 5 ::: seed 1 2"
The grammar is that of GNU parallel: the rows are those of `parallel --header :` (man parallel).
"""

STATUS = """\
examples:
  qdsweep status          the sweep that was started last
  qdsweep status demo
"""

CLEAN = """\
examples:
  qdsweep clean --dry-run               list temporary files that a kill left a day ago
  qdsweep clean --orphans --dry-run     also list runs that no sweep in results/sweeps refers to
  qdsweep clean --orphans
  qdsweep clean --runs demo --dry-run   list the runs that only this sweep has
  qdsweep clean --runs demo             ask, and remove them: the next start computes them again
  qdsweep clean --runs lunar_lander-cma_me-s1-0a1b2c3d4e --yes
"""

PLAN = """\
examples:
  qdsweep plan                                   the work of `snakemake --cores all`
  qdsweep plan my_sweep.yaml                     the same for another sweep file
  qdsweep plan published_cma_mae                 the same for a sweep that comes with qdsweep
  qdsweep plan my_sweep.yaml | grep -v nothing   only rows with work to do
  qdsweep plan --config outdated=recompute       also the runs that this would compute again
There is one line per row of the sweep: the swept values, the state of the run, the used budget,
evaluations and core time left, the action and its reason. The core time is known once a similar run
has started. A search has one line per level. A line counts the runs of `confirm`: the largest that
may be chosen, until the winners are known. Another line has the lead of a group that the seeds can
show. The command computes and changes nothing.
"""


def add_commands(add: Add) -> None:
    """Adds the commands to the parser."""
    expand = add("expand", "Print the rows of a sweep expression as tab-separated values.", EXPAND)
    expand.add_argument(
        "--samples", type=int, metavar="N", help="number of values that each `:::~` source draws"
    )
    expand.add_argument(
        "--sampling", default="random", help="random (default), sobol, halton or lhs"
    )
    expand.add_argument("--seed", type=int, default=0, help="seed of the draws (default: 0)")
    expand.add_argument(
        "sweep", nargs=argparse.REMAINDER, help="the sweep, as one or several words"
    )
    expand.set_defaults(command=_expand)

    status = add("status", "Print the state of every run.", STATUS)
    add_sweep(status)
    status.set_defaults(command=print_status)
    clean = add("clean", "Remove leftover files, orphaned runs or chosen runs.", CLEAN)
    clean.add_argument(
        "--orphans", action="store_true", help="also remove runs that no sweep refers to"
    )
    clean.add_argument(
        "--runs",
        nargs="+",
        metavar="NAME",
        help="remove only these runs, or the runs that only this sweep has",
    )
    clean.add_argument("--yes", action="store_true", help="remove --runs without asking")
    clean.add_argument("--dry-run", action="store_true", help="list only")
    clean.add_argument("--results", **RESULTS_OPTION)
    clean.set_defaults(command=_clean)


def add_sweep(command: argparse.ArgumentParser) -> None:
    """Adds the arguments that `chosen_sweep` reads."""
    command.add_argument(
        "name", type=sweep_name, nargs="?", help="the sweep (default: the one started last)"
    )
    command.add_argument("--results", **RESULTS_OPTION)


def _expand(arguments: argparse.Namespace) -> int:
    from pydantic import ValidationError

    from qdsweep.config.explain import explain
    from qdsweep.config.search import Search
    from qdsweep.search.draws import drawn_by
    from qdsweep.sweep.grammar import from_argv, to_tsv

    draw = None
    if arguments.samples is not None:
        keys = {key: getattr(arguments, key) for key in ("samples", "sampling", "seed")}
        try:
            draw = drawn_by(Search(**keys))
        except ValidationError as error:
            sources: dict[tuple[str | int, ...], str] = {(key,): f"--{key}" for key in keys}
            raise BadInput(explain(error, Search, keys, sources)) from None
    table = from_argv(arguments.sweep, draw=draw)
    for line in table.unpaired:
        print(f"qdsweep: warning: {line}", file=sys.stderr)
    sys.stdout.write(to_tsv(table))
    return 0


@contextmanager
def _keeping_all() -> Iterator[None]:
    """Disables garbage collection: it would visit 100,000 objects many times."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def chosen_sweep(arguments: argparse.Namespace) -> SweepDir:
    """Returns the sweep of this name, or the one started last.

    Raises:
        BadInput: There is none.
    """
    results = Results(arguments.results)
    if arguments.name:
        return results.sweep(arguments.name)
    if known := results.known_sweeps():
        return known[0]
    if arguments.results is RESULTS_OPTION["default"]:
        from qdsweep.cli.next_step import how_to_start

        raise BadInput(f"no sweep was started in this folder yet. {how_to_start()}")
    raise BadInput(
        f"--results {arguments.results}: it has no sweep; give the results/ of a started sweep"
    )


@_keeping_all()
def print_status(arguments: argparse.Namespace) -> int:
    """Prints the state of every run, and returns the exit code."""
    from rich.console import Console

    from qdsweep.analysis.search_progress import (
        failures,
        has_cells,
        levels_so_far,
        read_search,
        read_states,
        reevaluations,
        search_line,
        summary_line,
        table,
    )
    from qdsweep.cli.next_step import command_of, has_new_config
    from qdsweep.config.files import CONFIG
    from qdsweep.records.plan import read_plan
    from qdsweep.records.progress import outdated_lines
    from qdsweep.records.status import REMEDY

    sweep = chosen_sweep(arguments)
    plan = read_plan(sweep)
    search = read_search(sweep, plan)
    standings = read_states(sweep, plan, search)
    metric = plan.rank.drawn(has_cells=has_cells(standings))
    heading = ("RUN", "STATE", "DONE", metric.heading, "ETA", "USED", "LEFT", "NOTE")
    rows = [heading, *table(standings, metric)]
    if search is not None:  # room for the reason of a stop; the summary line has the core time
        rows = [(*row[:5], row[-1]) for row in rows]
    console = Console(highlight=False, soft_wrap=True)
    print(f"sweep {sweep.name}")
    shown = lines("<<>>>>>"[: len(rows[0]) - 1], rows, label=0)
    for state, line in zip(("", *(now.state for now in standings)), shown, strict=True):
        if state == "failed":
            console.print(line, markup=False, style="red")
        else:  # rich takes a hundred times as long, for most of 100,000 lines
            console.file.write(f"{line}\n")
    failed = [*failures(standings, sweep.results)]
    for line in failed:
        console.print(paragraph(line), markup=False, style="red")
    if failed and search is None:  # settings of a search that failed rank last
        console.print(REMEDY, markup=False)
    if search is not None:
        for line in lines("<<", list(levels_so_far(search)), label=0):
            console.print(line, markup=False)
        console.print(search_line(search, standings), markup=False)
    console.print(summary_line(standings), markup=False)
    is_here = arguments.results is RESULTS_OPTION["default"]
    start = command_of(sweep) if is_here else ""
    for line in outdated_lines(standings, sweep.results, start):
        console.print(paragraph(line), markup=False)
    for state, line in reevaluations(sweep, plan):
        console.print(line, markup=False, style="red" if state == "failed" else None)
    if is_here and has_new_config(sweep):
        print(f"{CONFIG} has changed since the last start: `qdsweep plan` shows the work")
    return 0


def _clean(arguments: argparse.Namespace) -> int:
    from qdsweep.records.aside import put_back
    from qdsweep.records.leftovers import leftovers, named_runs, orphans, remove, size

    results = Results(arguments.results)
    for run in results.known_runs() if not arguments.dry_run else ():
        put_back(run)
    if arguments.runs:
        runs, shared = named_runs(results, arguments.runs)
        for name in shared:
            print(f"kept: {name} (another sweep has it, too)")
        paths = [results.run(run).path for run in runs]
        paths += [films for run in runs if (films := results.explore / run).is_dir()]
    else:
        paths = [*leftovers(results), *(orphans(results) if arguments.orphans else ())]
    sizes = [size(path) for path in paths]
    for path, bytes_ in zip(paths, sizes, strict=True):
        print(f"{bytes_ / 1e6:10.3f} MB  {path}{_target(path)}")
    total = f"{len(paths)} found, {sum(sizes) / 1e6:.3f} MB"
    if arguments.dry_run:
        print(f"{total} would be removed")
        return 0
    if arguments.runs and paths and not arguments.yes:
        if not sys.stdin.isatty():
            raise BadInput(f"{total}: there is no terminal to ask; add --yes to remove them")
        if input(f"{total}. Remove them with their reload files? [y/N] ").lower() != "y":
            print("nothing was removed")
            return 1
    for path in paths:
        remove(path)
    print(f"{total} removed")
    return 0


def add_plan_commands(add: Add) -> None:
    """Adds the command to the parser."""
    plan = add("plan", "Show what would be computed, and why, one line per row.", PLAN)
    plan.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="a sweep file or a preset (default: config/config.yaml)",
    )
    plan.add_argument(
        "--config",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="keys of the sweep file, as `snakemake --config` takes them",
    )
    plan.add_argument("--results", **RESULTS_OPTION)
    plan.set_defaults(command=_plan)


def _plan(arguments: argparse.Namespace) -> int:
    from qdsweep.config.files import find_config, find_preset
    from qdsweep.planning.outlook import first_batches
    from qdsweep.planning.power import power_lines
    from qdsweep.planning.request import Given
    from qdsweep.planning.start import Start

    given = {}
    for entry in arguments.config:
        key, equals, given[key] = entry.partition("=")
        if not equals:
            raise BadInput(f"--config {entry}: write KEY=VALUE, such as outdated=recompute")
    file = arguments.file or find_config("config.yaml")
    if not Path(file).exists():
        file = find_preset("sweeps", file)
    start = Start(Results(arguments.results), Given(given, arguments.config, files=[file]))
    start.check_fingerprints()
    outlook = [line.removeprefix("qdsweep: ") for line in start.lines(is_dry=True)]
    if start.search is not None:
        print(*outlook, sep="\n")
        return 0
    print(*_table(start.forecast()), sep="\n")
    power = power_lines(start.settings, start.sweep)
    for line in (*first_batches(start.runs), *power, *outlook):
        print(paragraph(line))
    return 0


def _table(rows: "Iterable[Forecast]") -> Iterator[str]:
    """Yields heading and rows."""
    from qdsweep.text import duration

    rows = list(rows)
    units = {row.unit for row in rows}
    used = units.pop().upper() if len(units) == 1 else "DONE"
    cells = [("ROW", "RUN", "STATE", used, "EVALS LEFT", "CORE TIME", "WHAT WILL BE DONE")]
    for number, row in enumerate(rows, start=1):
        time = "unknown" if row.seconds is None else duration(row.seconds) if row.seconds else ""
        left = f"{'>= ' * row.least}{row.evaluations:,}" if row.evaluations else ""
        left = "unknown" if row.evaluations is None else left
        done = f"{row.done:,}/{row.budget:,}" + (f" {row.unit}" if units else "")
        cells.append((f"{number}", row.label, row.state, done, left, time, row.action))
    yield from lines("><<>>>", cells, label=1)


def _target(path: Path) -> str:
    """Returns where a link leads; its target stays."""
    if not path.is_symlink():
        return ""
    return f" (a link to {path.readlink()}, which {'stays' if path.exists() else 'is missing'})"
