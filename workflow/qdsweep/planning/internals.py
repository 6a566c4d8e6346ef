"""All that qdsweep replaces or reads inside Snakemake, as in Snakemake 9.19.0 to 9.27.1.

`check` compares the names with the installed Snakemake, as the first step of a start. Snakemake is
only imported in functions, so that `check` can report a lost module, and workers need no Snakemake.
Other files of the package import public names only: exceptions, flags of outputs, and the
interfaces for plug-ins.
"""

import functools
import inspect
import itertools
import logging
import os
import re
import sys
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from qdsweep.errors import BadInput
from qdsweep.host.process import ending

OLDEST, NEWEST = "9.19.0", "9.27.1"
"""The versions of Snakemake that tests have started sweeps with."""
SLURM = "2.8.0"
"""The version of Snakemake's Slurm plug-in that tests have started sweeps with."""
COMMAND = "python -P -m qdsweep "
"""The start of the command of each rule of the workflow."""
RULES = ("qd_run", "search_place")
"""The rules whose jobs compute runs; in a module of another workflow they have a prefix."""

# The text of a run's process that has ended with an exit code, or by a signal. It is Python's
# (subprocess.CalledProcessError), in Snakemake's message: no interface of it has the exit code.
_ENDED = re.compile(
    r"qdsweep .* launch (\S+) .*(?: exit status (\d+)| with <Signals\.(\w+):)", re.S
)
# Why Snakemake may run a job again so that a settled run's would not be.
_TRIGGERS = {"MTIME", "PARAMS", "INPUT"}
# The beginnings of Snakemake's sentences. Another wording is only shown in addition.
_NOISE = (
    *("Assuming unrestricted", "Building DAG", "Using shell", "Provided ", "Rules claiming"),
    *("Select jobs", "Execute ", "Conda environments: ignored", "Singularity containers: ignored"),
    "Removing output files of failed job",
)
# Another start has written them.
_EXISTING = "Warning: the following output files of rule"
# The error of a rule's command. The error of the job follows.
_COMMAND_FAILED = "RuleException:\nCalledProcessError"
# Lines after the event `onerror`.
_AT_END = (
    *("Complete log", "Elapsed time", "Full Traceback"),
    "WorkflowError:\nAt least one job did not complete",
)
_Hook = Callable[[Any], None]

_ONCE = "the parameters of functions are inspected for each job"
_FEW = "the records of tables name every run"
_SETTINGS = "snakemake.settings.types"


class InsideName(NamedTuple):
    """A name inside Snakemake.

    Attributes:
        place: `MODULE:NAME`.
        form: The parameters of a function, where `...` means others; `property`; else empty.
        slower: What is slower without it; empty if a start needs it.
    """

    place: str
    form: str = ""
    slower: str = ""

    def __str__(self) -> str:
        return self.place.removeprefix("snakemake.").replace(":", ".")


def _names(module: str, owner: str, names: str) -> Iterator[InsideName]:
    for name in names.split():
        yield InsideName(f"{module}:{owner}.{name}")


