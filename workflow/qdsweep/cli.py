"""The command line: `qdsweep COMMAND`."""

import argparse
import logging
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.errors import BadInput, QdsweepError

if TYPE_CHECKING:
    from qdsweep.config.cluster import Cluster

RUN = """\
examples:
  qdsweep run lunar_lander --out /tmp/lander
  qdsweep run lunar_lander --set algorithm=cma_me --set seed=3 --workers 4 --out /tmp/lander
  qdsweep run my_experiment.yaml --set sigma0=0.5 --out runs/first
  Ctrl-C, then the same command: the run goes on where it stopped.

exit codes:
  0 finished; 75 stopped before the end on purpose (the same command goes on);
  2 bad input; 1 anything else (run.log says what)
"""
EXPAND = """\
examples:
  qdsweep expand "::: algorithm cma_me map_elites ::: seed 1 2 3"
  qdsweep expand ::: a 1 2 :::+ b x y
  qdsweep expand ::: seed 1 2 :::: values.txt
The grammar is GNU parallel's (man parallel): what `parallel --header :` would run.
"""
WORKER = """\
examples:
  qdsweep worker --join results/runs/ID --workers 8
  sbatch --cpus-per-task 8 --wrap ".venv/bin/qdsweep worker --join results/runs/ID --workers 8"
      more workers for a run that is being computed with the dask engine (see its run.log); the
      result stays the same, and they may leave at any time
"""
STATUS = """\
examples:
  qdsweep status          the sweep that was started last
  qdsweep status demo
  qdsweep watch demo      follows it
"""
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
Slurm job in any packed byte is exit code 1, and there is no file. Same sweep, same bytes.
Unfinished runs are refused, unless the tables were made of them (--config partial=true).
"""
CLEAN = """\
examples:
  qdsweep clean --dry-run             what a kill has left behind
  qdsweep clean --orphans --dry-run   runs that no sweep of results/sweeps refers to
  qdsweep clean --orphans
"""


ROLLOUT = """\
examples:
  qdsweep rollout results/runs/ID
  qdsweep rollout results/runs/ID --elites best --seconds 10 --out /tmp/videos
A whole sweep: write `rollouts: {}` into the sweep file. The episode has the seed that scored the
elite, where all evaluations of the run had the same (evaluation_seed: fixed, or a number).
"""


REEVALUATE = """\
examples:
  qdsweep reevaluate results/runs/ID
  qdsweep reevaluate results/runs/ID --times 50 --seed 7 --workers 4
A whole sweep: write `reevaluate: {times: 10}` into the sweep file. Ctrl-C, then the same command,
goes on; the run's own files stay as they are.
"""


RESULTS: dict[str, Any] = {
    "type": Path,
    "default": Path("results"),
    "metavar": "DIR",
    "help": "where the workflow wrote (default: results)",
}

SET: dict[str, Any] = {
    "action": "append",
    "default": [],
    "metavar": "KEY=VALUE",
    "help": "override a key, as in a sweep (repeatable)",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    arguments = _parser().parse_args(argv)
    try:
        if arguments.image:
            from qdsweep.container.enter import enter

            enter(arguments.image, arguments, _after_options(argv))
        code = arguments.command(arguments)
        _leave_threads(code)
        return code
    except QdsweepError as error:
        print(f"qdsweep: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # | head
        sys.stderr.close()
        return 0


class _Version(argparse.Action):
    """Reads the package's files only when asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from qdsweep.versions import own_version

        print(own_version())
        parser.exit()


def _after_options(argv: list[str]) -> list[str]:
    """The command and what follows it."""
    first = 0
    while argv[first].startswith("-"):
        first += 1 if "=" in argv[first] else 2
    return argv[first:]


