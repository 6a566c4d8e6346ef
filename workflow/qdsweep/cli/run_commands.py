"""The commands of runs (run, launch, adopt, worker, check) and those of a search's jobs."""

import argparse
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.cli.arguments import (
    CLUSTER,
    RESULTS_OPTION,
    SET,
    Add,
    cluster_of,
    overrides,
    sweep_name,
)
from qdsweep.errors import STOPPED, BadInput
from qdsweep.files import await_listed, damaged, link, read_json_if_whole
from qdsweep.host.lock import WAIT_SECONDS, Lock
from qdsweep.host.machine import apply_baseline
from qdsweep.host.owner import lives, read_owner
from qdsweep.host.process import RANKS, die_with_parent
from qdsweep.records.paths import Results, RunDir, run_of_connection
from qdsweep.text import plural, quoted

if TYPE_CHECKING:
    from qdsweep.config.cluster import Cluster
    from qdsweep.config.experiment import Experiment


RUN = """\
examples:
  qdsweep run lunar_lander --out /tmp/lander
  qdsweep run lunar_lander --set algorithm=cma_me --set seed=3 --workers 4 --out /tmp/lander
  qdsweep run my_experiment.yaml --set sigma0=0.5 --out runs/first
After Ctrl-C, the same command resumes the run where it stopped.

exit codes:
  0 finished; 75 stopped on purpose before the end (the same command resumes it);
  2 wrong input; 1 any other error (run.log has the cause)
"""

CHECK = """\
examples:
  qdsweep check maze:Maze              shapes, reproducibility, row independence, gradients, cost
  qdsweep check --algorithm cma_me      two runs of one seed, pickling during the run
  qdsweep check --algorithm lab:make maze:Maze --set sigma0=0.2
  qdsweep check --algorithm my_experiment.yaml
"""

ADOPT = """\
examples:
  qdsweep adopt results/runs/ID        the reload files of a run that a colleague started
  qdsweep adopt results/runs/*         the reload files of all runs
A reload file is a checkpoint of a run. Loading it executes the code in it. Adopt only files of
people whom you would trust with your account. Your own files need this only when a message asks
for it.
"""

WORKER = """\
examples:
  qdsweep worker --join results/runs/ID --workers 8
  sbatch --cpus-per-task 8 --wrap ".venv/bin/qdsweep worker --join results/runs/ID --workers 8"
Each command adds workers to a run that is being computed with the dask engine (its run.log names
the engine). The result stays the same, and the workers may end at any time.
"""

LAUNCH = """\
example:
  qdsweep launch arm-cma_me-s1-0a1b2c3d4e --budget iterations=100
"""

PLACE = """\
example:
  qdsweep place my_search rung-0 3 --seed 1
"""

DECIDE = """\
example:
  qdsweep decide my_search rung-1 0
"""


