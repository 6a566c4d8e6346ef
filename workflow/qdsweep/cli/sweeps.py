"""The commands of a sweep: expand, status, watch, export, clean.

The command plan prints what a start of a sweep would do, and why. The command clean removes
files that nothing needs, and runs that no sweep refers to.
"""

import argparse
import gc
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.cli.arguments import RESULTS, Add, lines, paragraph, sweep_name
from qdsweep.config.files import nearest
from qdsweep.config.imported import is_imported
from qdsweep.errors import BadInput
from qdsweep.host.lock import may_be_alive
from qdsweep.records.paths import Results, SweepDir
from qdsweep.records.plan import read_confirm, read_plan
from qdsweep.records.search import chosen_runs

if TYPE_CHECKING:
    from qdsweep.planning.outlook import Forecast


EXPAND = """\
examples:
  qdsweep expand "::: algorithm cma_me map_elites ::: seed 1 2 3"
  qdsweep expand ::: a 1 2 :::+ b x y
  qdsweep expand ::: seed 1 2 :::: values.txt
  qdsweep expand --samples 4 ":::~ sigma0 log 0.05 5 ::: seed 1 2"
The grammar is GNU parallel's (man parallel): what `parallel --header :` would run.
"""

STATUS = """\
examples:
  qdsweep status          the sweep that was started last
  qdsweep status demo
  qdsweep watch demo      follows it
"""

WATCH = """\
examples:
  qdsweep watch            the sweep that was started last, or the first one that is started
  qdsweep watch demo
  ssh -t cluster 'cd study && .venv/bin/qdsweep watch demo --every 10'
keys: arrows, PgUp, PgDn, Home, End select; f shows all, unfinished or failed; q quits
It only reads, and little of it: any number of people may watch a sweep.
"""

EXPORT = """\
examples:
  qdsweep export demo                        demo.zip: configs, tables, figures, archives, metrics
  qdsweep export demo --out supplement.zip
  qdsweep export demo --allow max            `max` is a user's name here, but names nobody
Fit for a double-blind review: a host name, your user name, a path of yours, an e-mail address or a
Slurm job in any packed text is exit code 1, and there is no file. Same sweep, same bytes.
Unfinished runs are refused, unless the tables were made of them (--config partial=true).
"""

CLEAN = """\
examples:
  qdsweep clean --dry-run             what a kill has left behind
  qdsweep clean --orphans --dry-run   runs that no sweep of results/sweeps refers to
  qdsweep clean --orphans
  qdsweep clean --runs demo --dry-run   the runs of a sweep that no other sweep has
  qdsweep clean --runs demo             asks, and removes them: the next start computes them again
  qdsweep clean --runs lunar_lander-cma_me-s1-0a1b2c3d4e --yes
"""