def _leave_threads(code: int) -> None:
    """Exits now where a domain has left threads behind, which Python would wait for."""
    left = [thread for thread in threading.enumerate() if not thread.daemon]
    if left != [threading.main_thread()]:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _name(text: str) -> str:
    """A sweep's name: no path, so that nothing outside of results/sweeps/ is meant."""
    if not text or "/" in text or text.startswith("."):
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a sweep (see results/sweeps/)")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="qdsweep",
        description="Parameter sweeps of distributed Quality-Diversity experiments.",
        epilog="`qdsweep COMMAND --help` shows examples. Whole sweeps: `snakemake --cores 8`.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    parser.add_argument(
        "--image",
        metavar="FILE",
        help="run the command in this Apptainer image: a file, or a URL such as docker://...",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, text: str, epilog: str = "") -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=text,
            description=text,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    run = add("run", "Run one experiment, or go on with it.", RUN)
    run.add_argument("experiment", help="a YAML file, or a preset of config/experiments/")
    run.add_argument("--set", **SET)
    run.add_argument("--cluster", default="local", help="a YAML file or a preset (default: local)")
    run.add_argument("--workers", type=int, help="workers on this machine (default: the cluster's)")
    run.add_argument("--out", type=Path, required=True, metavar="DIR", help="the run's folder")
    run.add_argument(
        "--max-seconds",
        type=float,
        metavar="S",
        help="stop after so long and exit 75; the same command goes on",
    )
    run.add_argument(
        "--allow-version-change",
        action="store_true",
        help="go on from a reload file of other library versions",
    )
    run.set_defaults(command=_run)

    launch = add("launch", "Run one run of a sweep (for the rule qd_run).")
    launch.add_argument("run", metavar="ID")
    launch.add_argument(
        "--runs", type=Path, default=Path("results/runs"), metavar="DIR", help="the runs' folder"
    )
    launch.add_argument("--budget", required=True, metavar="UNIT=AMOUNT")
    launch.add_argument("--cluster", default="local")
    launch.add_argument("--cores", type=int, help="cores of this machine that it may use")
    launch.add_argument("--attempt", type=int, default=1)
    launch.set_defaults(command=_launch)

    worker = add("worker", "Evaluate for a run of the dask engine, from any node.", WORKER)
    which = worker.add_mutually_exclusive_group(required=True)
    which.add_argument("--join", type=Path, metavar="DIR", help="the folder of a live run")
    which.add_argument(
        "--connect",
        type=Path,
        metavar="FILE",
        help="the connection file of a run that is about to start (for srun)",
    )
    worker.add_argument("--workers", type=int, default=1, help="worker processes (default: 1)")
    worker.set_defaults(command=_worker)

    expand = add("expand", "Print the rows of a sweep as tab-separated values.", EXPAND)
    expand.add_argument("sweep", nargs=argparse.REMAINDER, help="the sweep, one or many words")
    expand.set_defaults(command=_expand)

    status = add("status", "Show where the runs of a sweep stand.", STATUS)
    status.add_argument(
        "name", type=_name, nargs="?", help="the sweep (default: the one started last)"
    )
    status.add_argument("--results", **RESULTS)
    status.set_defaults(command=_status)

    watch = add("watch", "Follow a sweep on the terminal while it runs.", WATCH)
    watch.add_argument(
        "name", type=_name, nargs="?", help="the sweep (default: the one started last)"
    )
    watch.add_argument("--results", **RESULTS)
    watch.add_argument(
        "--every", type=float, default=2.0, metavar="S", help="seconds between looks (default: 2)"
    )
    watch.set_defaults(command=_watch)

    export = add("export", "Pack a finished sweep for a paper's supplement, anonymously.", EXPORT)
    export.add_argument("name", type=_name, help="a sweep, a folder of results/sweeps/")
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

    scale = add("scale", "Measure how an experiment scales with its workers.", SCALE)
    scale.add_argument("experiment", help="a YAML file, or a preset of config/experiments/")
    scale.add_argument(
        "--workers", required=True, metavar="N,N,...", help="numbers of workers, on each node"
    )
    scale.add_argument("--set", **SET)
    scale.add_argument(
        "--cluster", default="local", help="a YAML file or a preset (default: local)"
    )
    scale.add_argument(
        "--repeats", type=int, default=3, help="runs of each number of workers (default: 3)"
    )
    scale.add_argument(
        "--out", dest="folder", type=Path, required=True, metavar="DIR", help="the folder to fill"
    )
    scale.set_defaults(command=_scale)

    clean = add("clean", "List and remove what nothing refers to.", CLEAN)
    clean.add_argument("--orphans", action="store_true", help="also runs that no sweep refers to")
    clean.add_argument("--dry-run", action="store_true", help="list only")
    clean.add_argument("--results", **RESULTS)
    clean.set_defaults(command=_clean)

    check = add("check", "Check a domain of yours: shapes, row independence, gradients.")
    check.add_argument("domain", help="module:Class of config/plugins/, or a domain preset")
    check.set_defaults(command=_check)

    rollout = add("rollout", "Render episodes of elites of a run as animated GIFs.", ROLLOUT)
    rollout.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="a finished run's folder")
    rollout.add_argument(
        "--elites",
        nargs="+",
        choices=("best", "median", "corners"),
        default=["best", "median", "corners"],
        help="which; corners are the extreme ones in each measure (default: all)",
    )
    # Not `out`: that is a run which is computed.
    rollout.add_argument(
        "--out",
        type=Path,
        dest="folder",
        metavar="DIR",
        help="where to (default: RUN_DIR/rollouts)",
    )
    rollout.add_argument(
        "--seconds", type=float, default=6.0, metavar="S", help="the longest animation (default: 6)"
    )
    rollout.set_defaults(command=_rollout)

    again = add("reevaluate", "Evaluate the elites of a run again: how much was luck?", REEVALUATE)
    again.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="a finished run's folder")
    again.add_argument("--times", type=int, default=10, help="evaluations an elite (default: 10)")
    again.add_argument(
        "--seed", type=int, default=1_000_003, help="of the fresh seeds (default: 1000003)"
    )
    again.add_argument(
        "--cluster",
        default="local",
        help="a YAML file or a preset; one node of it (default: local)",
    )
    again.add_argument("--workers", type=int, help="workers (default: the cluster's)")
    again.add_argument("--cores", type=int, help=argparse.SUPPRESS)  # for the rule reevaluate
    again.set_defaults(command=_reevaluate)

    for name, text in (
        ("aggregate", "Collect the runs of a sweep into tables."),
        ("corrected", "Tabulate the corrected archives of a sweep (for the rule corrected_table)."),
        ("winners", "Choose the groups to be confirmed (for the checkpoint choose_winners)."),
        ("confirmed", "Tabulate the winners on unseen seeds (for the rule confirmed_table)."),
        ("plot", "Draw the figures of a sweep."),
        ("evolution", "Animate how the archives of a sweep filled."),
        ("rollouts", "Render elites of a sweep, as its key rollouts says (for the rule rollouts)."),
        ("report", "Write the HTML report of a sweep."),
    ):
        stage = add(name, text)
        stage.add_argument(
            "name", type=_name, help="the sweep's name (a folder of results/sweeps/)"
        )
        stage.add_argument("--results", **RESULTS)
        stage.set_defaults(command=_stage, stage=name)
        if name == "aggregate":
            stage.add_argument(
                "--partial", action="store_true", help="take runs that are not finished, too"
            )
            stage.add_argument("--at", help=argparse.SUPPRESS)  # makes Snakemake do it again
        if name == "plot":
            stage.add_argument(
                "--only", metavar="FIGURE", help="one figure, such as learning_curves, again"
            )
    return parser


