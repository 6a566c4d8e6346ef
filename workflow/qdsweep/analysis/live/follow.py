"""A sweep that is followed: what the files of each run say, read again when they change."""

import os
import socket
import time
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qdsweep.analysis.live.curve import Curve
from qdsweep.analysis.plan import read_plan, read_reevaluate
from qdsweep.analysis.status import (
    Standing,
    planned_budgets,
    standing,
    sweep_names,
)
from qdsweep.errors import BadInput
from qdsweep.host.lock import DEAD_SECONDS, read_owner
from qdsweep.planning.confirmation import FILE, confirming_rows

# In the order of the table: what needs a person comes first.
STATES = ("failed", "running", "stopped", "waiting", "finished")
Signature = tuple[int, int, int] | None
# What reading a damaged file can raise.
DAMAGE = (BadInput, ValueError, TypeError, KeyError, AttributeError, StopIteration, OSError)


class Followed:
    """A run that is followed.

    Args:
        folder: `results/runs/ID`.
        label: What was swept: group and seed.
        group: Its group.
        unit: iterations or evaluations, the budget's.
        budget: How many.
        again: The file that its re-evaluation writes; None if none is planned.
    """

    def __init__(
        self,
        folder: Path,
        label: str,
        group: str,
        unit: str,
        budget: int,
        again: Path | None = None,
    ) -> None:
        self.folder, self.label, self.group = folder, label, group
        self.unit, self.budget, self.again = unit, budget, again
        self.reevaluated = False
        self.curve = Curve(folder / "state" / "metrics.csv")
        self.standing = Standing(folder.name, "waiting", 0, budget, unit, None, None, 0, None, "")
        self.seen: Any = None  # what the files looked like when they were read
        self._lock, self._status = folder / "state" / "lock", folder / "state" / "status.json"
        self._owner: dict[str, Any] | None = None

    def look(self) -> bool:
        """Reads the run's files if they have changed; returns whether its standing has."""
        if self.again is not None and self.standing.state == "finished":
            self.reevaluated = self.reevaluated or signature(self.again) is not None
        lock, status = signature(self._lock), signature(self._status)
        if self.seen is None or lock != self.seen[0]:
            self._owner = read_owner(self._lock) if lock and lock[1] else None
        seen = (lock, status, self._is_alive(lock))
        if seen == self.seen:
            return False
        self.seen, before = seen, self.standing
        self.standing = standing(self.folder, self.unit, self.budget, alive=seen[2])
        return self.standing != before

    def _is_alive(self, lock: Signature) -> bool:
        """Returns whether somebody computes it, without touching the lock.

        The owner writes its name into it, touches it every few seconds, and empties it at the end.
        """
        owner = self._owner
        if lock is None or not owner or time.time() - lock[0] / 1e9 >= DEAD_SECONDS:
            return False
        elsewhere = owner.get("host") != socket.gethostname()
        return elsewhere or Path(f"/proc/{owner.get('pid')}").exists()


def signature(path: Path) -> Signature:
    """Returns what changes when a file does: time, size and inode; None if there is no file."""
    try:
        stat = os.stat(path)  # noqa: PTH116 - called by the thousand
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


