"""Waits for events in other processes, and finds them."""

import time
from collections.abc import Callable
from pathlib import Path

import psutil


def wait_until(true: Callable[[], object], seconds: float = 300.0, what: str = "") -> None:
    """Waits for a condition, and fails if it does not become true in time."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.05)


def says(log: Path, text: str, count: int = 1) -> bool:
    """Whether a file contains a text at least this many times."""
    return log.exists() and log.read_text().count(text) >= count


# The texts of a run's log appear only here.
def has_workers(log: Path, workers: int, times: int = 1) -> bool:
    """Whether a run has had this many workers at once."""
    return says(log, f", {workers} now", times)


def has_lost(log: Path, left: int | None = None) -> bool:
    """Whether a run has lost workers; with `left`, whether this many were left."""
    return says(log, " left" if left is None else f", {left} left")


def evaluates(log: Path, times: int = 1) -> bool:
    """Whether this many attempts have evaluated."""
    return says(log, "first evaluation after", times)


def crew_of(folder: Path) -> list[psutil.Process]:
    """Returns the worker processes for the runs of a folder."""
    processes = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        words = process.info["cmdline"] or []
        starts = words[1:5] == ["-P", "-m", "qdsweep", "worker"] and str(folder) in " ".join(words)
        if starts or (_evaluates(words) and (process.info["cwd"] or "").startswith(str(folder))):
            processes.append(process)
    return processes


def workers_of(folder: Path) -> list[psutil.Process]:
    """Returns the processes that evaluate, which another process has forked."""
    # Stored values, because a process may end before it is asked again.
    crew = [process for process in crew_of(folder) if _evaluates(process.info["cmdline"])]
    return [process for process in crew if process.is_running() and process.parent() in crew]


def _evaluates(words: list[str]) -> bool:
    return words[1:4] == ["-P", "-m", "qdsweep.engines.children"]
