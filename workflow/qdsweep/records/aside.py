"""A run's `state/` that a killed merge has left under another name.

A merge gives `state/` and its successor each other's names. Where the file system cannot exchange
names, a kill between the steps leaves the run without a `state/`.
"""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from qdsweep.files import ASIDE, abandoned, temporary_name
from qdsweep.host.lock import Lock
from qdsweep.records.paths import RunDir, StateDir


def put_back(run: RunDir) -> None:
    """Gives a run the `state/` back that a killed merge has set aside.

    Whatever writes or removes files of a run calls this first.

    Args:
        run: The run, which may have a `state/` with no more than its config by now.

    Raises:
        Locked: A process merges or computes the run.
    """
    for aside in _only_copies(run):
        with suppress(FileNotFoundError), Lock(StateDir(aside).lock) as lock:
            if aside not in _only_copies(run):  # another process was quicker
                continue
            if run.state.path.exists():
                _remove_begun(run.state)
            aside.rename(run.state.path)
            lock.path = run.state.lock


def _remove_begun(state: StateDir) -> None:
    """Removes a `state/` without results. It has another name first, so a kill leaves no half."""
    begun = temporary_name(state.path)
    with Lock(state.lock):
        state.path.rename(begun)
    shutil.rmtree(begun, ignore_errors=True)


def _only_copies(run: RunDir) -> list[Path]:
    asides = [*run.path.glob(f".*{ASIDE}")]
    if not asides or run.state.has_results:
        return []
    return [aside for aside in asides if StateDir(aside).has_results]


def abandoned_in(run: RunDir) -> Iterator[Path]:
    """Yields what kills have left in a run's folders a day ago, without its only `state/`."""
    kept = _only_copies(run)
    for folder in (run.path, run.rollouts, run.state.path, run.state.partial.path):
        yield from (path for path in abandoned(folder) if path not in kept)