def _run(arguments: argparse.Namespace) -> int:
    from qdsweep.config.compose import compose

    experiment = compose(arguments.experiment, _overrides(arguments.set), source="--set")
    cluster = _cluster(arguments)
    if arguments.workers is None:
        from qdsweep.sweep.resources import check_fit

        check_fit(cluster, arguments.cluster, {arguments.experiment: experiment})
    from qdsweep.experiment.options import Options
    from qdsweep.experiment.start import start

    options = Options(
        terminal=True,
        max_seconds=arguments.max_seconds,
        allow_version_change=arguments.allow_version_change,
    )
    return start(experiment, arguments.out, cluster, options)


def _overrides(settings: list[str]) -> dict[str, Any]:
    """The values of `--set`, by name."""
    from qdsweep.sweep.values import typed

    overrides = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise BadInput(f"--set {setting}: KEY=VALUE was expected, such as --set seed=3")
        if key in overrides:
            raise BadInput(f"--set {key} is given twice")
        overrides[key] = typed(value)
    return overrides


def _launch(arguments: argparse.Namespace) -> int:
    from qdsweep.config.compose import compose
    from qdsweep.sweep.ids import run_id
    from qdsweep.sweep.values import typed

    out = arguments.runs / arguments.run
    unit, _, amount = arguments.budget.partition("=")
    file = out / "state" / "config.yaml"
    try:
        experiment = compose(str(file), {unit: typed(amount)}, source="--budget")
    except BadInput as error:
        damaged = f"; remove {file} and start snakemake again, to make it anew"
        raise BadInput(f"{error}{damaged if file.exists() else ''}") from None
    if run_id(experiment) != arguments.run:
        raise BadInput(
            f"{file} is now the experiment of {run_id(experiment)}, not of {arguments.run}: the "
            "source of its module:Class has changed, which makes it another run (start snakemake "
            "again), or the file was changed or copied by hand (remove it, and start again)"
        )
    from qdsweep.config.cluster import read_cluster
    from qdsweep.experiment.options import Options
    from qdsweep.experiment.start import STOPPED, start

    cluster = read_cluster(arguments.cluster)
    if arguments.cores is not None:
        cluster = cluster.within(arguments.cores)
    options = Options(max_seconds=cluster.max_seconds, attempt=arguments.attempt)
    code = start(experiment, out, cluster, options)
    if code == STOPPED:
        print(
            f"qdsweep: {arguments.run} stopped before its end and saved its state; Snakemake's "
            "retry, or the same command, goes on from there (exit code 75)",
            file=sys.stderr,
        )
    return code