def add_commands(add: Add) -> None:
    """Adds the commands to the parser."""
    run = add("run", "Run or resume one experiment, without Snakemake.", RUN)
    run.add_argument("experiment", help="a YAML file, or a preset of config/experiments/")
    run.add_argument("--set", **SET)
    run.add_argument("--cluster", **CLUSTER)
    run.add_argument("--workers", type=int, help="workers on this machine (default: the cluster's)")
    run.add_argument("--out", type=Path, required=True, metavar="DIR", help="the run's folder")
    run.add_argument(
        "--max-seconds",
        type=float,
        metavar="S",
        help="stop after this time with exit code 75; the same command resumes the run",
    )
    run.add_argument(
        "--allow-version-change",
        action="store_true",
        help="resume from a reload file of other library versions",
    )
    run.set_defaults(command=_run)

    launch = add("launch", "Run one run of a sweep (for the rule qd_run).", LAUNCH)
    launch.add_argument("run", metavar="ID")
    launch.add_argument(
        "--runs", type=Path, default=Path("results/runs"), metavar="DIR", help="the runs' folder"
    )
    launch.add_argument("--budget", required=True, metavar="UNIT=AMOUNT")
    launch.add_argument("--cluster", default="local")
    launch.add_argument("--cores", type=int, help="cores of this machine to use at most")
    launch.add_argument("--attempt", type=int, default=1)
    launch.set_defaults(command=_launch)

    adopt = add("adopt", "Trust reload files of another user (runs their code).", ADOPT)
    adopt.add_argument("run_dirs", type=Path, nargs="+", metavar="RUN_DIR", help="a run's folder")
    adopt.set_defaults(command=_adopt)

    worker = add("worker", "Add workers to a running Dask run.", WORKER)
    which = worker.add_mutually_exclusive_group(required=True)
    which.add_argument("--join", type=Path, metavar="DIR", help="the folder of a running run")
    which.add_argument(
        "--connect",
        type=Path,
        metavar="FILE",
        help="the connection file of a run that starts soon (for srun)",
    )
    worker.add_argument("--workers", type=int, default=1, help="worker processes (default: 1)")
    worker.add_argument("--engine", choices=("dask", "ray"), default="dask", help="with --connect")
    worker.set_defaults(command=_worker)

    check = add("check", "Test your domain or algorithm before a run uses it.", CHECK)
    check.add_argument(
        "domain", nargs="?", help="module:Class of config/plugins/, or a domain preset"
    )
    check.add_argument(
        "--algorithm",
        metavar="NAME",
        help="check an algorithm instead, with the domain if one is given: a preset, a file, an "
        "experiment, or module:name of an emitter, an archive or a scheduler",
    )
    check.add_argument("--set", **SET)
    check.set_defaults(command=_check)


def _run(arguments: argparse.Namespace) -> int:
    from qdsweep.config.compose import compose
    from qdsweep.config.experiment import refuse_idle
    from qdsweep.config.memory import require_memory_of
    from qdsweep.config.references import check_cited
    from qdsweep.config.requirements import require_packages_of
    from qdsweep.planning.checks import require_own_code

    _check_run(arguments)
    experiment = compose(arguments.experiment, overrides(arguments.set), source="--set")
    check_cited([experiment])
    try:
        # An existing run may have been finished on a larger machine.
        if not RunDir(arguments.out).state.path.exists():
            refuse_idle(experiment)
            require_memory_of(experiment)
            require_packages_of(experiment)
        require_own_code(experiment)
    except BadInput as error:
        where = arguments.experiment + (" with --set" if arguments.set else "")
        raise BadInput(f"{where}: {error}") from None
    cluster = cluster_of(arguments)
    if arguments.workers is None:
        from qdsweep.planning.checks import check_fit

        check_fit(cluster, arguments.cluster, {arguments.experiment: experiment})
    from qdsweep.experiment.attempt import Options
    from qdsweep.experiment.launch import start

    options = Options(
        terminal=True,
        max_seconds=arguments.max_seconds,
        allow_version_change=arguments.allow_version_change,
    )
    return start(experiment, arguments.out, cluster, options)


def _adopt(arguments: argparse.Namespace) -> int:
    from qdsweep.experiment.reload import adopt

    for folder in arguments.run_dirs:
        run = RunDir(folder)
        if not run.state.reloads():
            raise BadInput(f"{folder}: it has no reload file; give the folder of a run")
        try:
            is_computed = lives(read_owner(run.state.lock) or {})
            with Lock(run.state.lock, wait=0.0 if is_computed else WAIT_SECONDS):
                adopted = adopt(run.state)
                if adopted and run.reload.exists():  # it is published: a second name
                    link(run.state.reloads()[0], run.reload)
        except OSError as error:
            raise BadInput(
                f"{error.filename or folder}: {error.strerror}; copy the run's folder to a place "
                "where you can write, and adopt the copy"
            ) from None
        print(f"{folder}: adopted {plural(len(adopted), 'reload file')}")
    return 0


def _check_run(arguments: argparse.Namespace) -> None:
    """Refuses a run folder that cannot exist, and a time limit of 0 or less."""
    limit, out = arguments.max_seconds, arguments.out
    if limit is not None and not limit > 0:
        raise BadInput(f"--max-seconds {limit:g}: give a number above 0")
    for place in (out, *out.parents):
        try:
            is_file = place.exists() and not place.is_dir()
        except OSError as error:
            raise BadInput(f"--out {quoted(str(out))}: {error.strerror}; give a folder") from None
        if is_file:
            raise BadInput(f"--out {out}: {place} is a file; give a folder")