NAMES = (
    # share_outputs
    InsideName("snakemake.jobs:Job.remove_existing_output", "async (self)"),
    InsideName("snakemake.jobs:Job.check_protected_output", "async (self)"),
    InsideName("snakemake.jobs:Job.postprocess", "async (self, check_output_mtime, ...)"),
    InsideName("snakemake.jobs:Job.cleanup", "async (self, skip_outputs)"),
    # limit_attempts
    InsideName("snakemake.jobs:Job.restart_times", "property"),
    # record_few_inputs
    InsideName("snakemake.persistence:PersistenceBase.finished", "async (self, job)", _FEW),
    InsideName("snakemake.persistence:PersistenceBase._input_changed", "(self, job, file)", _FEW),
    InsideName("snakemake.persistence:PersistenceBase.input", "(self, path)", _FEW),
    InsideName("snakemake.persistence:PersistenceBase._input.cache_clear", "", _FEW),
    # inspect_once
    InsideName("snakemake.rules:get_function_params", "(func)", _ONCE),
    InsideName("snakemake.common:get_function_params", "(func)", _ONCE),
    # change_executor
    InsideName(
        "snakemake.workflow:Workflow.execute", "(self, executor_plugin, executor_settings, ...)"
    ),
    InsideName("snakemake.workflow:Workflow._executor_plugin"),
    *_names("snakemake.rules", "Rule", "resources name shellcmd"),
    # call
    *(
        InsideName(f"snakemake.workflow:Workflow.on{event}", "(self, func)")
        for event in ("start", "success", "error")
    ),
    *_names("snakemake.workflow", "Workflow", "_onstart _onsuccess _onerror"),
    # forget_jobs
    InsideName("snakemake.persistence.file:FilePersistence._record_path", "(self, subject, id)"),
    # The terminal.
    InsideName("snakemake.logging:logger"),
    InsideName("snakemake.logging:ColorizingTextHandler"),
    InsideName("snakemake.logging:format_wildcards", "(dict_like, ...)"),
    InsideName(
        "snakemake.logging:DefaultFormatter.__init__", "(self, quiet, show_failed_logs, ...)"
    ),
    InsideName("snakemake.logging:DefaultFormatter.format_job_info", "(self, msg)"),
    InsideName("snakemake.logging:DefaultFormatter.format_job_error", "(self, msg)"),
    *_names(
        _SETTINGS,
        "OutputSettings",
        "verbose quiet debug_dag dryrun printshellcmds show_failed_logs",
    ),
    # What is read of the workflow and of its jobs.
    *_names(
        "snakemake.workflow",
        "Workflow",
        "modifier config_settings resource_settings dag_settings deployment_settings"
        " storage_settings output_settings configfiles overwrite_configfiles is_main_process"
        " remote_exec executor_plugin touch rules scheduler dag workdir_init current_basedir"
        " sourcecache",
    ),
    InsideName("snakemake.sourcecache:SourceCache.open", "(self, source_file, ...)"),
    InsideName("snakemake.common.configfile:load_configfile", "(configpath)"),
    InsideName("snakemake.modules:WorkflowModifier.is_main_snakefile", "(self)"),
    InsideName("snakemake.modules:WorkflowModifier.modify_path", "(self, path, ...)"),
    *_names("snakemake.modules", "WorkflowModifier", "namespace skip_configfile"),
    *_names(_SETTINGS, "ConfigSettings", "config_args overwrite_config"),
    *_names(_SETTINGS, "ResourceSettings", "default_resources"),
    *_names(_SETTINGS, "DeploymentSettings", "deployment_method"),
    *_names(
        _SETTINGS,
        "DAGSettings",
        "targets target_jobs batch forceall forcetargets forcerun until omit_from allowed_rules"
        " rerun_triggers",
    ),
    InsideName("snakemake.dag:DAG.forcefiles"),
    InsideName("snakemake.dag:DAG.needrun_jobs", "(self, ...)"),
    InsideName("snakemake.scheduling.job_scheduler:JobScheduler.failed"),
    *_names("snakemake.jobs", "Job", "rule wildcards_dict shellcmd log params resources input"),
    InsideName("snakemake.jobs:GroupJob.jobs"),
)


@functools.cache
def check() -> str:
    """Compares the names that are used with the installed Snakemake.

    Returns:
        A warning about what is slower; nothing if no name is lost.

    Raises:
        BadInput: A start needs a lost name, or one with other parameters.
    """
    lost = [name for name in NAMES if not _is_found(name)]
    if not lost:
        return ""
    needed = [name for name in lost if not name.slower]
    text = (
        f"qdsweep uses {', '.join(map(str, needed or lost))} of Snakemake {OLDEST} to {NEWEST}, "
        f"which the installed Snakemake {version('snakemake')} does not have in that form"
    )
    remedy = f'pip install "snakemake=={NEWEST}"'
    if needed:
        raise BadInput(f"{text}: install a tested one ({remedy})")
    slower = " and ".join(dict.fromkeys(name.slower for name in lost))
    return (
        f"qdsweep: warning: {text}. Starts are slower ({slower}), and results are equal. A tested "
        f"one: {remedy}"
    )


def _is_found(name: InsideName) -> bool:
    module, _, path = name.place.partition(":")
    *owners, last = path.split(".")
    try:
        owner = functools.reduce(getattr, owners, import_module(module))
    except (ImportError, AttributeError):
        return False
    try:
        found = inspect.getattr_static(owner, last)
    except AttributeError:
        return not name.form and _is_set(owner, last)
    if name.form in ("", "property"):
        return not name.form or isinstance(found, property)
    wanted = re.findall(r"\w+", name.form.removeprefix("async"))
    has = [*inspect.signature(found).parameters]
    same = set(wanted) <= set(has) if "..." in name.form else wanted == has
    return same and inspect.iscoroutinefunction(found) is name.form.startswith("async")


