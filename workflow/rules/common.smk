# The sweep of this start: its config, its table of runs, and what every rule may ask.

import gc
import os
import re
import sys
import time
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake_interface_executor_plugins.settings import DeploymentMethod

from qdsweep.analysis.stages import STAGES as ALL_STAGES, forget
from qdsweep.config.files import find_config
from qdsweep.config.imported import PREFIX
from qdsweep.container.image import package_folder
from qdsweep.container.image import prepare
from qdsweep.errors import BadInput, StorageError
from qdsweep.planning.outlook import find_changes
from qdsweep.planning.checks import check_fit, check_sweep
from qdsweep.planning.start import confirming
from qdsweep.search.decide import run_of_place
from qdsweep.planning.jobs import EarlierJobs
from qdsweep.planning.jobs import is_of_runs, planned_budget
from qdsweep.records.status import is_too_short
from qdsweep.planning.module import call_at_start, given_config, option, results_folder
from qdsweep.planning.jobs import requeue_lost
from qdsweep.search.plan import search_outlook, spoiled
from qdsweep.planning.outlook import outlook, unfinished
from qdsweep.planning.checks import check_packages
from qdsweep.search.plan import basis, search_plan
from qdsweep.planning.jobs import check_request, launch_budget, memory_mb, slurm_request
from qdsweep.search.pbt import with_changes
from qdsweep.planning.jobs import Settled, may_leave_out, settled
from qdsweep.planning.start import clusters_of, key_sources, plan_data, read_sweep
from qdsweep.planning.shared_files import check_shared_files
from qdsweep.config.memory import require_memory_of
from qdsweep.config.requirements import check_installed
from qdsweep.config.explain import naming_file
from qdsweep.planning.start import sweep_of
from qdsweep.records.progress import read_finished
from qdsweep.records.plan import Plan, digest, read_plan, write_plan
from qdsweep.records.progress import read_standings
from qdsweep.sweep.runs import Sweep
from qdsweep.warm.start import start_warm
from qdsweep.warm.start import try_algorithms

# What a DAG is made of stays to the end: looking for garbage in it again and again took a quarter
# of a start of 10,000 finished runs.
if workflow.is_main_process:
    gc.set_threshold(200_000, 20, 20)