def _worker(arguments: argparse.Namespace) -> int:
    from qdsweep.engines.connection import connection_path
    from qdsweep.engines.crew import work

    if arguments.workers < 1:
        raise BadInput(f"--workers {arguments.workers}: at least 1 is needed")
    if arguments.connect is not None:
        file = arguments.connect.absolute()
        run = Path(*file.parts[:-3])
        if file != connection_path(run):
            expected = connection_path(Path("RUN"))
            raise BadInput(f"--connect {arguments.connect}: {expected} was expected")
        work(run, arguments.workers, patience=600.0)  # it may have to start itself
        return 0
    file = connection_path(arguments.join)
    if not file.exists():
        raise BadInput(
            f"{arguments.join}: no run with the dask engine is being computed there "
            f"({file} is missing); see its run.log, and `qdsweep status`"
        )
    work(arguments.join.absolute(), arguments.workers, patience=15.0)
    return 0


def _cluster(arguments: argparse.Namespace) -> "Cluster":
    from qdsweep.config.cluster import read_cluster

    cluster = read_cluster(arguments.cluster)
    if arguments.workers is None:
        return cluster
    if arguments.workers < 1:
        raise BadInput(f"--workers {arguments.workers}: at least 1 is needed")
    return cluster.model_copy(update={"workers_per_node": arguments.workers})


def _expand(arguments: argparse.Namespace) -> int:
    from qdsweep.sweep.expand import from_argv, to_tsv

    sys.stdout.write(to_tsv(from_argv(arguments.sweep)))
    return 0