class Follow:
    """A sweep that is followed.

    Args:
        results: The folder of the results.
        name: The sweep; None: the one started last, once there is any.
    """

    def __init__(self, results: Path, name: str | None) -> None:
        self.results, self.name = results, name
        self.runs: dict[str, Followed] = {}
        self._plan: Any = None
        self._turns = {"live": 0, "all": 0}

    @property
    def known(self) -> list[str]:
        """Returns the names of all sweeps, the one started last first."""
        try:
            return sweep_names(self.results)
        except OSError:  # a sweep was removed just now
            return []

    @property
    def unread(self) -> int:
        """How many runs were not read yet."""
        return sum(run.seen is None for run in self.runs.values())

    def look(self, seconds: float, first: Iterable[Followed] = ()) -> bool:
        """Looks at as many runs as the time allows, one after the other in turn.

        Args:
            seconds: The time; half of it is for the runs that are being computed.
            first: Runs that are looked at whatever the time.

        Returns:
            Whether anything has changed.
        """
        changed = self._look_at_plan()
        start = time.perf_counter()
        for run in first:
            changed |= run.look()
        runs = list(self.runs.values())
        live = [run for run in runs if run.standing.state == "running"]
        changed |= self._take_turns("live", live, start + seconds / 2)
        changed |= self._take_turns("all", runs, start + seconds)
        return changed

    def _take_turns(self, key: str, runs: list[Followed], deadline: float) -> bool:
        changed = False
        for _ in runs:
            if time.perf_counter() >= deadline:
                break
            self._turns[key] = (self._turns[key] + 1) % len(runs)
            changed |= runs[self._turns[key]].look()
        return changed

    def _look_at_plan(self) -> bool:
        """Reads the plan again if it has changed; a torn plan changes nothing."""
        if self.name is None:
            self.name = next(iter(self.known), None)
        if self.name is None:
            return False
        sweep = self.results / "sweeps" / self.name
        seen = [signature(sweep / name) for name in ("plan.json", FILE)]
        if seen == self._plan:
            return False
        try:
            runs = dict(self._planned(sweep))
        except DAMAGE:
            return False
        self.runs, self._plan = runs, seen
        return True

    def _planned(self, sweep: Path) -> Iterable[tuple[str, Followed]]:
        about: dict[str, tuple[str, str]] = {}
        for row in read_plan(sweep).rows:
            seed = f", seed {row.values['seed']}" if "seed" in row.values else ""
            about.setdefault(row.run, (row.group + seed, row.group))
        planned = set(about)  # those that confirm it are not evaluated again
        for confirming in confirming_rows(sweep):
            label = f"{confirming['group']}, seed {confirming['values']['seed']} (confirms)"
            about.setdefault(confirming["id"], (label, confirming["group"]))
        settings = read_reevaluate(sweep)
        for run, (unit, budget) in planned_budgets(sweep).items():
            known = self.runs.get(run)
            label, group = about.get(run, (run, ""))
            folder = self.results / "runs" / run
            again = folder / f"{settings.stem}.json" if settings and run in planned else None
            now = (label, unit, budget, again)
            if known is None or (known.label, known.unit, known.budget, known.again) != now:
                known = Followed(folder, label, group, unit, budget, again)
            yield run, known


@dataclass(frozen=True)
class Outlook:
    """Where a sweep stands.

    Attributes:
        counts: State -> number of runs.
        used: Core-seconds used.
        left: Core-seconds left of runs that have not failed, or None where nothing is known.
        cores: Cores in use.
        eta: Seconds to the end with as many cores, or None.
        reevaluated: Number of runs whose elites were evaluated again, and number of those planned.
    """

    counts: Counter[str]
    used: float
    left: float | None
    cores: int
    eta: float | None
    reevaluated: tuple[int, int]


def outlook(runs: Collection[Followed]) -> Outlook:
    """Returns the sums of a sweep.

    A run that has not begun is expected to cost what others of its group do, or else what all do.
    """
    costs: dict[tuple[str | None, str], tuple[float, int]] = {}
    for run in runs:
        now = run.standing
        for key in ((run.group, run.unit), (None, run.unit)) if now.done else ():
            seconds, done = costs.get(key, (0.0, 0))
            costs[key] = seconds + now.core_seconds, done + now.done
    left: float | None = 0.0
    for run in runs:
        if run.standing.state == "failed":
            continue
        own = run.standing.core_seconds_left
        if own is None:
            seconds, done = costs.get((run.group, run.unit)) or costs.get((None, run.unit), (0, 0))
            own = seconds / done * run.budget if done else None
        left = None if left is None or own is None else left + own
    live = [run.standing for run in runs if run.standing.state == "running"]
    cores = sum(now.workers for now in live)
    longest = max((now.eta or 0.0 for now in live), default=0.0)
    return Outlook(
        counts=Counter(run.standing.state for run in runs),
        used=sum(run.standing.core_seconds for run in runs),
        left=left,
        cores=cores,
        eta=max(left / cores, longest) if left is not None and cores else None,
        reevaluated=(
            sum(run.reevaluated for run in runs),
            sum(run.again is not None for run in runs),
        ),
    )