def _launch(arguments: argparse.Namespace) -> int:
    run = RunDir(arguments.runs / arguments.run)
    try:
        experiment, cluster = planned(run, arguments.budget, arguments.cluster, arguments.cores)
    except BadInput as error:
        from qdsweep.experiment.endings import record_refusal

        record_refusal(run, error, arguments.attempt)
        raise
    return start_planned(experiment, run, cluster, arguments.attempt)


def start_planned(
    experiment: "Experiment", run: RunDir, cluster: "Cluster", attempt: int = 1
) -> int:
    """Computes a run in a Snakemake job, and returns the exit code."""
    from qdsweep.experiment.attempt import Options
    from qdsweep.experiment.launch import start

    options = Options(max_seconds=cluster.max_seconds, attempt=attempt)
    code = start(experiment, run.path, cluster, options)
    if code == STOPPED:
        print(
            f"qdsweep: {run.name} stopped before its end and saved its state (exit code 75). "
            "Snakemake's next attempt, or the same command, resumes it",
            file=sys.stderr,
        )
    return code


def planned(
    run: RunDir, budget: str, cluster_name: str, cores: int | None
) -> "tuple[Experiment, Cluster]":
    """Returns the planned experiment and cluster of a run, whose id must be unchanged.

    Args:
        run: The run's folder.
        budget: `UNIT=AMOUNT`.
        cluster_name: A preset or a file.
        cores: The most cores of this machine; None: those of the cluster.

    Raises:
        BadInput: The plan is damaged, or now describes another run.
    """
    from qdsweep.config.cluster import read_cluster
    from qdsweep.config.compose import compose
    from qdsweep.config.model import typed
    from qdsweep.records.sources import identity_in

    unit, _, amount = budget.partition("=")
    file = run.state.config
    if not file.exists():
        await_listed(file.parent)  # the start of the sweep has just written it
    try:
        experiment = compose(str(file), {unit: typed(amount)}, source="--budget")
    except BadInput as error:
        raise (damaged(file, error) if file.exists() else error) from None
    now = identity_in(experiment, run).id
    if now != run.name:
        raise BadInput(
            f"{file} is now the experiment of {now}, not of {run.name}. If the code of its "
            "module:Class has changed, it is another run: start snakemake again. If the file was "
            "changed or copied by hand: remove it, and start again"
        )
    cluster = read_cluster(cluster_name)
    return experiment, cluster if cores is None else cluster.within(cores)


def _worker(arguments: argparse.Namespace) -> int:
    from qdsweep.engines.executors import dask_worker, ray_worker

    if arguments.workers < 1:
        raise BadInput(f"--workers {arguments.workers}: give 1 or more")
    if arguments.connect is not None:
        _end_with_main()
        file = arguments.connect.absolute()
        run = run_of_connection(file)
        if run is None:
            expected = RunDir(Path("RUN")).state.connection
            raise BadInput(f"--connect {arguments.connect}: give a path like {expected}")
        work = ray_worker.work_with_ray if arguments.engine == "ray" else dask_worker.work_with_dask
        work(
            run.path, arguments.workers, patience=600.0
        )  # the main process may still have to start
        return 0
    if not arguments.join.is_dir():
        raise BadInput(f"--join {arguments.join}: there is no such folder; give a run's folder")
    file = RunDir(arguments.join).state.connection
    if not file.exists():
        raise BadInput(
            f"--join {arguments.join}: no run with the engine dask is being computed there "
            f"({file} is missing). `qdsweep status` lists the runs with their states"
        )
    if read_json_if_whole(file).get("engine") == "ray":
        raise BadInput(
            f"--join {arguments.join}: its engine is ray, which takes no further workers; only "
            "a run with the engine dask does"
        )
    dask_worker.work_with_dask(arguments.join.absolute(), arguments.workers, patience=15.0)
    return 0


