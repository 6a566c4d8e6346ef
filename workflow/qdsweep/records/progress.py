"""The progress of the runs of a sweep and what is left of them, from their files in state/."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from qdsweep.config.compose import compose
from qdsweep.config.experiment import BUDGETS
from qdsweep.config.own_code import find_source
from qdsweep.errors import BadInput
from qdsweep.files import last_line, read_json_if_whole, signature
from qdsweep.host.lock import is_alive
from qdsweep.host.owner import describe, read_owner
from qdsweep.records.dependencies import (
    OUTDATED,
    changed_text,
    differing,
    find_kept,
    recorded,
)
from qdsweep.records.last_stop import read_last_stop
from qdsweep.records.paths import Results, RunDir, StateDir, SweepDir
from qdsweep.records.plan import Plan, PlannedRun, read_confirm
from qdsweep.records.sources import changed_since, kept_sources
from qdsweep.records.status import Status, fingerprint_of, read_status
from qdsweep.text import duration, listed, plural

LARGE = 1000
"""A sweep of more runs is a large one."""

RAISED = "its budget was raised"
# The end of a note: the line of the user's code, which may contain parentheses.
_CODE = re.compile(r" \([^()]*, line \d+: .*\)$", re.S)
KILLED = "killed; the next start resumes from the last reload file"
_DAMAGED = "its status.json is damaged; a start that computes the run writes it again"
_CLASS = re.compile(rb"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def read_finished(sweep: SweepDir, runs: Sequence[str]) -> dict[str, Status]:
    """Returns the status of runs that are finished, and that no process computes now.

    Their summary.json in `state/` is whole, and has all iterations of the status.

    Args:
        sweep: The sweep's folder.
        runs: Its runs.

    Returns:
        Run id -> its status, without attempts; empty in a sweep that is not a large one.
    """
    if len(runs) <= LARGE:
        return {}
    from qdsweep.records.index import Index

    folder = str(sweep.results.runs)
    index = Index[Status](
        path=sweep.finished,
        form=[1, *(name for name in Status.__dataclass_fields__ if name != "code")],
        dump=lambda status: [*vars(status).values()],
        load=lambda values, _: _known(values),
    )
    return index.update(
        runs,
        partial(_key, folder),
        lambda changed: (_finished(sweep.results.run(run)) for run in changed),
    )


def _known(values: list[Any]) -> Status:
    """Returns the status of these values; its constructor takes three times as long."""
    status = object.__new__(Status)
    values = [*values, ""][: len(Status.__dataclass_fields__)]  # of earlier releases: no `code`
    vars(status).update(zip(Status.__dataclass_fields__, values, strict=True))
    return status


def _key(folder: str, run: str) -> list[int] | None:
    """Returns the signatures of a run's files; None where the run cannot be finished."""
    state = f"{folder}/{run}/state"  # Paths take ten times as long
    status, summary = signature(f"{state}/status.json"), signature(f"{state}/summary.json")
    if status is None or summary is None:
        return None
    lock = signature(f"{state}/lock")
    if lock is not None and lock[1] and is_alive(Path(state, "lock")):  # an owner writes its name
        return None
    return [*status, *summary]


def _finished(run: RunDir) -> Status | None:
    """Returns the status of a finished run with a whole summary, without attempts."""
    status, summary = read_status(run.state), read_json_if_whole(run.state.summary)
    if status.status != "finished":
        return None
    if any((summary.get(unit) or 0) < getattr(status, unit) for unit in BUDGETS):
        return None
    known = fingerprint_of(run.state, status)
    return replace(status, id=run.name, attempts=[], fingerprint=known)


@dataclass(frozen=True)
class Standing:
    """The progress of a run towards its budget.

    Attributes:
        run: The run.
        state: finished, running, stopped, extended (finished, and now has a larger budget),
            replaced (other code of the user computed it), outdated (what its code uses has changed
            since), failed or waiting (not started).
        done: How much of the budget is used.
        evaluations: Finished evaluations.
        metrics: Name -> value now, of those that have one.
        core_seconds: Core-seconds used.
        workers: Workers that compute it, or did.
        note: Why it failed or stopped, or the process that computes it.
        code: As in `Status`.
    """

    run: PlannedRun
    state: str = "waiting"
    done: int = 0
    evaluations: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    core_seconds: float = 0.0
    workers: int = 1
    note: str = ""
    code: str = ""

    @property
    def cause(self) -> str:
        """The note in short: without parentheses, such as the one with the line of code."""
        if not self.note:
            return ""
        return re.sub(r" \([^)]*\)", "", _CODE.sub("", self.note))

    @property
    def core_seconds_left(self) -> float | None:
        """Core-seconds left at the run's own rate; None where that is not known."""
        if self.is_settled:
            return 0.0
        kept = 0 if self.state == "replaced" else self.done
        return self._core_seconds(self.run.budget - kept)

    @property
    def core_seconds_again(self) -> float | None:
        """Core-seconds to compute it once more; None where that is not known."""
        return self._core_seconds(self.run.budget)

    def _core_seconds(self, amount: int) -> float | None:
        if not self.done or not self.core_seconds:
            return None
        return self.core_seconds / self.done * max(0, amount)

    @property
    def is_settled(self) -> bool:
        """Whether no start computes it: it is finished, or outdated."""
        return self.state in ("finished", OUTDATED)

    @property
    def eta(self) -> float | None:
        """Seconds to the end of a run that is being computed; None where unknown."""
        left = self.core_seconds_left
        return left / self.workers if self.state == "running" and left is not None else None


