"""Failed jobs of a start: no useless attempts, and a summary as the last lines on the terminal."""

import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from qdsweep.config.files import shown
from qdsweep.files import last_line
from qdsweep.host.lock import may_be_alive
from qdsweep.planning.console import end_with
from qdsweep.planning.internals import RULES, failed_jobs, is_own, limit_attempts
from qdsweep.records.last_stop import (
    LastStop,
    read_failure,
    read_last_stop,
    write_failure,
    write_last_stop,
)
from qdsweep.records.paths import RunDir
from qdsweep.records.progress import KILLED
from qdsweep.records.status import REMEDY, Status, read_status
from qdsweep.text import cut, plural

_LISTED = 5
"""The number of jobs that are named. With heading, rest, remedy and log, that is 9 lines."""
_CAUSE = 160
"""The longest cause of a failed job [characters]."""
# Parts of the message of a failed evaluation: its beginning, and the code after the line's number.
_WHICH = re.compile(r"^solution \d+ of the batch \([^)]*\): ")
_CODE = re.compile(r"(, line \d+): .*\)$")
_ADVICE = ". Usual causes: "  # the log has it
_EMPTY = "its log is empty: the process was killed"
_CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")


def stop_useless_attempts() -> None:
    """Makes a run that has failed since now, and would fail again, the last attempt at its job.

    Without this, Snakemake starts all attempts of its profile, and each ends at once. A run that
    was stopped or killed keeps its attempts. One that crashed is tried again while it progresses.
    """
    start = time.time()
    crashed_at: dict[str, int] = {}  # run -> its iterations then

    def is_last(log: Path, how: str) -> bool:
        run = RunDir(log.parent)
        if _has_crashed(run, how, start):
            status = read_status(run.state)
            before = crashed_at.get(run.name)
            crashed_at[run.name] = status.iterations
            if how not in _CRASHES or before == status.iterations:
                _write_crash(run, how, status)
        return _has_failed(run, start)

    limit_attempts(is_last)


def _has_crashed(run: RunDir, how: str, since: float) -> bool:
    """Returns whether a run's process has ended since then without a record of its own."""
    if may_be_alive(run.state.lock):
        return False
    last = (read_status(run.state).attempts or [{}])[-1]
    begun = datetime.fromtimestamp(since, UTC).isoformat(timespec="seconds")
    is_recorded = "how" in last or str(last.get("started", "")) < begun
    return how in _CRASHES or (how.startswith("exit") and not is_recorded)


def _write_crash(run: RunDir, how: str, status: Status) -> None:
    message = (
        f"its process ended with {how} and no error of Python. Usual causes: os._exit, a crash of "
        "a library of the domain"
    )
    identity = run.name.rsplit("-", 1)[-1]
    stop = LastStop("failure", 0, status.iterations, message, identity)
    write_last_stop(run.state, stop)
    write_failure(run.state, stop, {})


def _has_failed(run: RunDir, since: float) -> bool:
    try:
        return run.state.failure.stat().st_mtime >= since
    except OSError:
        return False


def report_failures(workflow: Any, files: Iterable[str]) -> None:
    """Prints the failed jobs, or that the user has stopped the start.

    It prints nothing where only rules of the user failed: Snakemake has printed their errors.

    Args:
        workflow: Snakemake's.
        files: Snakemake's log files.
    """
    jobs = failed_jobs(workflow)
    own = [job for job in jobs if is_own(job.shellcmd)]
    if jobs and not own:
        return
    others = [job for job in jobs if job not in own]
    logs = [(job.rule.name, Path(job.log[0]) if job.log else None) for job in (*own, *others)]
    end_with()
    lines = summary(logs, ", ".join(shown(Path(file)) for file in files))
    print("", *lines, sep="\n", file=sys.stderr, flush=True)


def summary(logs: Sequence[tuple[str, Path | None]], log: str) -> Iterator[str]:
    """Yields at most 9 lines: the failed jobs with their logs and causes, and the remedy.

    Args:
        logs: The rule of each failed job, and its log if it has one; none: the user has stopped
            the start.
        log: Snakemake's log file.
    """
    if not logs:
        yield "qdsweep: stopped before the end. The same command resumes and keeps finished runs."
    else:
        yield f"qdsweep: {_count([rule for rule, _ in logs])} failed:"
    for rule, path in logs[:_LISTED]:
        if path is None:
            yield f"  rule {rule}: its error is printed above"
            continue
        run = RunDir(path.parent) if _is_of_run(rule) else None
        cause = _cause_of_run(run) if run else last_line(path)
        if run and not last_line(path):  # it was killed, and could not publish its log
            path = run.state.log
        cause = _CODE.sub(r"\1)", _WHICH.sub("", cause.removeprefix("qdsweep: ")))
        cause = cause.partition(_ADVICE)[0] or _EMPTY
        yield f"  {path}: {cut(cause, _CAUSE)}"
    if len(logs) > _LISTED:
        yield f"  and {len(logs) - _LISTED:,} more, which `qdsweep status` lists"
    if logs:
        yield REMEDY
    if log:
        yield f"The log of Snakemake: {log}"


def _is_of_run(rule: str) -> bool:
    return rule.endswith(RULES[0])  # a module's prefix comes before it


def _count(rules: Iterable[str]) -> str:
    rules = list(rules)
    runs = sum(map(_is_of_run, rules))
    others = len(rules) - runs
    counts = [plural(runs, "run")] * bool(runs)
    counts += [plural(others, "other job" if runs else "job")] * bool(others)
    return " and ".join(counts)


def _cause_of_run(run: RunDir) -> str:
    state = run.state
    if message := read_failure(state).get("message"):
        return " ".join(str(message).split())
    if read_status(state).status == "running":
        return KILLED
    return " ".join(read_last_stop(state).message.split()) or last_line(run.log)
