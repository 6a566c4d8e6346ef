"""The finished runs of a large sweep, remembered: looking at 100,000 of them takes seconds then.

A file of the sweep has what status.json says of each, with the signature of what was read: time,
size and inode. A run whose files have another one is read again. Whoever may not write the file
reads all of them, and whoever removes it loses nothing.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from qdsweep.config.experiment import BUDGETS
from qdsweep.errors import BadInput
from qdsweep.files import atomic, read_arrays, read_json_if_whole, signature
from qdsweep.host.lock import is_alive
from qdsweep.records.run_dir import RunDir
from qdsweep.records.status import Status, read_status
from qdsweep.records.sweep_dir import SweepDir

LARGE = 1000
"""A sweep of more runs is a large one."""

# The signatures of status.json and summary.json, and the status without its attempts.
Known = tuple[list[int], Status]


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
    before, folder = _read(sweep.finished), str(sweep.results.runs)
    now = {run: known for run in runs if (known := _look(folder, run, before.get(run)))}
    if now != before:
        _write(sweep.finished, now)
    return {run: status for run, (_, status) in now.items()}


def _look(folder: str, run: str, before: Known | None) -> Known | None:
    """Returns what is known of a run if it is finished; it is read where its files have changed."""
    state = f"{folder}/{run}/state"  # Paths take ten times as long
    status, summary = signature(f"{state}/status.json"), signature(f"{state}/summary.json")
    if status is None or summary is None:
        return None
    lock = signature(f"{state}/lock")
    if lock is not None and lock[1] and is_alive(Path(state, "lock")):  # an owner writes its name
        return None
    now = [*status, *summary]
    return before if before and before[0] == now else _anew(RunDir(Path(folder, run)), now)


def _anew(run: RunDir, now: list[int]) -> Known | None:
    status, summary = read_status(run.state), read_json_if_whole(run.state.summary)
    if status.status != "finished":
        return None
    if any((summary.get(unit) or 0) < getattr(status, unit) for unit in BUDGETS):
        return None
    return now, replace(status, id=run.name, attempts=[])


def _read(path: Path) -> dict[str, Known]:
    try:
        arrays = read_arrays(path)  # which compares checksums
        text = json.loads(arrays["text"].tobytes())
        rows = zip(
            text["runs"],
            *(arrays[name].tolist() for name in ("signatures", "counts", "numbers")),
            strict=True,
        )
        known = {}
        for run, seen, (kind, iterations, evaluations, steps, workers), (spent, *values) in rows:
            engine, budget, names = text["kinds"][kind]
            metrics = dict(zip(names, values, strict=False))
            known[run] = (
                seen,
                Status(
                    *(run, "finished", iterations, evaluations, steps, metrics, spent),
                    *(engine, workers, budget),
                ),
            )
    except (
        BadInput,
        KeyError,
        ValueError,
        TypeError,
    ):  # there is none, or it is of another release
        return {}
    return known


def _write(path: Path, runs: Mapping[str, Known]) -> None:
    import numpy as np

    # Of the engine, the budget and the names of metrics a sweep has few kinds.
    kinds: dict[str, int] = {}
    counts, numbers = [], []
    width = max((len(one.metrics) for _, one in runs.values()), default=0)
    for _, one in runs.values():
        kind = json.dumps([one.engine, one.budget, list(one.metrics)])
        place = kinds.setdefault(kind, len(kinds))
        counts.append((place, one.iterations, one.evaluations, one.steps, one.workers))
        rest = [0.0] * (width - len(one.metrics))
        numbers.append((one.seconds, *one.metrics.values(), *rest))
    text = json.dumps({"runs": list(runs), "kinds": [json.loads(kind) for kind in kinds]})
    # Another user's folder, a sweep without one, or a number that no machine has.
    with suppress(OSError, OverflowError), atomic(path) as file:
        np.savez(
            file,
            text=np.frombuffer(text.encode(), np.uint8),
            signatures=np.array([seen for seen, _ in runs.values()], np.uint64),
            counts=np.array(counts, np.int64),
            numbers=np.array(numbers, np.float64),
        )