@dataclass(frozen=True)
class Outlook:
    """The progress of a sweep.

    Attributes:
        counts: State -> number of runs.
        used: Core-seconds used.
        left: Core-seconds left, or None where unknown.
        cores: Cores in use.
        eta: Seconds to the end with as many cores, but for the runs that failed, or None.
    """

    counts: Counter[str]
    used: float
    left: float | None
    cores: int
    eta: float | None


def read_standings(
    sweep: SweepDir, plan: Plan, finished: Mapping[str, Status] | None = None
) -> list[Standing]:
    """Reads the progress of each run of a sweep, with those that confirm it.

    Args:
        sweep: The sweep's folder.
        plan: Its plan.
        finished: From `read_finished`, which is called if it is None.

    Raises:
        BadInput: confirm.json is damaged.
    """
    runs = plan.runs(read_confirm(sweep) if plan.confirm else ())
    if finished is None:
        finished = read_finished(sweep, [run.id for run in runs])
    results = sweep.results
    return [
        _standing(run, "finished", finished[run.id])
        if run.id in finished and getattr(finished[run.id], run.unit) >= run.budget > 0
        else read_standing(results.run(run.id), run)
        for run in runs
    ]


def read_standing(run_dir: RunDir, run: PlannedRun, *, alive: bool | None = None) -> Standing:
    """Reads the progress of a run.

    Args:
        run_dir: Its folder.
        run: Its planned budget and group.
        alive: Whether it is being computed; None: its lock is asked.
    """
    if not run_dir.path.exists():
        return Standing(run)
    files = run_dir.state
    if alive is None:
        alive = is_alive(files.lock)
    status = read_status(files)
    if status.is_damaged:
        reached = read_json_if_whole(files.summary).get(run.unit)
        done = reached if isinstance(reached, int) else 0
        state = "running" if alive else "finished" if done >= run.budget > 0 else "stopped"
        return Standing(run, state, done, note=_DAMAGED)
    done = getattr(status, run.unit)
    state, note = _state(files, status, alive, done >= run.budget > 0)
    return _standing(run, state, status, note)


def _standing(run: PlannedRun, state: str, status: Status, note: str = "") -> Standing:
    return Standing(
        run,
        state,
        getattr(status, run.unit),
        status.evaluations,
        status.metrics,
        status.core_seconds,
        status.workers,
        note,
        status.code,
    )


def _state(files: StateDir, status: Status, alive: bool, reached: bool) -> tuple[str, str]:
    if alive:
        return "running", describe(read_owner(files.lock))
    if reached and files.summary.exists():
        return "finished", ""
    if status.status == "failed" or files.failure.exists():
        return "failed", read_last_stop(files).message or last_line(files.log)
    begun, raised = bool(status.status), status.status == "finished" and not reached
    if raised or not begun:
        # Its last attempt may have ended before it wrote a status.
        stop = read_last_stop(files)
        ignored = ("",) if raised else ("", "stopped")
        if stop.cause not in ignored and stop.iteration == status.iterations:
            return "stopped", stop.message
        return ("extended", RAISED) if raised else ("waiting", "")
    if status.status == "running":
        return "stopped", KILLED
    return "stopped", read_last_stop(files).message


class OtherCode:
    """Finds the runs that were computed with other code than the user's code is now.

    Each code is compared once.

    Args:
        results: The folder results/.
    """

    def __init__(self, results: Results) -> None:
        self._results = results
        self._has_sources = bool(kept_sources(results))
        self._replaced: dict[frozenset[bytes], tuple[Path, ...]] = {}
        self._outdated: dict[str, tuple[str, ...]] = {"": ()}

    def mark(self, now: Standing) -> Standing:
        """Returns the progress of a run, as `replaced` or `outdated` where the code has changed."""
        is_computed = now.state in ("finished", "stopped", "extended")
        if is_computed and (files := self.replaced(self._results.run(now.run.id))):
            return replace(now, state="replaced", note=changed_text([*map(str, files)]))
        return self.mark_outdated(now)

    def mark_outdated(self, now: Standing) -> Standing:
        """Returns the progress of a run, as `outdated` where what its code uses has changed."""
        if now.state in ("waiting", "running"):
            return now
        files = self.outdated(now.run.id, now.code)
        return replace(now, state=OUTDATED, note=changed_text(files)) if files else now

    def outdated(self, run: str, code: str) -> tuple[str, ...]:
        """Returns the files that have changed since a run used them; see `dependencies`.

        Args:
            run: The run's id.
            code: As in its `Status`.
        """
        files = self._outdated.get(code)
        if files == ():  # of most of 100,000 runs
            return files
        state = self._results.run(run).state
        if files is None:
            files = differing(recorded(state))
            if files and not _finds_code(state):
                files = ()
            self._outdated[code] = files
        return files if state.has_results else ()

    def replaced(self, run: RunDir) -> tuple[Path, ...]:
        """Returns the files of the user's plug-ins that are not as they were for a run."""
        if not self._has_sources:
            return ()
        try:
            # A `module:Class`, or any other text with a colon, which does no harm.
            classes = frozenset(_CLASS.findall(run.state.config.read_bytes()))
        except OSError:
            return ()
        if classes not in self._replaced:
            self._replaced[classes] = changed_since(run) if classes else ()
        return self._replaced[classes]