def _end_with_main() -> None:
    """Ends this worker when the main process that started it ends."""
    from qdsweep.engines.allocation import MAIN

    main = os.environ.pop(MAIN, None)
    if main is not None:
        die_with_parent(signal.SIGKILL, int(main))


def _check(arguments: argparse.Namespace) -> int:
    if arguments.algorithm is not None:
        return _check_algorithm(arguments)
    if arguments.domain is None:
        raise BadInput("check: give a domain, or --algorithm NAME")
    if arguments.set:
        raise BadInput(
            "check: --set needs --algorithm; write the arguments of a domain into a YAML file"
        )
    apply_baseline("avx2")
    from qdsweep.domains.plugin import check_elsewhere

    report = check_elsewhere(arguments.domain)
    print(f"{arguments.domain}: fit for use", report, sep="\n")
    return 0


def _check_algorithm(arguments: argparse.Namespace) -> int:
    apply_baseline("avx2")
    from qdsweep.algorithms.check import check_algorithm, small_experiment, trace_elsewhere
    from qdsweep.algorithms.own import as_yaml

    experiment = small_experiment(
        arguments.algorithm, arguments.domain, overrides(arguments.set), "--set"
    )
    warning = check_algorithm(experiment, trace_elsewhere(experiment))
    print(f"{arguments.algorithm}: fit for use ({experiment.domain.name})")
    if warning:
        print(f"Warning: {warning}")
    if experiment.algorithm.own_parts and ":" in arguments.algorithm:
        part = experiment.algorithm.model_dump(mode="json", exclude_defaults=True, exclude={"name"})
        print(f"In an experiment: algorithm: {as_yaml(part)}")
    return 0


def add_search_commands(add: Add) -> None:
    """Adds the commands to the parser."""
    place = add("place", "Extend a run of a search (for the rule search_place).", PLACE)
    place.add_argument("name", metavar="SWEEP", type=sweep_name)
    place.add_argument("level", metavar="LEVEL")
    place.add_argument("place", metavar="PLACE", type=int)
    place.add_argument("--seed", default="", help="the swept seed, if seeds are swept")
    place.add_argument("--cluster", default="local")
    place.add_argument("--cores", type=int, help="cores of this machine to use at most")
    place.add_argument("--results", **RESULTS_OPTION)
    place.set_defaults(command=_place)

    decide = add(
        "decide",
        "Choose the promoted settings of a search (for the rule search_decide).",
        DECIDE,
    )
    decide.add_argument("name", metavar="SWEEP", type=sweep_name)
    decide.add_argument("level", metavar="LEVEL")
    decide.add_argument("block", metavar="BLOCK", type=int)
    decide.add_argument("--results", **RESULTS_OPTION)
    decide.set_defaults(command=_decide)


def _place(arguments: argparse.Namespace) -> int:
    from qdsweep.records.plan import read_plan
    from qdsweep.search.places import chosen_at, level_of, take_place

    sweep = Results(arguments.results).sweep(arguments.name)
    plan = read_plan(sweep)
    level = level_of(plan, arguments.level)
    start = partial(_start, arguments, f"{plan.unit}={level.budget}")
    if RANKS in os.environ:  # the process that started the ranks writes the marker
        run = chosen_at(sweep, plan.candidates, level, arguments.place).runs[arguments.seed]
        return start(sweep.results.run(run))

    def logged(run: RunDir) -> int:
        print(
            f"qdsweep: {run.name} is extended to {level.budget:,} {plan.unit}; its log: "
            f"{run.state.log}. If no line follows, the process was killed or crashed (os._exit)",
            file=sys.stderr,
            flush=True,
        )
        code = start(run)
        print(f"qdsweep: {run.name} ended with exit code {code}", file=sys.stderr)
        return code

    return take_place(sweep, plan, level, arguments.place, arguments.seed, logged)


def _start(arguments: argparse.Namespace, budget: str, run: RunDir) -> int:
    experiment, cluster = planned(run, budget, arguments.cluster, arguments.cores)
    return start_planned(experiment, run, cluster)


def _decide(arguments: argparse.Namespace) -> int:
    from qdsweep.search.decide import decide

    decide(Results(arguments.results).sweep(arguments.name), arguments.level, arguments.block)
    return 0