def _is_set(owner: object, name: str) -> bool:
    """Returns whether the constructor of a class sets an attribute."""
    if not inspect.isclass(owner):
        return False
    makers = [getattr(owner, maker, None) for maker in ("__init__", "__post_init__")]
    codes = [maker.__code__ for maker in makers if inspect.isfunction(maker)]
    fields = getattr(owner, "__dataclass_fields__", {})
    return name in fields or any(name in code.co_names for code in codes)


def _is_whole(slower: str) -> bool:
    """Returns whether a patch for speed has all its names."""
    return all(_is_found(name) for name in NAMES if name.slower == slower)


def is_own(command: str | None) -> bool:
    """Returns whether the command of a job is one of the workflow."""
    return (command or "").startswith(COMMAND)


def share_outputs(
    objection: Callable[[Any], Exception | None], give_up: Callable[[Any], bool]
) -> None:
    """Lets several starts of a sweep read and write the same files at the same time.

    Before a job and after a failure, Snakemake removes its outputs, which jobs of another start
    may be reading. After a job, Snakemake refuses outputs older than an input, which another start
    may just have replaced. It refuses outputs that this user may not write, as those of another
    user of a group's folder. Commands of qdsweep replace each file as a whole and take turns. No
    flag of an output has these effects.

    Args:
        objection: Is given a job of the workflow; returns why it cannot be started, if so.
        give_up: Is given a failed job of the workflow; returns whether its outputs may stay.
    """
    from snakemake.jobs import Job

    remove, postprocess, cleanup = Job.remove_existing_output, Job.postprocess, Job.cleanup
    check_protected = Job.check_protected_output

    async def remove_unless_own(job: Any) -> None:
        if not is_own(job.shellcmd):
            await remove(job)

    async def check_by_owner(job: Any) -> None:
        if not is_own(job.rule.shellcmd):
            await check_protected(job)
        elif error := objection(job):
            raise error

    async def postprocess_by_owner(job: Any, **options: Any) -> None:
        if is_own(job.shellcmd):
            options["check_output_mtime"] = False
        await postprocess(job, **options)

    async def cleanup_by_owner(job: Any, skip_outputs: Any) -> None:
        if not (is_own(job.shellcmd) and give_up(job)):
            await cleanup(job, skip_outputs)

    Job.remove_existing_output, Job.postprocess = remove_unless_own, postprocess_by_owner
    Job.cleanup, Job.check_protected_output = cleanup_by_owner, check_by_owner


def limit_attempts(is_last: Callable[[Path, str], bool]) -> None:
    """Has a function decide whether the failed attempt at a run is the last one.

    Args:
        is_last: Is given the log of the run, and how its process has ended; empty if unknown.
    """
    from snakemake.jobs import Job
    from snakemake.logging import logger

    usual = Job.restart_times
    endings: dict[str, str] = {}  # run -> how its process has ended

    def note(record: logging.LogRecord) -> bool:
        if match := _ENDED.search(str(record.msg)):
            endings[match[1]] = match[3] or ending(int(match[2]))
        return True

    def restart_times(job: Any) -> Any:
        if job.rule.name.endswith(RULES[0]):
            log = Path(job.log[0])
            if is_last(log, endings.pop(log.parent.name, "")):
                return 0
        return usual.__get__(job)

    logger.addFilter(note)
    Job.restart_times = property(restart_times)


def record_few_inputs(is_run: Callable[[str], object], few: int) -> None:
    """Keeps the runs out of Snakemake's records of tables, which each name all inputs.

    The tables of 100,000 runs had 300 MB of records, which each start read. Their param `plan`
    changes with the runs, and a start lists only runs that the tables do not have yet.

    Args:
        is_run: Whether an input is the file of a run.
        few: Up to this number of inputs, all are recorded.
    """
    if not _is_whole(_FEW):
        return
    from snakemake.persistence import PersistenceBase as Records

    finished, changed = Records.finished, Records._input_changed

    def is_of_tables(job: Any) -> bool:
        return is_own(job.rule.shellcmd) and job.rule.name.endswith("aggregate")  # or a prefix

    def others(files: Iterable[str]) -> list[str]:
        return sorted(file for file in files if not is_run(file))

    async def finished_with_few(records: Any, job: Any) -> None:
        inputs = job.input
        if is_of_tables(job) and len(inputs) > few:
            job.input = others(inputs)
            records._input.cache_clear()
        try:
            await finished(records, job)
        finally:
            job.input = inputs

    def changed_but_for_runs(records: Any, job: Any, file: Any = None) -> bool:
        if not is_of_tables(job):
            return bool(changed(records, job, file=file))
        recorded = records.input(file)
        return recorded is not None and others(recorded) != others(job.input)

    Records.finished, Records._input_changed = finished_with_few, changed_but_for_runs


