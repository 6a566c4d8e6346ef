"""Waiting for what other processes do, and finding them."""

import time
from collections.abc import Callable
from pathlib import Path

import psutil


def wait_until(true: Callable[[], object], seconds: float = 300.0, what: str = "") -> None:
    """Fails where it has not become true in time."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.05)


def says(log: Path, text: str, count: int = 1) -> bool:
    """Whether a text stands in a file so many times."""
    return log.exists() and log.read_text().count(text) >= count


# What a run's log says, in the only place that knows its words.
def has_workers(log: Path, workers: int, times: int = 1) -> bool:
    """Whether so many have been there at once."""
    return says(log, f", {workers} now", times)


def has_lost(log: Path, left: int | None = None) -> bool:
    """Whether workers have gone; and so many were left then."""
    return says(log, " left" if left is None else f", {left} left")


def evaluates(log: Path, times: int = 1) -> bool:
    """Whether so many attempts have evaluated."""
    return says(log, "first evaluation after", times)


def crew_of(folder: Path) -> list[psutil.Process]:
    """The processes of `qdsweep worker` for the runs of a folder, and those that evaluate there."""
    processes = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        words = process.info["cmdline"] or []
        starts = words[1:5] == ["-P", "-m", "qdsweep", "worker"] and str(folder) in " ".join(words)
        if starts or (_evaluates(words) and (process.info["cwd"] or "").startswith(str(folder))):
            processes.append(process)
    return processes


def workers_of(folder: Path) -> list[psutil.Process]:
    """Those that evaluate: forked by another one."""
    # What was seen, as one may end before it is asked again.
    crew = [process for process in crew_of(folder) if _evaluates(process.info["cmdline"])]
    return [process for process in crew if process.is_running() and process.parent() in crew]


def _evaluates(words: list[str]) -> bool:
    return words[1:4] == ["-P", "-m", "qdsweep.engines.children"]