def _finds_code(state: StateDir) -> bool:
    """Returns whether the user's code of a run is found, as in the folder of its study."""
    try:
        for target in compose(str(state.config)).own_code:
            find_source(target)
    except BadInput:
        return False
    return True


def outdated_lines(
    standings: Iterable[Standing], results: Results, start: str = ""
) -> Iterator[str]:
    """Yields a line for each change by which runs are outdated: its cost, and the ways back.

    Args:
        standings: The progress of the runs.
        results: The folder results/.
        start: The command that starts their sweep; empty where it is unknown.
    """
    how = f"`{start} --config" if start else "`--config"
    which = "" if start else " (added to the command that started the sweep)"
    by_change: dict[str, list[Standing]] = {}
    for now in standings:
        if now.state == OUTDATED:
            by_change.setdefault(now.note, []).append(now)
    for note, runs in by_change.items():
        seconds = total([now.core_seconds_again for now in runs])
        cost = "" if seconds is None else f" (about {duration(seconds)} of core time)"
        them = "it" if len(runs) == 1 else "them"
        yield (
            f"outdated: {note} since {plural(len(runs), 'run')} used it. No start computes {them} "
            f"on its own, and no test has {them}. Restore {_sources_of(runs, results)}, or compute "
            f"{them} again{cost}: {how} outdated=recompute`{which}, or keep {them} as results of "
            f"the code as it is now: {how} outdated=accept`"
        )


def _sources_of(runs: Iterable[Standing], results: Results) -> str:
    """Returns from where the files that outdated runs used can be restored."""
    texts: dict[str, None] = {}
    for run in {now.code: now.run.id for now in runs}.values():
        record = recorded(results.run(run).state)
        for name in differing(record):
            kept = find_kept(name, record[name], results)
            texts[f"{name} from {kept or 'your own copy'}"] = None
    return listed([*texts], most=3)


def core_seconds_left(standings: Collection[Standing]) -> dict[str, float | None]:
    """Estimates what each run of a sweep still costs.

    At its own rate; a run that has not started is assumed to cost what others of its group do, or
    else of its domain and algorithm, or else all of them.

    Returns:
        Run id -> core-seconds, None where no run of that unit has started.
    """
    own = {now.run.id: now.core_seconds_left for now in standings}
    if None not in own.values():
        return own
    spent: dict[Any, tuple[float, int]] = {}
    for now in standings:
        if now.core_seconds:
            for likes in _likes(now.run):
                seconds, done = spent.get(likes, (0.0, 0))
                spent[likes] = seconds + now.core_seconds, done + now.done
    return {now.run.id: _left(now, spent) for now in standings}


def _left(now: Standing, spent: dict[Any, tuple[float, int]]) -> float | None:
    own = now.core_seconds_left
    if own is not None:
        return own
    for likes in _likes(now.run):
        seconds, done = spent.get(likes, (0.0, 0))
        if done:
            return seconds / done * max(0, now.run.budget - now.done)
    return None


def _likes(run: PlannedRun) -> list[tuple[str, ...]]:
    """What a run costs much the same as, the nearest first."""
    kind = run.id.rsplit("-", 2)[0]  # without the seed and the hash
    return [(run.unit, "group", run.group), (run.unit, "kind", kind), (run.unit,)]


def totals(standings: Collection[Standing]) -> Outlook:
    """Sums a sweep up."""
    left = core_seconds_left(standings)
    live = [now for now in standings if now.state == "running"]
    cores = sum(now.workers for now in live)
    longest = max((now.eta or 0.0 for now in live), default=0.0)
    to_come = total([left[now.run.id] for now in standings if now.state != "failed"])
    return Outlook(
        counts=Counter(now.state for now in standings),
        used=sum(now.core_seconds for now in standings),
        left=total(left.values()),
        cores=cores,
        eta=max(to_come / cores, longest) if to_come is not None and cores else None,
    )


def total(seconds: Collection[float | None]) -> float | None:
    """Adds times up; None where one of them is not known."""
    known = [value for value in seconds if value is not None]
    return sum(known) if len(known) == len(seconds) else None