def inspect_once() -> None:
    """Has Snakemake inspect the parameters of each function once, instead of for each job."""
    if not _is_whole(_ONCE):
        return
    from snakemake import common, rules

    rules.get_function_params = functools.cache(rules.get_function_params)
    common.get_function_params = rules.get_function_params


def change_executor(workflow: Any, change: Callable[[Any, bool], None]) -> None:
    """Has a function called once the executor is known, before the jobs are planned.

    No hook of a workflow is called then, and a profile has options of a plug-in only where that is
    installed: Snakemake refuses them elsewhere at every start.

    Args:
        workflow: Snakemake's.
        change: Is given the settings of the executor, and whether jobs run on this machine.
    """
    execute = workflow.execute

    def execute_with(*, executor_plugin: Any, executor_settings: Any, **others: Any) -> Any:
        workflow._executor_plugin = executor_plugin  # as `execute` does
        change(executor_settings, not is_remote(workflow))
        others["executor_plugin"] = executor_plugin
        return execute(executor_settings=executor_settings, **others)

    workflow.execute = execute_with


def change_slurm_options(settings: Any, values: Mapping[str, object]) -> None:
    """Changes the defaults of the Slurm plug-in's options; nothing if it is another executor's.

    Args:
        settings: The settings of the executor.
        values: Option -> value, where the user has given none.

    Raises:
        BadInput: The plug-in does not have these options.
    """
    used = [*values, "no_requeue"]
    lost = [name for name in used if not hasattr(settings, name)]
    if lost and not type(settings).__module__.startswith("snakemake_executor_plugin_slurm"):
        return
    if lost:
        plugin = "snakemake-executor-plugin-slurm"
        raise BadInput(
            f"qdsweep sets the options {', '.join(lost)} of {plugin} {SLURM}, which the installed "
            f'{version(plugin)} does not have: install that one (pip install "{plugin}=={SLURM}")'
        )
    defaults = type(settings)()
    typed = {word.partition("=")[0] for word in sys.argv}
    for name, value in values.items():
        is_default = getattr(settings, name) == getattr(defaults, name)
        if is_default and f"--slurm-{name.replace('_', '-')}" not in typed:
            setattr(settings, name, value)
    settings.requeue &= not settings.no_requeue


def change_resources(
    workflow: Any, value_of: Callable[[Any], Any], left_out: Iterable[str]
) -> None:
    """Replaces resources of all rules by values, and leaves some out."""
    for rule in workflow.rules:
        for name, resource in list(rule.resources.items()):
            if (value := value_of(resource)) is not None:
                rule.resources[name] = value
        if {*left_out}:
            kept = [item for item in rule.resources.items() if item[0] not in left_out]
            rule.resources = type(rule.resources)(dict(kept))


def call(workflow: Any, event: str, calls: Callable[[_Hook], tuple[_Hook, _Hook]]) -> None:
    """Has two functions called at an event: qdsweep's, and that of the main Snakefile.

    Snakemake ignores the hooks of a module, and has one of each kind.

    Args:
        workflow: Snakemake's.
        event: onstart, onsuccess or onerror.
        calls: Is given the function of the main Snakefile; returns both in their order.
    """
    register = getattr(workflow, event)

    def set_both() -> None:
        first, second = calls(getattr(workflow, f"_{event}"))

        def both(log: Any) -> None:
            first(log)
            second(log)

        setattr(workflow, f"_{event}", both)

    def register_both(function: _Hook) -> None:
        register(function)
        if workflow.modifier.is_main_snakefile():
            set_both()

    setattr(workflow, event, register_both)
    set_both()


def is_main(workflow: Any) -> bool:
    """Returns whether this Snakemake plans the jobs, and is not that of a job."""
    return bool(workflow.is_main_process)


def is_remote(workflow: Any) -> bool:
    """Returns whether the jobs of this Snakemake run elsewhere.

    The executor is not known before the DAG is made. The Snakemake of a Slurm job executes on its
    node, but knows that it does so for another one.
    """
    plugin = workflow.executor_plugin
    return workflow.remote_exec or not (plugin is None or plugin.common_settings.local_exec)


