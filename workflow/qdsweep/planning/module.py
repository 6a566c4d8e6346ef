"""qdsweep as a module of a user's workflow: config, folder of the results, Python, start and end.

The folder is one that all jobs of a sweep share.
"""

import contextlib
import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
from snakemake.exceptions import WorkflowError
from snakemake_interface_executor_plugins.settings import SharedFSUsage

from qdsweep.config.files import HOME, find_config, read_yaml
from qdsweep.errors import BadInput, StorageError
from qdsweep.files import temporary_name
from qdsweep.planning import internals
from qdsweep.planning.failed_jobs import report_failures, stop_useless_attempts
from qdsweep.planning.request import Given
from qdsweep.planning.slurm_jobs import REQUESTED
from qdsweep.records.paths import Results, RunDir, SweepDir
from qdsweep.records.progress import LARGE
from qdsweep.records.reload_head import require_adopted
from qdsweep.records.status import read_status
from qdsweep.records.sums import withdraw
from qdsweep.versions import __version__

_PACKAGE = Path(__file__).resolve().parents[1]
_SUMMARY = re.compile(r"(^|/)runs/[^/]+/summary\.json$")
_WHY = (
    "all jobs must share the folder with the reload files, state/ and locks of the runs. No "
    "storage provider can replace it. Leave the option out. Use one machine (snakemake --cores N) "
    "or Slurm with a folder that all nodes share (snakemake --profile profiles/slurm). Elsewhere, "
    "run the whole sweep in one job (snakemake --cores all), and keep its results/"
)
_EXPONENT = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+")

# A job that was preempted or lost its node resumes from its reload file, under the same number. The
# plugin does not understand sacct's "CANCELLED by UID" and would wait forever. Its first look at
# jobs comes after 40 s by default.
_SLURM = {"requeue": True, "status_command": "squeue", "init_seconds_before_status_checks": 15}
_CALLED_ONCE: list[Callable[..., Any]] = []


def given_config(workflow: Any, config: Mapping[str, Any]) -> Given:
    """Returns the config of the workflow, or of the module that is read now.

    The config of a module is the mapping after its `config:`. If it equals the config files, the
    files are named, so that messages name them and the command line counts. A module without
    `config:` takes the config of the workflow without a module.

    Args:
        workflow: Snakemake's.
        config: The config in the Snakefile.
    """
    module, known = internals.module_of(workflow), internals.configs(workflow)
    typed = known.typed
    if module.is_main:
        return Given(config, typed, known.files, "--config")
    where = f"config of the module {module.name}"
    if not module.has_config:
        default = find_config("config.yaml")
        return Given(known.overwriting, typed, known.chosen or [Path(default)], where)
    missing = object()
    typed = [
        entry
        for entry in typed
        if (key := entry.partition("=")[0]) in config
        and config[key] == known.overwriting.get(key, missing)
    ]
    # Snakemake has the files of the command line first, although they win.
    files = [file for file in known.files if file not in known.chosen] + known.chosen
    read: dict[str, Any] = {}
    for file in files:
        read |= internals.read_configfile(file)
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
    rules, text = internals.text_of(workflow, "rules/common.smk")
    own = (HOME / "workflow/rules/common.smk").read_text(encoding="utf-8")
    if text.strip() != own.strip():  # from git it comes without its last newline
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
    folder = Path(internals.moved(workflow, "results/runs/any")).parents[1]
    if shlex.quote(str(folder)) != str(folder):
        raise BadInput(
            f"module {internals.module_of(workflow).name}: its prefix makes {str(folder)!r} of "
            "results: use only letters, digits, - and _"
        )
    return Results(folder)


def slurm_defaults(workflow: Any) -> dict[str, str]:
    """Returns account and partition of Slurm, where `--default-resources` sets them."""
    defaults = internals.default_resources(workflow)
    keys = ("slurm_account", "slurm_partition")
    return {key: defaults[key].strip("'\"") for key in keys if key in defaults}