# `python` in a shell command is this one, with or without an active venv; in a conda environment
# of `--sdm conda` it is that one's, which finds the package here.
os.environ.update(
    PATH=os.pathsep.join(
        [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    ),
    PYTHONPATH=os.pathsep.join(
        filter(None, [str(package_folder()), os.environ.get("PYTHONPATH")])
    ),
)


# A file given with --configfile stands for itself: nothing of the default sweep leaks into it.
if workflow.modifier.is_main_snakefile() and not workflow.overwrite_configfiles:

    configfile: find_config("config.yaml")


# In the job of a run nothing is expanded, composed and hashed: its plan has what it needs.
IS_JOB = not workflow.is_main_process and is_of_runs(sys.argv)

try:
    check_shared_files(workflow.storage_settings)
    # In a module, `prefix:` moves them; the commands of rules then say where they are.
    RESULTS = results_folder(workflow)
    AT_RESULTS = option("results", RESULTS.path, "results")
    AT_RUNS = option("runs", RESULTS.runs, "results/runs")
    given = given_config(workflow, config)
    SETTINGS = read_sweep(*given)
    sources = key_sources(*given[1:])
    SWEEP = CONFIRMING = Sweep((), (), {})
    # What a search computes instead of the runs; None where all of them are computed whole.
    PLACES = None
    if not IS_JOB:
        SWEEP = sweep_of(SETTINGS, RESULTS, sources)
        check_sweep(SETTINGS, SWEEP, sources)
        PLACES = search_plan(SETTINGS, SWEEP, sources)
        # The runs that confirm it, as far as an earlier start has chosen them.
        CONFIRMING = confirming(SETTINGS, SWEEP, RESULTS)
        # An image, or a conda environment, has what it has.
        if not workflow.deployment_settings.deployment_method:
            check_packages(SWEEP.runs | CONFIRMING.runs, RESULTS)
    CLUSTERS = clusters_of(SETTINGS, sources)
    if SETTINGS.cluster != "auto":  # else it is not known before the executor is
        check_fit(CLUSTERS[SETTINGS.cluster], SETTINGS.cluster, SWEEP.runs)
except BadInput as error:
    raise WorkflowError(str(error))

PLAN = plan_data(SETTINGS, SWEEP, PLACES)

# The levels of a search, and what it chooses from.
LEVELS, CANDIDATES = {}, []
if SETTINGS.staged_search:
    planned = Plan.of(PLAN) if PLACES else read_plan(RESULTS.sweep(SETTINGS.name))
    LEVELS = {level.name: level for level in planned.levels}
    CANDIDATES = planned.candidates

# The runs that tables wait for; a search chooses them on the way. With `--config partial=true`
# there are none, and tables are made anew at each start.
AWAITED = [] if SETTINGS.partial or PLACES else list(SWEEP.runs)
PARTIAL = f"--partial --at {time.time():.0f}" if SETTINGS.partial else ""

# Files of a search that were edited, torn, or are of runs that were removed, and why.
SPOILED = spoiled(SETTINGS.name, PLACES, RESULTS) if PLACES else {}

# What is known of the finished runs of a large sweep, and which of them need no job.
FINISHED, SETTLED = {}, Settled()
if workflow.is_main_process and not PLACES:
    runs = SWEEP.runs | CONFIRMING.runs
    FINISHED = read_finished(RESULTS.sweep(SETTINGS.name), list(runs))
    SETTLED = settled(runs, FINISHED, RESULTS)

# Snakemake compares a budget with that of the job that it has started itself: it knows nothing of a
# run that was computed by hand, or that was taken further than was published.
TOO_SHORT = SETTLED.torn | {
    run
    for run, experiment in (SWEEP.runs | CONFIRMING.runs).items()
    if run not in SETTLED.whole and is_too_short(RESULTS.run(run), experiment.budget)
}

# The stages that this sweep asks for, in the order of the data.
STAGES = {
    stage.name: stage
    for stage in ALL_STAGES
    if stage.is_asked_for(SETTINGS, SWEEP.runs.values())
}

# Of these, those with a file that has changed since it was written: they are made anew.
DAMAGED = {}
if workflow.is_main_process:
    sweep_dir = RESULTS.sweep(SETTINGS.name).path
    DAMAGED = {name: stage.damaged(sweep_dir) for name, stage in STAGES.items()}


wildcard_constraints:
    run=rf"(?!{PREFIX})[A-Za-z0-9_.\-]+",
    sweep=re.escape(SETTINGS.name),
    level=r"[a-z0-9\-]+",
    place=r"\d+",
    seed=r"[^/]*",
    block=r"\d+",


def start():
    """What is done once the jobs of this start are known, before the first of them."""
    runs = SWEEP.runs | CONFIRMING.runs
    unsettled = {run: one for run, one in runs.items() if run not in SETTLED.whole}
    try:
        check_fit(CLUSTERS[cluster_name()], cluster_name(), SWEEP.runs)
        if not workflow.deployment_settings.deployment_method:
            check_installed(CLUSTERS[cluster_name()])
            left = unfinished(unsettled, RESULTS)
            if not is_remote():
                with naming_file(sources, "experiment"):
                    for run in left:
                        require_memory_of(run)
            try_algorithms(with_changes(SETTINGS, left))
        if IMAGE:
            prepare(image_name())
        if is_remote():
            defaults = workflow.resource_settings.default_resources or {}
            place = {
                key: str(getattr(defaults[key], "raw", defaults[key])).strip("'\"")
                for key in ("slurm_account", "slurm_partition")
                if key in defaults
            }
            doubt = check_request(CLUSTERS[cluster_name()], cluster_name(), place)
            if doubt:
                print(f"qdsweep: warning: {doubt}", file=sys.stderr)
        write_plan(PLAN, runs, RESULTS)
        forget(SETTINGS, RESULTS.sweep(SETTINGS.name).path)
    except BadInput as error:
        raise WorkflowError(str(error))
    except OSError as error:
        raise WorkflowError(str(StorageError(error, RESULTS.path)))
    if not (is_remote() or workflow.deployment_settings.deployment_method):
        start_warm(
            runs.values(),
            unfinished(unsettled, RESULTS),
            Path(".snakemake/log/qdsweep-warm.log"),
        )
    if CLUSTERS[cluster_name()].nodes > 1:
        requeue_lost(unsettled, RESULTS)


try:
    IS_NEW = call_at_start(workflow, RESULTS, start)
except BadInput as error:
    raise WorkflowError(str(error))

if IS_NEW and workflow.is_main_process:
    if PLACES:
        lines = search_outlook(SETTINGS, PLACES, SWEEP, SPOILED, RESULTS)
    else:
        sweep = RESULTS.sweep(SETTINGS.name)
        standings = read_standings(sweep, Plan.of(PLAN), FINISHED)
        changes = find_changes(SETTINGS.name, SWEEP, CONFIRMING, RESULTS)
        lines = outlook(SETTINGS.name, SWEEP, CONFIRMING, standings, changes, RESULTS)
    for line in lines:
        print(line, file=sys.stderr)
    for path in (path for paths in DAMAGED.values() for path in paths):
        words = f"{path} has changed since it was written: made anew"
        print(f"qdsweep: warning: {words}", file=sys.stderr)


def is_remote():
    """Whether the jobs of this Snakemake run elsewhere.

    The executor is not known before the DAG is made. The Snakemake of a Slurm job executes on its
    node, but knows that it does so for another one.
    """
    plugin = workflow.executor_plugin
    return workflow.remote_exec or not (
        plugin is None or plugin.common_settings.local_exec
    )


def cluster_name(wildcards=None):
    """The cluster config. `auto` is decided by where the jobs run."""
    if SETTINGS.cluster != "auto":
        return SETTINGS.cluster
    return "slurm" if is_remote() else "local"


def image_name(wildcards=None):
    """The image that every job runs in with `--sdm apptainer`."""
    return CLUSTERS[cluster_name()].image


# The environment of every rule, only for what asks for it: Snakemake keeps a copy of it in its record
# of each file that a run writes, 1.4 MB a run, and reads all of them at each start.
CONDA = (
    "../../envs/qdsweep.yaml"
    if DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
    or {"--lint", "--archive", "--containerize"} & set(sys.argv)
    else None
)

# What every rule asks for; no function where none is needed (see `slurm`).
IMAGE = (
    image_name
    if DeploymentMethod.APPTAINER in workflow.deployment_settings.deployment_method
    else ""
)


def memory_of(wildcards):
    """Memory of a run: more only after it has run out of it."""
    return memory_mb(CLUSTERS[cluster_name()], RESULTS.run(wildcards.run))


def memory_of_place(wildcards):
    """Memory of the run that a place of a search is given."""
    run = run_of_place(
        RESULTS.sweep(SETTINGS.name),
        CANDIDATES,
        LEVELS[wildcards.level],
        int(wildcards.place),
        wildcards.seed,
    )
    return memory_mb(CLUSTERS[cluster_name()], run)


def slurm(key, on_one_node=False):
    """A resource of the run's Slurm job, or of one on one node, which nothing else looks at.

    No function: Snakemake would evaluate it anew for each job, which is felt in a sweep of 10,000.
    """
    name = "slurm" if SETTINGS.cluster == "auto" else SETTINGS.cluster
    cluster = CLUSTERS[name].on_one_node() if on_one_node else CLUSTERS[name]
    return slurm_request(cluster).get(key)


EARLIER = EarlierJobs(workflow.workdir_init)


def slurm_options(wildcards):
    """Further options of a run's Slurm job, which waits for one that an earlier start has left."""
    options = slurm("slurm_extra") or ""
    if not workflow.is_main_process or not is_remote():
        return options
    return f"{options} {EARLIER.option(wildcards)}".strip()


# What the job of a run asks for, besides its memory.
RUN_RESOURCES = {
    "cluster_config": cluster_name,
    "image": IMAGE,
    **{
        key: slurm(key)
        for key in (
            *("runtime", "nodes", "tasks", "cpus_per_task", "mpi", "gres"),
            "tasks_per_gpu",
        )
    },
    "slurm_extra": slurm_options,
}


def budget_of(wildcards):
    """The budget of a run as `launch` takes it: a larger one lengthens the run."""
    run = wildcards.run
    if IS_JOB:
        try:
            budget = planned_budget(RESULTS.sweep(SETTINGS.name), run)
        except BadInput as error:
            raise WorkflowError(str(error))
    else:
        budget = (SWEEP.runs.get(run) or confirming_runs()[run]).budget
    return launch_budget(budget, RESULTS.run(run))


def lengthened(wildcards):
    """No input: it makes Snakemake lengthen a run that it takes for finished."""
    if wildcards.run in TOO_SHORT:
        workflow.dag.forcefiles.add(str(RESULTS.run(wildcards.run).summary))
    return []


def markers(levels, places=None):
    """The markers of levels, or of some places of them."""
    return [
        f"results/sweeps/{{sweep}}/search/{level.name}/{place}-s{seed}.json"
        for level in levels
        for place in (range(level.places) if places is None else places)
        for seed in level.seeds
    ]


def decision_of(wildcards):
    """The table of decisions that gives a place its run; none where that is known beforehand."""
    again_if_spoiled("{place}-s{seed}.json", wildcards)
    level = LEVELS[wildcards.level]
    if level.kind == "known":
        return []
    block = level.block_of(int(wildcards.place))
    return f"results/sweeps/{{sweep}}/search/{{level}}/decided-{block}.json"


def decided_by(wildcards):
    """What a table of decisions is made from: new markers, and the table before it."""
    again_if_spoiled("decided-{block}.json", wildcards)
    level, block = LEVELS[wildcards.level], int(wildcards.block)
    below = [LEVELS[name] for name in level.below]
    if level.kind != "promoted":
        return markers(below)
    first, last, _ = level.sees(block, below[0].places)
    table = f"results/sweeps/{{sweep}}/search/{{level}}/decided-{block - 1}.json"
    return markers(below, range(first, last)) + [table] * bool(block)


def basis_of(wildcards):
    """What changes whenever a table of decisions must be made again, besides its inputs."""
    return basis(SETTINGS, LEVELS[wildcards.level], int(wildcards.block))


def again_if_spoiled(name, wildcards):
    """Makes Snakemake write a file of the search again, although it is there."""
    path = f"{RESULTS.sweep(wildcards.sweep).search}/{wildcards.level}/"
    path += name.format(**wildcards)
    if path in SPOILED:
        workflow.dag.forcefiles.add(path)


def again_if_damaged(stage):
    """Returns no input, but a function that makes Snakemake write files of a stage again."""

    def no_input(wildcards):
        if DAMAGED.get(stage.name):
            folder = RESULTS.sweep(wildcards.sweep).path
            workflow.dag.forcefiles.update(str(folder / path) for path in stage.outputs)
        return []

    return no_input


def left_out():
    """The runs that this start needs no job for."""
    return SETTLED.whole if may_leave_out(workflow, RESULTS) else frozenset()


def runs_with_jobs(wildcards):
    """The runs that tables wait for, but for those that are left out."""
    settled_runs = left_out()
    return [run for run in AWAITED if run not in settled_runs]


def summaries(wildcards):
    """One file of each run that tables wait for, and of those of others.

    Nobody asks which job makes that of a run that is left out.
    """
    settled_runs = left_out()
    files = expand("results/runs/{run}/summary.json", run=AWAITED)
    return IMPORTED + [
        before_update(file) if run in settled_runs else file
        for run, file in zip(AWAITED, files)
    ]


def confirming_runs():
    """The runs that confirm the sweep, known as soon as its winners are."""
    return confirming(SETTINGS, SWEEP, RESULTS).runs


def confirming_summaries(wildcards):
    """The runs that confirm the sweep, after the winners; none where it is not to be confirmed."""
    if SETTINGS.confirm is None or SETTINGS.partial:
        return []
    checkpoints.choose_winners.get(sweep=SETTINGS.name)
    return expand("results/runs/{run}/summary.json", run=confirming_runs())


def files_of(names):
    """The files of some stages, as far as this sweep has them."""
    stages = [STAGES[name] for name in names if name in STAGES]
    return [
        f"results/sweeps/{{sweep}}/{path}" for stage in stages for path in stage.outputs
    ]


def outputs_of(stage):
    """The files of a stage, with what Snakemake's own report shows of them."""
    return [
        shown_in_report(path, shown) if shown else path
        for path, shown in zip(files_of([stage.name]), stage.outputs.values())
    ]


def shown_in_report(path, shown):
    """A file, or a folder with files of a pattern, that Snakemake's own report shows."""
    about = {
        "caption": f"../report/{shown.caption}.rst",
        "category": shown.category,
        "labels": {"sweep": "{sweep}", **shown.labels},
    }
    if shown.pattern is None:
        return report(path, **about)
    return report(directory(path), patterns=[shown.pattern], **about)