def is_of_runs(command_line: Sequence[str]) -> bool:
    """Returns whether a Snakemake was started for jobs of single runs or places of a search.

    It needs no other run. Parsing the Snakefile must not take longer for 10,000 runs than for 10,
    and while it is parsed, only the command line contains the targets.

    Args:
        command_line: Of that Snakemake, such as `[..., "--target-jobs", "qd_run:run=ID", ...]`.
    """
    after = itertools.dropwhile(lambda word: word != "--target-jobs", command_line)
    targets = list(itertools.takewhile(lambda word: not word.startswith("-"), [*after][1:]))
    return bool(targets) and all(
        ":run=" in target or "search_place:" in target for target in targets
    )


class Configs(NamedTuple):
    """The config files and options of a workflow.

    Attributes:
        typed: The `KEY=VALUE` of `--config`.
        overwriting: The config that wins over all files.
        chosen: The files of `--configfile`.
        files: All files: those of `--configfile` first, although they win.
    """

    typed: list[str]
    overwriting: Mapping[str, Any]
    chosen: list[Path]
    files: list[Path]


def configs(workflow: Any) -> Configs:
    """Returns the config files and options of a workflow."""
    settings = workflow.config_settings
    chosen = [Path(file) for file in workflow.overwrite_configfiles or ()]
    files = [Path(file) for file in workflow.configfiles]
    return Configs(list(settings.config_args or ()), settings.overwrite_config, chosen, files)


def read_configfile(file: Path) -> dict[str, Any]:
    """Reads a config file as Snakemake does."""
    from snakemake.common.configfile import load_configfile

    return dict(load_configfile(file))


class Module(NamedTuple):
    """The module whose Snakefile is read now.

    Attributes:
        name: Its name; None in the main Snakefile.
        is_main: Whether this is the main Snakefile.
        has_config: Whether it has a `config:`.
    """

    name: str | None
    is_main: bool
    has_config: bool


def module_of(workflow: Any) -> Module:
    """Returns the module whose Snakefile is read now."""
    modifier = workflow.modifier
    return Module(modifier.namespace, modifier.is_main_snakefile(), bool(modifier.skip_configfile))


def moved(workflow: Any, path: str) -> str:
    """Returns a path of an output where the `prefix:` of a module moves it."""
    return str(workflow.modifier.modify_path(path))


def text_of(workflow: Any, file: str) -> tuple[str, str]:
    """Returns the name and the text of a file, given relative to the Snakefile that is read now."""
    place = workflow.current_basedir.join(file)
    with workflow.sourcecache.open(place) as opened:
        return str(place), opened.read()


def default_resources(workflow: Any) -> dict[str, str]:
    """Returns what `--default-resources` sets, as text."""
    defaults = workflow.resource_settings.default_resources or {}
    return {key: str(getattr(value, "raw", value)) for key, value in defaults.items()}


def takes_default_config(workflow: Any) -> bool:
    """Returns whether the default sweep is read: no `--configfile`, and no module reads this."""
    return workflow.modifier.is_main_snakefile() and not workflow.overwrite_configfiles


def storage_settings(workflow: Any) -> Any:
    """Returns the settings of storage, as the interface of executors has them."""
    return workflow.storage_settings


def deployment(workflow: Any) -> Any:
    """Returns the methods of `--sdm`."""
    return workflow.deployment_settings.deployment_method


def submitted_from(workflow: Any) -> str:
    """Returns the folder that jobs are submitted from."""
    return str(workflow.workdir_init)


def may_leave_out(workflow: Any, folder: str) -> bool:
    """Returns whether runs that are settled may be left out of Snakemake's DAG, once it is made.

    Not where the user asks for jobs by name or by force, and not for what only looks at jobs
    (`--summary`, `--report`, `--delete-all-output`, `--archive`), or touches their files.

    Args:
        workflow: Snakemake's.
        folder: The folder of the runs.
    """
    asked = workflow.dag_settings
    if asked is None or workflow.executor_plugin is None or workflow.touch:
        return False
    chosen = (
        *(asked.forceall, asked.forcetargets, asked.forcerun, asked.until, asked.omit_from),
        *(asked.target_jobs, asked.allowed_rules, asked.batch),
        any(str(target).startswith(folder) for target in asked.targets),
    )
    triggers = {trigger.name for trigger in asked.rerun_triggers}
    return not any(chosen) and triggers <= _TRIGGERS


def force(workflow: Any, paths: Iterable[str]) -> None:
    """Has Snakemake write files again; for a function of an input, which it calls before.

    `--forcerun` does the same, but it also makes the files targets.
    """
    workflow.dag.forcefiles.update(paths)


