"""The terminal output of a start: progress of the runs, stages by name, the log of a failed job.

Snakemake's lists of files fill screens. They stay in its log file. With `--verbose`, `--quiet`,
`--dry-run` or `--printshellcmds`, its usual output appears on the terminal.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.common import LogEvent

from qdsweep.files import last_lines
from qdsweep.ornaments import ornament
from qdsweep.planning.internals import (
    RULES,
    failed_jobs,
    format_jobs,
    handlers_of_terminal,
    is_another_attempt,
    is_at_end,
    is_noise,
    is_usual_output,
)
from qdsweep.records.progress import Standing, totals
from qdsweep.text import duration, plural

_EVERY = 60.0
"""Longest time between two lines of progress [s]."""
_OFTEN = 5.0
"""Shortest time between two lines of progress [s]."""
# Reads the progress of all runs.
Look = Callable[[], Collection[Standing]]

_HIDDEN = {
    *(LogEvent.WORKFLOW_STARTED, LogEvent.RESOURCES_INFO, LogEvent.RUN_INFO),
    *(LogEvent.PROGRESS, LogEvent.JOB_FINISHED),
}
_LOG_LINES = 10
"""The last lines of the log of a failed job that the terminal shows."""
_STARTED = time.time()
_HAS_ENDED = threading.Event()


def _line(job: Mapping[str, Any]) -> str:
    """Returns the line of a job: the message of its rule."""
    return _stamped(job["rule_msg"])


def _failure(job: Mapping[str, Any]) -> str:
    """Returns the lines of a failed job, with the end of its log."""
    log, *others = job["log"]
    about = ", ".join([*others, *(f"{key} {value}" for key, value in job["aux"].items())])
    lines = lines_since(_STARTED, Path(log))[-_LOG_LINES:]
    heading = f"{job['rule_name']} did not finish{f' ({about})' * bool(about)}"
    heading += f"; the end of {log}:" if lines else f"; {log} has no new line"
    return "\n    ".join([_stamped(heading), *lines])


def lines_since(start: float, log: Path) -> list[str]:
    """Returns the last lines of a log that were written since a time.

    The log of a run also has its earlier attempts. The first line of each contains the run's id.

    Args:
        start: The time [s since the epoch].
        log: The log.
    """
    if not log.exists() or log.stat().st_mtime < start:
        return []
    lines = last_lines(log)
    starts = [at for at, line in enumerate(lines) if f" {log.parent.name}, process " in line]
    return lines[starts[-1] :] if starts else lines


def end_with() -> None:
    """Hides the lines of Snakemake that would follow the last lines of qdsweep."""
    _HAS_ENDED.set()


def _precedes_end(record: logging.LogRecord) -> bool:
    """Returns whether a line of Snakemake does not follow the last lines of qdsweep."""
    return not (_HAS_ENDED.is_set() and is_at_end(str(record.msg or "").strip()))


def _stamped(text: str) -> str:
    return f"[{time.strftime('%H:%M:%S')}] {text}"


class ProgressLines:
    """Lines such as `3 of 30 runs done, 8 running; 24 % of all evaluations, 3,410 a second`.

    Args:
        look: Reads the progress of all runs.
        known: Their progress at the start.
    """

    def __init__(self, look: Look, known: Collection[Standing]) -> None:
        self._look = look
        self._lock = threading.Lock()
        self._last, self._pause = 0.0, _OFTEN
        self._begun = (time.monotonic(), sum(now.evaluations for now in known))
        self._done = all(now.is_settled for now in known)

    @ornament("lines on the progress of the runs", lambda why, self, **about: "")
    def line(self, *, after: float, failed: int) -> str:
        """Returns a line, if the last one is long enough ago and work was left then.

        Args:
            after: Time since the last line [s]; 0 for a line at once.
            failed: The number of runs that have no attempt left.
        """
        with self._lock:
            begin = time.monotonic()
            pause = max(after, self._pause) if after else 0
            if self._done or begin - self._last < pause:
                return ""
            standings = self._look()
            self._last = time.monotonic()
            # Reading 100,000 runs takes seconds. It may take a twentieth of the time.
            self._pause = max(_OFTEN, 20 * (self._last - begin))
            self._done = all(run.is_settled for run in standings)
            return _stamped(self._summary(standings, begin, failed))

    def _summary(self, standings: Collection[Standing], now: float, failed: int) -> str:
        sums = totals(standings)
        begin, before = self._begun
        speed = (sum(run.evaluations for run in standings) - before) / (now - begin)
        share = sum(min(run.done / run.run.budget, 1) for run in standings if run.run.budget)
        parts = [f"{sums.counts['finished']:,} of {plural(len(standings), 'run')} done"]
        counts = {"running": sums.counts["running"], "failed": failed}
        parts += [f"{count:,} {state}" for state, count in counts.items() if count]
        parts[-1] += f"; {share / len(standings):.0%} of the work"
        if speed >= 1:
            parts.append(f"{speed:,.0f} evaluations a second")
        if sums.eta is not None and sums.counts["finished"] < len(standings):
            parts.append(f"about {duration(sums.eta)} left")
        return ", ".join(parts)


def _follows_runs(record: logging.LogRecord) -> bool:
    """Returns whether a job makes tables, for which all runs have ended."""
    return str(record.__dict__["rule_name"]).endswith("aggregate")


def tidy(workflow: Any, progress: ProgressLines | None) -> None:
    """Changes what Snakemake prints on the terminal; its log file has all.

    Args:
        workflow: Snakemake's.
        progress: The progress of the runs; None for a search, whose runs are not known.
    """
    handlers = handlers_of_terminal()
    for handler in handlers:
        handler.addFilter(_precedes_end)
    if is_usual_output(workflow):
        return

    def is_shown(record: logging.LogRecord) -> bool:
        event, text = record.__dict__.get("event"), str(record.msg or "").strip()
        if event == LogEvent.JOB_FINISHED:
            show_progress(after=_OFTEN)
        if event == LogEvent.JOB_INFO and _follows_runs(record):
            show_progress(after=0)
        if is_another_attempt(text):
            return False
        if record.levelno >= logging.WARNING:
            return True
        if event == LogEvent.JOB_INFO:
            return record.__dict__["rule_name"] != "all"
        return event not in _HIDDEN and bool(text) and not is_noise(text)

    def show_progress(after: float) -> None:
        if progress is None:
            return
        failed = sum(job.rule.name.endswith(RULES[0]) for job in failed_jobs(workflow))
        text = progress.line(after=after, failed=failed)
        if text and not _HAS_ENDED.is_set():
            for handler in handlers:
                handler.stream.write(f"{text}\n")
                handler.flush()

    def follow() -> None:
        while True:
            time.sleep(_OFTEN)
            show_progress(after=_EVERY)

    for handler in handlers:
        handler.addFilter(is_shown)
    format_jobs(workflow, handlers, _line, _failure)
    if progress is not None and handlers:
        threading.Thread(target=follow, daemon=True, name="progress").start()
