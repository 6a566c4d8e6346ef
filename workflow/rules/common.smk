# The start of this sweep (qdsweep.planning.start), and the values that rules use.

import gc
import itertools
import os
import re
import shlex
import sys
import time

from snakemake_interface_executor_plugins.settings import DeploymentMethod

from qdsweep.analysis.stages import damaged_stages, files_of, stages_of
from qdsweep.config.files import find_config
from qdsweep.errors import BadInput
from qdsweep.host.process import complete_user
from qdsweep.planning import internals
from qdsweep.planning.checks import check_packages
from qdsweep.planning.console import tidy
from qdsweep.planning.module import (
    call_at_start,
    called_once,
    check_shared_files,
    clear,
    find_own_python,
    given_config,
    name_report,
    option,
    readable,
    results_folder,
    set_slurm_options,
    silent_slurm,
    slurm_defaults,
)
from qdsweep.planning.rows import confirming
from qdsweep.planning.slurm_jobs import EarlierJobs
from qdsweep.planning.start import Start
from qdsweep.records.paths import IMPORTED_PREFIX

# The DAG stays to the end. Garbage collection in it took a quarter of a start of 10,000 finished
# runs.
IS_MAIN = internals.is_main(workflow)
if IS_MAIN:
    gc.set_threshold(200_000, 20, 20)
    set_slurm_options(workflow)

find_own_python()
complete_user()
# Figures are files. The backend of a notebook's terminal is not installed here.
os.environ.update(MPLBACKEND="agg")


# A file given with --configfile is complete: it takes nothing from the default sweep.
if internals.takes_default_config(workflow):

    configfile: readable(find_config("config.yaml"))


DEPLOYMENT = internals.deployment(workflow)

try:
    check_shared_files(workflow)
    # In a module, `prefix:` moves them; the commands of rules then contain their path.
    RESULTS = results_folder(workflow)
    START = Start(
        RESULTS,
        given_config(workflow, config),
        is_job=not IS_MAIN and internals.is_of_runs(sys.argv),
        is_main=IS_MAIN,
    )
    START.check_fingerprints()
    if not DEPLOYMENT:  # an image, or a conda environment, has its own packages
        check_packages(START.runs, RESULTS)
except (BadInput, OSError) as error:
    raise clear(error)

AT_RESULTS = option("results", RESULTS.path, "results")
AT_RUNS = option("runs", RESULTS.runs, "results/runs")
SETTINGS = START.settings
STAGES = stages_of(SETTINGS, START.sweep.runs.values())

# The runs that tables wait for; a search chooses them while it runs. With `--config partial=true`
# there are none, and tables are rebuilt at each start. They do not wait for outdated runs.
AWAITED = [] if SETTINGS.partial or START.search else list(START.sweep.runs)
AWAITED = [run for run in AWAITED if run not in START.found.resting]
PARTIAL = f"--partial --at {time.time():.0f}" if SETTINGS.partial else ""

# The files of stages that a start makes. A shard has no tables.
TABLES = [] if SETTINGS.shard else files_of(STAGES, STAGES)
# Files of stages that have changed since they were written: they are rebuilt.
DAMAGED = damaged_stages(STAGES, START.folder.path) if TABLES and IS_MAIN else {}
# The files that are written again although they exist.
FORCED = START.forced | {
    f"{START.folder.path}/{path}" for name in DAMAGED for path in STAGES[name].outputs
}


wildcard_constraints:
    run=rf"(?!{IMPORTED_PREFIX})[A-Za-z0-9_.\-]+",
    sweep=re.escape(SETTINGS.name),
    level=r"[a-z0-9\-]+",
    place=r"\d+",
    seed=r"[^/]*",
    block=r"\d+",


def before_jobs():
    """Checks, writes and starts what jobs need, once they are known and before the first of them."""
    from qdsweep.planning.begin import begin  # neither a dry run nor a job needs it

    try:
        begin(
            START,
            cluster_name(),
            command="qdsweep.cli:main",
            is_remote=internals.is_remote(workflow),
            deploys=bool(DEPLOYMENT),
            image=image_name() if IMAGE else "",
            slurm=slurm_defaults(workflow),
        )
        runs = internals.runs_of_jobs(workflow)
        if line := START.republished(runs):
            print(line, file=sys.stderr)
        if runs or START.search:
            watch = f"`qdsweep watch {SETTINGS.name}{AT_RESULTS}`"
            line = f"qdsweep: {watch} in another terminal shows the progress"
            print(line, file=sys.stderr)
    except (BadInput, OSError) as error:
        raise clear(error, RESULTS.path)


try:
    IS_NEW = call_at_start(workflow, RESULTS, before_jobs)
except (BadInput, OSError) as error:
    raise clear(error)

if IS_NEW and IS_MAIN:
    tidy(workflow, START.progress())
    lines = START.lines(is_dry=internals.is_dry_run(workflow))
    for line in filter(None, (SLOWER, silent_slurm(), *lines)):
        print(line, file=sys.stderr)
    for path in itertools.chain(*DAMAGED.values()):
        words = f"{path} has changed since it was written, and is rebuilt"
        print(f"qdsweep: warning: {words}", file=sys.stderr)
    if TABLES:
        name_report(workflow, START.folder, AT_RESULTS)


