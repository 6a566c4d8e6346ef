"""qdsweep as a module of a user's workflow: config, folder of the results, start and end."""

import contextlib
import functools
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil
from snakemake import common, persistence, rules
from snakemake.common.configfile import load_configfile
from snakemake.exceptions import WorkflowError
from snakemake.jobs import Job

from qdsweep.config.files import HOME, find_config, read_yaml
from qdsweep.errors import BadInput, StorageError
from qdsweep.planning.console import is_own
from qdsweep.planning.failures import report, stop_useless_attempts
from qdsweep.planning.jobs import REQUESTED
from qdsweep.planning.start import Given
from qdsweep.records.paths import Results, RunDir, SweepDir
from qdsweep.records.progress import LARGE
from qdsweep.records.reload_head import require_adopted
from qdsweep.records.status import read_status
from qdsweep.records.sums import withdraw
from qdsweep.versions import __version__

_SUMMARY = re.compile(r"(^|/)runs/[^/]+/summary\.json$")
_Records = getattr(persistence, "PersistenceBase", None) or persistence.Persistence
_EXPONENT = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+")


def given_config(workflow: Any, config: Mapping[str, Any]) -> Given:
    """Returns the config of the workflow, or of the module that is read now.

    The config of a module is the mapping after its `config:`. If it equals the config files, the
    files are named, so that messages name them and the command line counts. A module without
    `config:` takes the config of the workflow without a module.

    Args:
        workflow: Snakemake's.
        config: The config in the Snakefile.
    """
    settings, modifier = workflow.config_settings, workflow.modifier
    typed = list(settings.config_args or ())
    if modifier.is_main_snakefile():
        return Given(config, typed, workflow.configfiles, "--config")
    chosen = [Path(file) for file in workflow.overwrite_configfiles or ()]
    where = f"config of the module {modifier.namespace}"
    if not modifier.skip_configfile:
        default = find_config("config.yaml")
        return Given(settings.overwrite_config, typed, chosen or [Path(default)], where)
    missing = object()
    typed = [
        entry
        for entry in typed
        if (key := entry.partition("=")[0]) in config
        and config[key] == settings.overwrite_config.get(key, missing)
    ]
    # Snakemake has the files of the command line first, although they win.
    files = [Path(file) for file in workflow.configfiles]
    files = [file for file in files if file not in chosen] + chosen
    read: dict[str, Any] = {}
    for file in files:
        read |= load_configfile(file)
    read |= {key: config[key] for key in (entry.partition("=")[0] for entry in typed)}
    if read == config:
        return Given(config, typed, files, where)
    return Given(_with_numbers(config), typed, [], where)