def add_commands(add: Add) -> None:
    """Adds the commands to the parser."""
    expand = add("expand", "Print the rows of a sweep as tab-separated values.", EXPAND)
    expand.add_argument(
        "--samples", type=int, metavar="N", help="how many values `:::~` sources draw"
    )
    expand.add_argument(
        "--sampling", default="random", help="random (default), sobol, halton or lhs"
    )
    expand.add_argument("--seed", type=int, default=0, help="of the draws (default: 0)")
    expand.add_argument("sweep", nargs=argparse.REMAINDER, help="the sweep, one or many words")
    expand.set_defaults(command=_expand)

    status = add("status", "Show where the runs of a sweep stand.", STATUS)
    watch = add("watch", "Follow a sweep on the terminal while it runs.", WATCH)
    for command in (status, watch):
        command.add_argument(
            "name", type=sweep_name, nargs="?", help="the sweep (default: the one started last)"
        )
        command.add_argument("--results", **RESULTS)
    status.set_defaults(command=_status)
    watch.add_argument(
        "--every", type=float, default=2.0, metavar="S", help="seconds between looks (default: 2)"
    )
    watch.set_defaults(command=_watch)

    export = add("export", "Pack a finished sweep for a paper's supplement, anonymously.", EXPORT)
    export.add_argument("name", type=sweep_name, help="a sweep, a folder of results/sweeps/")
    export.add_argument(
        "--out", type=Path, metavar="FILE.zip", help="the file to write (default: NAME.zip)"
    )
    export.add_argument("--results", **RESULTS)
    export.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="WORD",
        help="a name that is also a common word, and may stay (repeatable)",
    )
    export.set_defaults(command=_export)

    clean = add("clean", "List and remove files that nothing needs, or chosen runs.", CLEAN)
    clean.add_argument("--orphans", action="store_true", help="also runs that no sweep refers to")
    clean.add_argument(
        "--runs",
        nargs="+",
        metavar="NAME",
        help="only these runs, or the runs of a sweep that no other sweep has",
    )
    clean.add_argument("--yes", action="store_true", help="remove --runs without asking")
    clean.add_argument("--dry-run", action="store_true", help="list only")
    clean.add_argument("--results", **RESULTS)
    clean.set_defaults(command=_clean)


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
    """Disables garbage collection, which would visit all of 100,000 standings again and again."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@_keeping_all()
def _status(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from qdsweep.analysis.search import (
        failures,
        levels_so_far,
        read_search,
        reevaluations,
        search_line,
        search_standings,
        summary_line,
        table,
    )
    from qdsweep.records.progress import read_standings

    results = Results(arguments.results)
    known = results.known_sweeps()
    if arguments.name is None and not known:
        raise BadInput(f"{arguments.results}: no sweep was started here yet; give --results")
    sweep = results.sweep(arguments.name) if arguments.name else known[0]
    plan = read_plan(sweep)
    standings, search = read_standings(sweep, plan), read_search(sweep, plan)
    if search is not None:
        standings = search_standings(sweep, search, standings)
    metric = plan.rank.drawn
    heading = ("RUN", "STATE", "DONE", metric.heading, "ETA", "CORE-H", "LEFT", "NOTE")
    rows = [heading, *table(standings, metric)]
    if search is not None:  # leaves room for the reason of a stop; the sums below have the hours
        rows = [(*row[:5], row[-1]) for row in rows]
    console = Console(highlight=False, soft_wrap=True)
    print(f"sweep {sweep.name}")
    shown = lines("<<>>>>>"[: len(rows[0]) - 1], rows, label=0)
    for state, line in zip(("", *(now.state for now in standings)), shown, strict=True):
        if state == "failed":
            console.print(line, markup=False, style="red")
        else:  # most of 100,000 lines: rich takes a hundred times as long
            console.file.write(f"{line}\n")
    for line in failures(standings):
        console.print(paragraph(line), markup=False, style="red")
    if search is not None:
        for line in lines("<<", list(levels_so_far(search)), label=0):
            console.print(line, markup=False)
        console.print(search_line(search, standings), markup=False)
    console.print(summary_line(standings), markup=False)
    for state, line in reevaluations(sweep, plan):
        console.print(line, markup=False, style="red" if state == "failed" else None)
    return 0


def _watch(arguments: argparse.Namespace) -> int:
    if arguments.every < 0.1:
        raise BadInput(f"--every {arguments.every:g}: at least 0.1 seconds are needed")
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if not all(stream.isatty() for stream in streams) or os.environ.get("TERM") == "dumb":
        print("qdsweep: no terminal to watch on (ssh -t makes one): shown once", file=sys.stderr)
        return _status(arguments)
    from qdsweep.analysis.live.app import Watch

    Watch(arguments.results, arguments.name, arguments.every).run(mouse=False)
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from qdsweep.analysis.export.pack import export

    out = arguments.out or Path(f"{arguments.name}.zip")
    print(export(arguments.results, arguments.name, out, allowed=arguments.allow))
    return 0


def _clean(arguments: argparse.Namespace) -> int:
    results = Results(arguments.results)
    if arguments.runs:
        paths = [results.run(run).path for run in named_runs(results, arguments.runs)]
    else:
        paths = [*leftovers(results), *(orphans(results) if arguments.orphans else ())]
    sizes = [size(path) for path in paths]
    for path, bytes_ in zip(paths, sizes, strict=True):
        print(f"{bytes_ / 1e6:10.3f} MB  {path}")
    total = f"{len(paths)} found, {sum(sizes) / 1e6:.3f} MB"
    if arguments.dry_run:
        print(f"{total} would be removed")
        return 0
    if arguments.runs and paths and not arguments.yes:
        if not sys.stdin.isatty():
            raise BadInput(f"{total}: nothing is removed without a terminal: add --yes")
        if input(f"{total}, with their reload files: remove them? [y/N] ").lower() != "y":
            print("nothing is removed")
            return 1
    for path in paths:
        remove(path)
    print(f"{total} removed")
    return 0


def named_runs(results: Results, names: Iterable[str]) -> list[str]:
    """Returns the runs of these names, or of sweeps of these names.

    Raises:
        BadInput: There is no such run or sweep, or a process computes one of the runs.
    """
    sweeps = {sweep.name: runs_of(sweep) for sweep in results.known_sweeps()}
    known = [run.name for run in results.known_runs()]
    chosen = set()
    for name in names:
        if name in sweeps:
            others = set().union(*(runs for other, runs in sweeps.items() if other != name))
            for run in sorted(sweeps[name] & others & {*known}):
                print(f"kept: {run}, which another sweep has too")
            chosen |= sweeps[name] - others
        elif name in known:
            chosen.add(name)
        else:
            near = nearest(name, [*sweeps, *known])
            raise BadInput(f"--runs {name}: {near}no run or sweep of this name in {results.path}/")
    runs = [run for run in known if run in chosen]
    for run in runs:
        if may_be_alive(results.run(run).state.lock):
            raise BadInput(f"--runs: {run} is being computed: stop it first")
    return runs


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


def add_plan_commands(add: Add) -> None:
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
    from qdsweep.planning.outlook import first_batches
    from qdsweep.planning.start import Given, Start

    file = arguments.file or find_config("config.yaml")
    if not Path(file).exists():
        file = find_preset("sweeps", file)
    start = Start(Results(arguments.results), Given({}, files=[file]))
    outlook = [line.removeprefix("qdsweep: ") for line in start.lines()]
    if start.search is not None:
        print(*outlook, sep="\n")
        return 0
    print(*_table(start.forecast()), sep="\n")
    for line in (*first_batches(start.runs), *outlook):
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
        done = f"{row.done:,}/{row.budget:,}" + (f" {row.unit}" if units else "")
        cells.append((f"{number}", row.label, row.state, done, left, time, row.action))
    yield from lines("><<>>>", cells, label=1)


# A kill can leave such files of an atomic write.
_TORN = ".*.tmp"


def leftovers(results: Results) -> Iterator[Path]:
    """Yields temporary files of writes that were cut off, in runs that no process computes."""
    for run in results.known_runs():
        if not may_be_alive(run.state.lock):
            yield from run.path.glob(_TORN)
            yield from run.state.torn()
    for sweep in map(SweepDir, results.sweeps.glob("*")):  # also one whose plan is truncated
        yield from chain(
            sweep.path.glob(_TORN),
            sweep.tables.glob(_TORN),
            sweep.plots.glob(f"**/{_TORN}"),
            sweep.search.glob(f"*/{_TORN}"),
        )
    for folder in (results.centroids, results.sources):
        yield from folder.glob(_TORN)


def orphans(results: Results) -> Iterator[Path]:
    """Yields runs that no sweep refers to, that no process computes, and that were not imported.

    Raises:
        BadInput: A plan, confirm.json or a decision of a search is damaged, so that its runs are
            unknown.
    """
    wanted = set().union(*map(runs_of, results.known_sweeps()))
    for run in results.known_runs():
        if run.name not in wanted and not (is_imported(run.name) or may_be_alive(run.state.lock)):
            yield run.path


def runs_of(sweep: SweepDir) -> set[str]:
    """Returns the runs that a sweep refers to, also those of its search and confirmation."""
    plan = read_plan(sweep)
    runs = {row.run for row in plan.rows} | chosen_runs(sweep, plan.levels)
    runs |= {run for setting in plan.candidates for run in setting["runs"].values()}
    return runs | {row["id"] for row in read_confirm(sweep)}


def size(path: Path) -> int:
    """Returns bytes on disk; a file with two names is counted once."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    stats = {(s.st_dev, s.st_ino): s.st_size for s in (file.stat() for file in files)}
    return sum(stats.values())


def remove(path: Path) -> None:
    """Removes a file or a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