@called_once
def cluster_name(wildcards=None):
    """The cluster config. `auto` is decided by where the jobs run."""
    if SETTINGS.cluster != "auto":
        return SETTINGS.cluster
    return "slurm" if internals.is_remote(workflow) else "local"


@called_once
def cluster_word(wildcards=None):
    """The cluster config as a word of the shell: the text of a command must never change."""
    return shlex.quote(cluster_name())


@called_once
def image_name(wildcards=None):
    """The image that every job runs in with `--sdm apptainer`."""
    return START.clusters[cluster_name()].image


@called_once
def workers(wildcards=None):
    """Processes of a run on one node."""
    return START.clusters[cluster_name()].workers_per_node


@called_once
def cores(wildcards=None):
    """Cores of a run on one node."""
    return START.clusters[cluster_name()].cores


# The environment of every rule, only if it is used. Snakemake keeps a copy of it in its record
# of each file that a run writes, 1.4 MB per run, and reads all of them at each start.
CONDA = (
    "../../envs/qdsweep.yaml"
    if DeploymentMethod.CONDA in DEPLOYMENT
    or {"--lint", "--archive", "--containerize"} & set(sys.argv)
    else None
)

# The image of every rule.
IMAGE = image_name if DeploymentMethod.APPTAINER in DEPLOYMENT else ""


def memory_of(wildcards):
    """Memory of the job's run: more only after the run has run out of memory."""
    return START.memory_mb(cluster_name(), dict(wildcards.items()))


EARLIER = EarlierJobs(internals.submitted_from(workflow))


@called_once
def slurm_options(wildcards=None):
    """Further options of a run's Slurm job, which waits for one that an earlier start has left."""
    options = SLURM["slurm_extra"] or ""
    if not IS_MAIN or not internals.is_remote(workflow):
        return options
    return (
        None if wildcards is None else f"{options} {EARLIER.option(wildcards)}".strip()
    )


# The requests of a run's job, without its memory. They are functions only where needed, as
# Snakemake calls functions for each job, which is slow in a sweep of 10,000 runs.
SLURM = START.slurm_request()
RUN_RESOURCES = {
    "cluster_config": cluster_word,
    "image": IMAGE,
    **SLURM,
    "slurm_extra": slurm_options,
}


def budget_of(wildcards):
    """The budget of a run as `launch` takes it: a larger one extends the run."""
    try:
        return START.budget_of(wildcards.run)
    except (BadInput, OSError) as error:
        raise clear(error)


def forced(*patterns):
    """No input: a function that makes Snakemake rewrite outputs, given below results/."""

    def no_input(wildcards):
        paths = {f"{RESULTS.path}/{name.format(**wildcards)}" for name in patterns}
        internals.force(workflow, paths & FORCED)
        return []

    return no_input


def settled_runs():
    """The runs that this start needs no job for -> the time of their summary."""
    if internals.may_leave_out(workflow, str(RESULTS.runs)):
        return START.found.settled.whole
    return {}


def runs_with_jobs(wildcards):
    """The runs that tables wait for, without those that need no job in this start."""
    left_out = settled_runs().keys() | START.found.taken
    return [run for run in AWAITED if run not in left_out]


def summaries(wildcards):
    """One file of each run that tables wait for, and of imported ones.

    Of a run that is left out only if it is newer than the tables. It is not looked up in the jobs.
    """
    if SETTINGS.shard:
        words = "tables, figures and report need the runs of all shards"
        remedy = "remove the key shard, or these targets"
        raise clear(BadInput(f"shard = {SETTINGS.shard}: {words}: {remedy}"))
    left_out = settled_runs()
    written = STAGES["aggregate"].written(START.folder.path)
    runs = [run for run in AWAITED if left_out.get(run, written) >= written]
    files = expand("results/runs/{run}/summary.json", run=runs)
    return IMPORTED + [
        before_update(file) if run in left_out else file
        for run, file in zip(runs, files)
    ]


def options_of_tables(wildcards, threads):
    """The options of the stage aggregate."""
    return f"--cores {threads} {PARTIAL}"


def confirming_results(wildcards):
    """The runs that confirm the sweep, and their elites evaluated again with `reevaluate`."""
    summaries = confirming_summaries(wildcards)
    if SETTINGS.reevaluate is None:
        return summaries
    name = f"{SETTINGS.reevaluate.stem}.json"
    return summaries + [
        os.path.join(os.path.dirname(file), name)
        for file in summaries
        if os.path.basename(os.path.dirname(file)) not in START.found.outdated
    ]


def confirming_summaries(wildcards):
    """The runs that confirm the sweep, once its winners are known; none without `confirm`."""
    if SETTINGS.confirm is None or SETTINGS.partial or SETTINGS.shard:
        return []
    checkpoints.choose_winners.get(sweep=SETTINGS.name)
    runs = confirming(SETTINGS, START.sweep, RESULTS).runs
    runs = [run for run in runs if run not in START.found.resting]
    return expand("results/runs/{run}/summary.json", run=runs)