def runs_of_jobs(workflow: Any) -> list[str]:
    """Returns the runs that have a job, once the DAG is made."""
    return [
        job.wildcards_dict["run"]
        for job in workflow.dag.needrun_jobs()
        if job.rule.name.endswith(RULES[0])
    ]


def failed_jobs(workflow: Any) -> list[Any]:
    """Returns the jobs of Snakemake's workflow whose last attempt has failed."""
    failed = getattr(workflow.scheduler, "failed", ())  # there is none before the first job
    return [job for each in failed for job in getattr(each, "jobs", [each])]


def wildcards_of(comment: str) -> str:
    """Returns the wildcards of a job that computes a run, from its comment in Slurm's queue.

    Args:
        comment: As Snakemake's Slurm plug-in makes it: `rule_NAME_wildcards_VALUES`.

    Returns:
        The values, as `joined` has them; nothing for another job.
    """
    rule, _, wildcards = comment.partition("_wildcards_")
    return wildcards if rule.endswith(RULES) else ""


def joined(wildcards: Iterable[str]) -> str:
    """Returns the values of wildcards as in the comment of a Slurm job."""
    return "_".join(wildcards).replace("/", "_")


def forget_jobs(folder: Path, names: Iterable[str]) -> None:
    """Removes Snakemake's records of files: those of an earlier or a killed job.

    `snakemake --cleanup-metadata` needs the sweep's config, plans all of its jobs for each call,
    and refuses files without a record.

    Args:
        folder: The folder of the files.
        names: Their names.
    """
    folder = folder.absolute()
    clone = next((path for path in folder.parents if (path / ".snakemake").is_dir()), None)
    if clone is None:
        return
    for name in names:
        key = urlsafe_b64encode(os.fsencode((folder / name).relative_to(clone))).decode()
        for kind in ("metadata", "incomplete"):
            with suppress(OSError):
                (clone / ".snakemake" / kind / key).unlink()


def is_another_attempt(text: str) -> bool:
    """Returns whether a line of Snakemake repeats what a line of the workflow contains."""
    failed = text.startswith(_COMMAND_FAILED) and COMMAND in text
    return failed or text.startswith(_EXISTING)


def is_noise(text: str) -> bool:
    """Returns whether an information of Snakemake is of no use to a user of the workflow."""
    return text.startswith(_NOISE)


def is_at_end(text: str) -> bool:
    """Returns whether a line of Snakemake follows the last lines of qdsweep."""
    return text.startswith(_AT_END)


def handlers_of_terminal() -> list[logging.StreamHandler[Any]]:
    """Returns the handler of Snakemake that writes to the terminal; none if a plug-in does.

    A logger plug-in could replace it. But users would have to name it at each start, and a profile
    that does so stops every command on a machine without it.
    """
    from snakemake.logging import ColorizingTextHandler, logger

    return [each for each in logger.handlers if isinstance(each, ColorizingTextHandler)]


def is_dry_run(workflow: Any) -> bool:
    """Returns whether Snakemake only shows what it would do."""
    asked = workflow.output_settings
    return asked is not None and bool(asked.dryrun)


def is_usual_output(workflow: Any) -> bool:
    """Returns whether the user asks for all of Snakemake's output, or for less of it."""
    asked = workflow.output_settings
    if asked is None or asked.verbose or asked.quiet or asked.debug_dag:
        return True
    return bool(asked.dryrun or asked.printshellcmds)


def format_jobs(
    workflow: Any,
    handlers: Iterable[logging.Handler],
    line: Callable[[Mapping[str, Any]], str],
    failure: Callable[[Mapping[str, Any]], str],
) -> None:
    """Changes how handlers show a job and a failed job of the workflow.

    Args:
        workflow: Snakemake's.
        handlers: The handlers.
        line: Is given the record of a job, whose message is never empty.
        failure: Is given the record of a failed job of the workflow.
    """
    from snakemake.logging import DefaultFormatter, format_wildcards

    class _Short(DefaultFormatter):
        def format_job_info(self, msg: dict[str, Any]) -> str:
            usual = f"{msg['rule_name']} {format_wildcards(msg['wildcards'])}"
            return line(msg | {"rule_msg": msg["rule_msg"] or usual})

        def format_job_error(self, msg: dict[str, Any]) -> str:
            return failure(msg) if is_own(msg["shellcmd"]) else super().format_job_error(msg)

    asked = workflow.output_settings
    for handler in handlers:
        handler.setFormatter(_Short(asked.quiet, asked.show_failed_logs))