def set_slurm_options(workflow: Any) -> None:
    """Changes the defaults of the Slurm plugin's options, before its executor is made.

    It also replaces resources that are equal for all jobs, and local jobs have no request.
    """

    def change(settings: Any, is_local: bool) -> None:
        try:
            internals.change_slurm_options(settings, _SLURM)
        except BadInput as error:
            raise clear(error) from None
        internals.change_resources(workflow, _value, REQUESTED if is_local else ())

    internals.change_executor(workflow, change)


def called_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function of a rule's resource whose value is known once the executor is.

    Snakemake calls functions for each job, which took a tenth of a start of 10,000 runs. Without an
    argument the function returns the value of all jobs, None if they differ.
    """
    _CALLED_ONCE.append(function)
    return function


def _value(resource: Any) -> Any:
    """Returns the value of a resource that is such a function, if all jobs have the same one."""
    return next((function() for function in _CALLED_ONCE if resource == function), None)


def _objection(job: Any) -> WorkflowError | None:
    """Returns why the job of a run would refuse to resume it; None for other jobs.

    Snakemake refuses outputs that this user may not write, such as those of another user of a
    group's folder. Only a reload file of another user is refused instead.
    """
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


def _withdraw(job: Any) -> bool:
    """Marks the outputs of a failed stage as unfinished, for the next start; False for a run."""
    stage = job.resources.get("stage")
    if stage:
        sweep = SweepDir(Path(job.log[0]).parents[1])  # results/sweeps/NAME/logs/STAGE.log
        withdraw(sweep.sums(str(stage)))
    return bool(stage)


def check_shared_files(workflow: Any) -> None:
    """Refuses to keep results anywhere but in a folder that all jobs share.

    Raises:
        BadInput: Snakemake was given a storage provider for them, or an option that denies such a
            folder.
    """
    storage = internals.storage_settings(workflow)
    provider = storage.default_storage_provider
    if provider is not None:
        raise BadInput(f"--default-storage-provider {provider}: {_WHY}")
    if SharedFSUsage.INPUT_OUTPUT not in storage.shared_fs_usage:
        usage = " ".join(sorted(kind.item_to_choice() for kind in storage.shared_fs_usage))
        raise BadInput(f"--shared-fs-usage {usage or 'none'} lacks input-output: {_WHY}")


def silent_slurm(seconds: float = 8) -> str:
    """Returns a warning if the Slurm plugin's import has waited for a cluster; else nothing.

    Args:
        seconds: The shortest such wait, as the plugin tries for 9 s: time since the process
            started, without its CPU time [s].
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
    name = internals.module_of(workflow).name
    if not hasattr(workflow, "qdsweep_starts"):
        workflow.qdsweep_starts = {}

        def at_start(log: Any) -> None:
            for _, start in workflow.qdsweep_starts.values():
                start()

        internals.call(workflow, "onstart", lambda own: (at_start, own))
        internals.share_outputs(_objection, _withdraw)
        internals.record_few_inputs(_SUMMARY.search, LARGE)
        internals.inspect_once()
        if internals.is_main(workflow):
            stop_useless_attempts()
            internals.call(
                workflow, "onerror", lambda own: (own, functools.partial(report_failures, workflow))
            )
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

    internals.call(workflow, "onsuccess", lambda own: (own, end))


def find_own_python() -> None:
    """Makes `python` in a shell command this one, with or without an active environment.

    In a conda environment of `--sdm conda`, `python` remains the environment's, and finds this
    package.
    """
    first = {"PATH": Path(sys.executable).parent, "PYTHONPATH": package_folder()}
    for name, folder in first.items():
        os.environ[name] = os.pathsep.join([str(folder), *filter(None, [os.environ.get(name)])])


def package_folder() -> Path:
    """Returns a folder with this package and none of the libraries next to an installed one.

    The environment has its own libraries, maybe for another Python. For a wheel the folder is
    made in the working directory, with a link to the package.
    """
    if not HOME.is_relative_to(_PACKAGE):
        return _PACKAGE.parent
    link = Path(".snakemake/qdsweep-package/qdsweep").absolute()
    with contextlib.suppress(OSError):
        if link.readlink() == _PACKAGE:
            return link.parent
    link.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(link)
    temporary.symlink_to(_PACKAGE)
    temporary.replace(link)
    return link.parent