def _with_numbers(value: Any) -> Any:
    """Returns a value with numbers such as `1e-3`, which Snakemake's YAML leaves as text."""
    if isinstance(value, Mapping):
        return {key: part if key == "name" else _with_numbers(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_with_numbers(part) for part in value]
    return float(value) if isinstance(value, str) and _EXPONENT.fullmatch(value) else value


def warn_of_other_rules(workflow: Any) -> None:
    """Prints a warning if a module's rules come from another release than the package."""
    rules = workflow.current_basedir.join("rules/common.smk")
    with workflow.sourcecache.open(rules) as file:
        own = (HOME / "workflow/rules/common.smk").read_text(encoding="utf-8")
        if file.read().strip() != own.strip():  # from git it comes without its last newline
            print(
                f"qdsweep: warning: {rules} differs from that of the installed package "
                f"{__version__}; use the same tag for both",
                file=sys.stderr,
            )


def clear(error: BadInput | OSError, folder: Path = Path("results")) -> WorkflowError:
    """Returns Snakemake's error with the message of bad input, or of a full or broken disk.

    Args:
        error: The error. It is caught and raised in the rules: Snakemake prints each frame.
        folder: The folder of an error that names no file.
    """
    return WorkflowError(str(error if isinstance(error, BadInput) else StorageError(error, folder)))


def readable(file: str) -> str:
    """Returns a config file. Snakemake reads it next, and its errors do not name it.

    Raises:
        WorkflowError: It exists, and is not a YAML mapping.
    """
    try:
        if Path(file).exists():  # `--configfile` may replace it
            read_yaml(Path(file))
    except BadInput as error:
        raise clear(error) from None
    return file


def results_folder(workflow: Any) -> Results:
    """Returns the folder results/, which `prefix:` of a module moves.

    Raises:
        BadInput: Commands of rules cannot name it as it is.
    """
    folder = Path(str(workflow.modifier.modify_path("results/runs/any"))).parents[1]
    if shlex.quote(str(folder)) != str(folder):
        raise BadInput(
            f"module {workflow.modifier.namespace}: its prefix makes {str(folder)!r} of results: "
            "use only letters, digits, - and _"
        )
    return Results(folder)


def is_remote(workflow: Any) -> bool:
    """Returns whether the jobs of this Snakemake run elsewhere.

    The executor is not known before the DAG is made. The Snakemake of a Slurm job executes on its
    node, but knows that it does so for another one.
    """
    plugin = workflow.executor_plugin
    return workflow.remote_exec or not (plugin is None or plugin.common_settings.local_exec)


def slurm_defaults(workflow: Any) -> dict[str, str]:
    """Returns account and partition of Slurm, where `--default-resources` sets them."""
    defaults = workflow.resource_settings.default_resources or {}
    return {
        key: str(getattr(defaults[key], "raw", defaults[key])).strip("'\"")
        for key in ("slurm_account", "slurm_partition")
        if key in defaults
    }


# A job that was preempted or lost its node resumes from its reload file, under the same number. The
# plugin does not understand sacct's "CANCELLED by UID" and would wait forever.
_SLURM = {"requeue": True, "status_command": "squeue", "init_seconds_before_status_checks": 15}


def set_slurm_options(workflow: Any) -> None:
    """Changes the defaults of the Slurm plugin's options, before its executor is made.

    Where the plugin is not installed, Snakemake refuses its options in a profile at every start.
    """
    execute = workflow.execute

    def execute_with(*, executor_plugin: Any, executor_settings: Any, **others: Any) -> Any:
        if hasattr(executor_settings, "no_requeue"):
            defaults = type(executor_settings)()
            typed = {word.partition("=")[0] for word in sys.argv}
            for name, value in _SLURM.items():
                is_default = getattr(executor_settings, name) == getattr(defaults, name)
                if is_default and f"--slurm-{name.replace('_', '-')}" not in typed:
                    setattr(executor_settings, name, value)
            executor_settings.requeue &= not executor_settings.no_requeue
        workflow._executor_plugin = executor_plugin  # as `execute` does
        is_local = executor_plugin.common_settings.local_exec and not workflow.remote_exec
        for rule in workflow.rules:
            _call_once(rule.resources)
            if is_local:
                kept = [item for item in rule.resources.items() if item[0] not in REQUESTED]
                rule.resources = type(rule.resources)(dict(kept))
        others["executor_plugin"] = executor_plugin
        return execute(executor_settings=executor_settings, **others)

    workflow.execute = execute_with


_CALLED_ONCE: list[Callable[..., Any]] = []


def called_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function of a rule's resource whose value is known once the executor is.

    Snakemake calls functions for each job, which took a tenth of a start of 10,000 runs. Without an
    argument the function returns the value of all jobs, None if they differ.
    """
    _CALLED_ONCE.append(function)
    return function


def _call_once(resources: Any) -> None:
    """Replaces such functions in the resources of a rule by their values."""
    for name, resource in list(resources.items()):
        for function in _CALLED_ONCE:
            if resource == function and (value := function()) is not None:
                resources[name] = value


def _objection(job: Job) -> WorkflowError | None:
    """Returns why the job of a run would refuse to resume it; None for other jobs."""
    if "run" not in job.wildcards_dict or not hasattr(job.params, "budget"):
        return None
    run = RunDir(Path(job.log[0]).parent)
    unit, _, amount = str(job.params.budget).partition("=")
    try:
        if not read_status(run.state).has_reached({unit: int(amount)}):
            require_adopted(run.state)
    except (BadInput, OSError) as error:
        return clear(error)
    return None


def share_outputs() -> None:
    """Lets several starts of a sweep read and write the same files at the same time.

    Before a job and after a failure, Snakemake removes its outputs, which jobs of another start
    may be reading. After a job, Snakemake refuses outputs older than an input, which another start
    may just have replaced. It refuses outputs that this user may not write, as those of another
    user of a group's folder. Commands of qdsweep replace each file as a whole and take turns. Only
    a reload file of another user is refused then. The outputs of a stage that failed are only
    marked: the next start makes them again.
    """
    remove, postprocess, cleanup = Job.remove_existing_output, Job.postprocess, Job.cleanup
    check = Job.check_protected_output

    async def remove_unless_own(job: Job) -> None:
        if not is_own(job.shellcmd):
            await remove(job)

    async def check_by_owner(job: Job) -> None:
        if not is_own(job.rule.shellcmd):
            await check(job)
        elif error := _objection(job):
            raise error

    async def postprocess_by_owner(job: Job, **options: Any) -> None:
        if is_own(job.shellcmd):
            options["check_output_mtime"] = False
        await postprocess(job, **options)

    async def cleanup_by_owner(job: Job, skip_outputs: Any) -> None:
        if is_own(job.shellcmd) and (stage := job.resources.get("stage")):
            sweep = SweepDir(Path(job.log[0]).parents[1])  # results/sweeps/NAME/logs/STAGE.log
            withdraw(sweep.sums(str(stage)))
        else:
            await cleanup(job, skip_outputs)

    Job.remove_existing_output, Job.postprocess = remove_unless_own, postprocess_by_owner
    Job.cleanup, Job.check_protected_output = cleanup_by_owner, check_by_owner


def inspect_once() -> None:
    """Has Snakemake inspect the parameters of each function once, instead of for each job."""
    rules.get_function_params = functools.cache(rules.get_function_params)
    common.get_function_params = rules.get_function_params


def record_few_inputs() -> None:
    """Keeps the runs out of Snakemake's records of tables, which each name all inputs.

    The tables of 100,000 runs had 300 MB of records, which each start read. Their param `plan`
    changes with the runs, and a start lists only runs that the tables do not have yet.
    """
    finished, changed = _Records.finished, _Records._input_changed

    def is_of_tables(job: Job) -> bool:
        return is_own(job.rule.shellcmd) and job.rule.name.endswith("aggregate")  # or a prefix

    def others(files: Iterable[str]) -> list[str]:
        return sorted(file for file in files if not _SUMMARY.search(file))

    async def finished_with_few(records: Any, job: Job) -> None:
        inputs = job.input
        if is_of_tables(job) and len(inputs) > LARGE:
            job.input = others(inputs)
            records._input.cache_clear()
        try:
            await finished(records, job)
        finally:
            job.input = inputs

    def changed_but_for_runs(records: Any, job: Job, file: Any = None) -> bool:
        if not is_of_tables(job):
            return bool(changed(records, job, file=file))
        recorded = records.input(file)
        return recorded is not None and others(recorded) != others(job.input)

    _Records.finished, _Records._input_changed = finished_with_few, changed_but_for_runs


def silent_slurm(seconds: float = 8) -> str:
    """Returns a warning if the Slurm plugin's import has waited for a cluster; else nothing.

    Args:
        seconds: The shortest such wait: time since the process started, without its CPU time [s].
    """
    waited = time.time() - psutil.Process().create_time() - time.process_time()
    if waited < seconds or shutil.which("scontrol") is None:
        return ""
    with contextlib.suppress(subprocess.TimeoutExpired):
        words = ["scontrol", "ping"]
        answer = subprocess.run(words, capture_output=True, timeout=1, check=False).stdout
        if b"DOWN" not in answer:  # it works, or has no configuration and ends at once
            return ""
    return (
        f"qdsweep: this start waited {waited:.0f} s for a Slurm that does not answer "
        "(`scontrol ping`). Without Slurm, `export SLURM_CONF=/dev/null` avoids it."
    )


def option(name: str, folder: Path, default: str) -> str:
    """Returns an option for a rule's command; nothing for the default.

    The command of a workflow without `prefix:` never changes: its runs would be computed again.
    """
    return "" if folder == Path(default) else f" --{name}={folder}"


def call_at_start(workflow: Any, results: Results, start: Callable[[], None]) -> bool:
    """Has a function called when jobs are about to start, as `onstart:` of the main Snakefile.

    Snakemake ignores that of a module. One of the user's own is called after it.

    Args:
        workflow: Snakemake's.
        results: The folder of its results.
        start: The function.

    Returns:
        Whether it is new: each `use rule` reads a module once more.

    Raises:
        BadInput: Another module has this folder of results.
    """
    name = workflow.modifier.namespace
    if not hasattr(workflow, "qdsweep_starts"):
        workflow.qdsweep_starts = {}

        def at_start(log: Any) -> None:
            for _, start in workflow.qdsweep_starts.values():
                start()

        _call(workflow, "onstart", lambda own: (at_start, own))
        share_outputs()
        record_few_inputs()
        inspect_once()
        if workflow.is_main_process:
            stop_useless_attempts()
            _call(workflow, "onerror", lambda own: (own, functools.partial(report, workflow)))
    starts = workflow.qdsweep_starts
    other, _ = starts.get(results.path, (name, None))
    if other != name:
        raise BadInput(
            f"module {name}: {results.path}/ has the results of the module {other}; give "
            f'each module a separate folder, such as prefix: "{name}"'
        )
    is_new = results.path not in starts
    starts[results.path] = (name, start)
    return is_new


def name_report(workflow: Any, sweep: SweepDir, at: str) -> None:
    """Makes a start that succeeds end with the path of the report and the command for its runs.

    Args:
        workflow: Snakemake's.
        sweep: The sweep.
        at: The option of the command that names the folder of results, if it needs one.
    """

    def end(log: Any) -> None:
        with contextlib.suppress(OSError):  # `--until` may leave out the report, or an older one
            if sweep.report.stat().st_mtime >= sweep.summary.stat().st_mtime:
                status = f"`qdsweep status {sweep.name}{at}` prints the state of every run"
                print(f"qdsweep: open {sweep.report} in a browser. {status}", file=sys.stderr)

    _call(workflow, "onsuccess", lambda own: (own, end))


_Hook = Callable[[Any], None]


def _call(workflow: Any, event: str, calls: Callable[[_Hook], tuple[_Hook, _Hook]]) -> None:
    """Has two functions called at an event: qdsweep's, and that of the main Snakefile.

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
