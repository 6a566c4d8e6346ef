"""The finished runs of a large sweep, remembered: looking at 100,000 of them takes seconds then.

A file of the sweep has what status.json says of each, with the signature of what was read: time,
size and inode. A run whose files have another one is read again. Whoever may not write the file
reads all of them, and whoever removes it loses nothing.
"""

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from qdsweep.config.experiment import BUDGETS
from qdsweep.files import atomic, read_json_if_whole, signature
from qdsweep.host.lock import is_alive
from qdsweep.records.run_dir import RunDir
from qdsweep.records.status import Status, read_status
from qdsweep.records.sweep_dir import SweepDir

LARGE = 1000
"""A sweep of more runs is a large one."""

_FORMAT = 1
_KEPT = ("iterations", "evaluations", "steps", "metrics", "seconds", "engine", "workers", "budget")


def read_finished(sweep: SweepDir, runs: Sequence[str]) -> dict[str, Status]:
    """Returns what is known of runs that are finished, and that nobody computes now.

    Their summary.json in `state/` is whole, and goes as far as they say.

    Args:
        sweep: The sweep's folder.
        runs: Its runs.

    Returns:
        Run id -> its status, without attempts; empty in a sweep that is not a large one.
    """
    if len(runs) <= LARGE:
        return {}
    known = _read(sweep.finished)
    there = {run: entry for run in runs if (entry := _look(sweep, run, known.get(run)))}
    if there != known:
        _write(sweep.finished, there)
    return {
        run: Status(run, "finished", **dict(zip(_KEPT, said, strict=True)))
        for run, (_, said) in there.items()
    }


def _look(sweep: SweepDir, run: str, known: Sequence[Any] | None) -> Sequence[Any] | None:
    """Returns the signature of a finished run and what it says, or None; reads what has changed."""
    state = f"{sweep.path.parent.parent}/runs/{run}/state"  # Paths take ten times as long
    status, summary = signature(f"{state}/status.json"), signature(f"{state}/summary.json")
    lock = signature(f"{state}/lock")
    if status is None or summary is None:
        return None
    if lock is not None and lock[1] and is_alive(Path(state, "lock")):  # an owner writes its name
        return None
    now = [*status, *summary]
    if known is not None and known[0] == now:
        return known
    return _anew(sweep.results.run(run), now)


def _anew(run: RunDir, now: list[int]) -> Sequence[Any] | None:
    status, summary = read_status(run.state), read_json_if_whole(run.state.summary)
    if status.status != "finished":
        return None
    if any((summary.get(unit) or 0) < getattr(status, unit) for unit in BUDGETS):
        return None
    return [now, [getattr(status, name) for name in _KEPT]]


def _read(path: Path) -> Mapping[str, Sequence[Any]]:
    try:
        data = json.loads(gzip.decompress(path.read_bytes()))  # which compares its checksum
    except (OSError, EOFError, ValueError, zlib.error):
        return {}
    return data["runs"] if data.get("format") == _FORMAT else {}


def _write(path: Path, runs: Mapping[str, Sequence[Any]]) -> None:
    text = json.dumps({"format": _FORMAT, "runs": runs}, separators=(",", ":"))
    with suppress(OSError), atomic(path) as file:  # another user's folder, or a sweep without one
        file.write(gzip.compress(text.encode(), 1))