def _status(arguments: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table

    from qdsweep.analysis.status import read_standings, sweep_names, table, total

    names = sweep_names(arguments.results)
    if arguments.name is None and not names:
        raise BadInput(f"{arguments.results}: no sweep was started here yet")
    name = arguments.name or names[0]
    standings = read_standings(arguments.results / "sweeps" / name, arguments.results / "runs")
    columns = ("run", "state", "done", "QD score", "ETA", "core-h", "left", "note")
    grid = Table(*columns, title=f"sweep {name}", box=None, title_justify="left")
    for cells in table(standings):
        grid.add_row(*cells, style="red" if cells[1] == "failed" else None)
    # A pipe has no width: nothing is cut there.
    width = None if sys.stdout.isatty() else 1000
    console = Console(width=width, highlight=False)
    console.print(grid)
    console.print(total(standings), markup=False)
    return 0


def _scale(arguments: argparse.Namespace) -> int:
    from qdsweep.analysis.scaling.study import Study, check_study, measure, read_workers
    from qdsweep.config.cluster import read_cluster
    from qdsweep.config.compose import compose

    workers = read_workers(arguments.workers)
    experiment = compose(arguments.experiment, _overrides(arguments.set), source="--set")
    cluster = read_cluster(arguments.cluster)
    settings = [f"--set={setting}" for setting in arguments.set]
    study = Study(
        experiment,
        [arguments.experiment, *settings, "--cluster", arguments.cluster],
        {n: cluster.model_copy(update={"workers_per_node": n}) for n in workers},
        arguments.repeats,
        arguments.folder,
    )
    check_study(study, arguments.cluster)
    try:
        times = measure(study)
    except KeyboardInterrupt:
        print("qdsweep: stopped; the same command goes on", file=sys.stderr)
        return 75
    from qdsweep.analysis.scaling.scaling_results import write_scaling
    from qdsweep.analysis.tables.sheet import as_markdown

    print(as_markdown(write_scaling(study, times)))
    print(f"written: {arguments.folder}/scaling.csv, .md, .tex, .json, .pdf, .png, .svg")
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
    from qdsweep.experiment.clean import leftovers, orphans, remove, size

    found = list(leftovers(arguments.results))
    if arguments.orphans:
        found += orphans(arguments.results)
    sizes = [size(path) for path in found]
    for path, bytes_ in zip(found, sizes, strict=True):
        print(f"{bytes_ / 1e6:10.3f} MB  {path}")
        if not arguments.dry_run:
            remove(path)
    done = "would be removed" if arguments.dry_run else "removed"
    print(f"{len(found)} found, {sum(sizes) / 1e6:.3f} MB {done}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from qdsweep.config.compose import read_domain
    from qdsweep.cpu import apply_baseline

    config = read_domain(arguments.domain)
    apply_baseline("avx2")
    from qdsweep.domains import make_domain
    from qdsweep.domains.check import check_rows

    check_rows(make_domain(config))
    print(f"{arguments.domain}: fit for use")
    return 0


def _rollout(arguments: argparse.Namespace) -> int:
    from qdsweep.config.compose import compose
    from qdsweep.cpu import apply_baseline
    from qdsweep.sweep.shows import require_episodes

    if not arguments.seconds > 0:
        raise BadInput(f"--seconds {arguments.seconds:g}: more than 0 is needed")
    file = arguments.run_dir / "config.yaml"
    if not file.exists():
        raise BadInput(f"{file} does not exist: give the folder of a finished run")
    experiment = compose(str(file))
    require_episodes(experiment.domain)
    apply_baseline(experiment.cpu_baseline)
    from qdsweep.experiment.rollout import rollout
    from qdsweep.files import write_json

    folder = arguments.folder or arguments.run_dir / "rollouts"
    entries = rollout(arguments.run_dir, folder, arguments.elites, arguments.seconds)
    write_json(folder / "rollouts.json", {"rollouts": entries})
    for entry in entries:
        score, own = entry["rendered"]["objective"], "" if entry["own_seed"] else ", not its own"
        print(f"{folder / entry['file']}: {entry['title']}, objective {score:.6g}", end="")
        print(f" (seed {entry['seed']}{own})")
    return 0


def _reevaluate(arguments: argparse.Namespace) -> int:
    from qdsweep.experiment.start_reevaluation import start_reevaluation

    cluster = _cluster(arguments).on_one_node()
    if arguments.cores is not None:
        cluster = cluster.within(arguments.cores)
    return start_reevaluation(arguments.run_dir, arguments.times, arguments.seed, cluster)


def _stage(arguments: argparse.Namespace) -> int:
    sweep = arguments.results / "sweeps" / arguments.name
    runs = arguments.results / "runs"
    if arguments.stage == "aggregate":
        from qdsweep.analysis.partial import take_snapshots
        from qdsweep.analysis.tables.aggregate import aggregate

        if arguments.partial:
            take_snapshots(sweep, runs)
        aggregate(sweep, runs, partial=arguments.partial)
        from qdsweep.analysis.figures.timing import write_timing
        from qdsweep.analysis.tables.published import write_published

        write_timing(sweep, runs)
        write_published(sweep)
    elif arguments.stage == "evolution":
        from qdsweep.analysis.figures.evolution import evolution

        evolution(sweep, runs)
    elif arguments.stage == "rollouts":
        from qdsweep.cpu import apply_baseline, has_avx2

        apply_baseline("avx2" if has_avx2() else "native")
        from qdsweep.analysis.figures.rollouts import rollouts

        rollouts(sweep, runs)
    elif arguments.stage == "corrected":
        from qdsweep.analysis.plan import read_plan
        from qdsweep.analysis.tables.corrected_table import write_corrected

        write_corrected(sweep, runs, read_plan(sweep))
    elif arguments.stage == "winners":
        from qdsweep.analysis.tables.confirmed import choose_winners

        choose_winners(sweep, runs)
    elif arguments.stage == "confirmed":
        from qdsweep.analysis.tables.confirmed import write_confirmed

        write_confirmed(sweep, runs)
    elif arguments.stage == "plot":
        from qdsweep.analysis.figures.plots import plot

        plot(sweep, runs, arguments.only)
    else:
        from qdsweep.analysis.page.report import report

        report(sweep, runs)
    return 0
