"""Brings runs of another results folder into this one: each run whole or not at all.

A run's `state/` is the truth, so only it is brought. It is put together under another name next to
its place, checked and synced there, and then given its name in one step. A kill leaves the earlier
`state/` or the new one. Where the file system cannot exchange names, `put_back` finds it.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from qdsweep.config.compose import compose
from qdsweep.config.experiment import BUDGETS
from qdsweep.errors import BadInput
from qdsweep.experiment import reload
from qdsweep.files import (
    TEMPORARY,
    copy,
    damaged,
    exchange,
    link,
    naming,
    read_arrays,
    read_json_if_whole,
    rename,
    sync,
    temporary_name,
)
from qdsweep.host.lock import Lock, Locked, busy, is_alive
from qdsweep.metrics import agree
from qdsweep.records.archive import archive_digest
from qdsweep.records.aside import put_back
from qdsweep.records.dependencies import recorded
from qdsweep.records.history import HistoryFile, checksum_of, until
from qdsweep.records.metrics_file import read_lines
from qdsweep.records.paths import Results, RunDir, StateDir
from qdsweep.records.results import read_summary
from qdsweep.records.sources import code_of_run, identity_in
from qdsweep.records.status import Status, fingerprint_of, read_status

FINISHED = "finished"
"""The run is here now, with its results."""
RESUMABLE = "resumable"
"""The run is here now, with its newest reload file."""
KNOWN = "known"
"""The run was here, and as far as it is there."""
EMPTY = "empty"
"""The run has neither results nor a reload file there."""
BUSY = "busy"
"""A process computes the run, here or there."""
REFUSED = "refused"
"""The run has other results there than here, or damaged files."""


_UNFINISHED = ("running", "stopped", "failed")
Forget = Callable[[Path, Iterable[str]], None]


class RunOutcome(NamedTuple):
    """What became of a run.

    Attributes:
        kind: One of the constants above.
        note: The reason, of a run that is left or refused.
    """

    kind: str
    note: str = ""


class Reached(NamedTuple):
    """How far a run is.

    Attributes:
        iterations: Its finished iterations; of an unfinished run those of its newest reload file.
        is_finished: Whether it has results.
    """

    iterations: int
    is_finished: bool

    def is_further(self, other: "Reached") -> bool:
        """Returns whether a run that is so far can replace one that is as far as `other`."""
        if other.is_finished and not self.is_finished:
            return False
        return self > other


def is_lacking(theirs: RunDir, ours: RunDir) -> bool:
    """Returns whether a run is further there than here, by the small files that list it.

    A partial copy of the other folder has no reload files, so that only status.json counts.
    """
    status = _status(theirs.state)
    there = Reached(status.iterations, status.status == "finished")
    return there.is_further(_reached(ours.state))


def merge_run(theirs: RunDir, ours: RunDir, forget: Forget) -> RunOutcome:
    """Brings a run here, unless it is here already, and completes a merge that was killed.

    Args:
        theirs: The run's folder there, which does not change.
        ours: Its folder here. Only one process at a time may call this for its results.
        forget: Removes what is known of earlier jobs that wrote files.

    Returns:
        The outcome. If the run is left or refused, nothing of it has changed.
    """
    try:
        put_back(ours)
        there, here = _reached(theirs.state), _reached(ours.state)
        if not there.iterations:
            return RunOutcome(EMPTY)
        for run in (theirs, ours):
            if is_alive(run.state.lock):
                return RunOutcome(BUSY, str(busy(run.state.lock)))
        for torn in ours.path.glob(".state.*.tmp"):  # of a killed merge
            shutil.rmtree(torn, ignore_errors=True)
        if here.iterations and (reason := _difference(theirs, ours, there, here)):
            return RunOutcome(REFUSED, reason)
        if not there.is_further(here):
            if here.is_finished and not ours.reload.exists():  # a merge was killed here
                for half in ours.path.glob(TEMPORARY):
                    half.unlink()
                ours.publish()
            return RunOutcome(KNOWN)
        return _take(theirs, ours, there, here, forget)
    except BadInput as error:
        return RunOutcome(REFUSED, str(error))
    except Locked as error:
        return RunOutcome(BUSY, str(error))


def _status(state: StateDir) -> Status:
    """Reads the status of a run that has no named pipe, which would block its reader."""
    if state.path.is_dir():
        for file in os.scandir(state.path):
            if not (file.is_file() or file.is_dir()):
                raise BadInput(f"{file.path}: it is neither a file nor a folder: remove it")
    status = read_status(state)
    if status.is_damaged or (status.status == "finished" and not status.iterations):
        state.status.read_bytes()  # whole, if this user may not read it
        raise damaged(state.status, ValueError("it is not the status of a run"))
    return status


def _reached(state: StateDir) -> Reached:
    status = _status(state)
    is_finished = status.status == "finished" and state.summary.exists()
    if is_finished:
        return Reached(status.iterations, is_finished)
    numbers = (path.stem.removeprefix("reload-") for path in state.reloads())
    return Reached(next((int(text) for text in numbers if text.isdecimal()), 0), is_finished)


def _take(
    theirs: RunDir, ours: RunDir, there: Reached, here: Reached, forget: Forget
) -> RunOutcome:
    is_new = not ours.state.path.exists()
    ours.path.mkdir(parents=True, exist_ok=True)
    fresh = StateDir(temporary_name(ours.state.path))
    try:
        fresh.path.mkdir()
        # The jobs that read a replaced archive compare times, and a link keeps that of its file.
        _copy(theirs.state, fresh, links=not here.is_finished)
        if wrong := [*_problems(fresh, theirs)]:
            return RunOutcome(REFUSED, "; ".join(wrong))
        if is_new:
            forget(ours.path, _published(ours))
            try:
                fresh.path.rename(ours.state.path)
            except OSError as error:
                if not ours.state.path.exists():
                    raise
                raise busy(ours.state.lock) from error
        else:
            with Lock(ours.state.lock):
                if _reached(ours.state) != here:
                    raise busy(ours.state.lock)
                link(ours.state.lock, fresh.lock)  # this process holds both
                ours.withdraw()
                forget(ours.path, _published(ours))
                exchange(ours.state.path, fresh.path)
        sync(ours.path)  # before the earlier `state/` goes
    except OSError as error:
        rename(error, fresh.path, ours.state.path)
        raise
    finally:
        shutil.rmtree(fresh.path, ignore_errors=True)
        with suppress(OSError):
            ours.path.rmdir()  # only if it is empty
    if not there.is_finished:
        return RunOutcome(RESUMABLE)
    ours.publish()
    return RunOutcome(FINISHED)


def _copy(source: StateDir, target: StateDir, *, links: bool) -> None:
    """Copies the files of a `state/`, without its lock and the folders of a running process.

    A run appends to some of its files. Links may only have those that are replaced as a whole, and
    of these the small ones are copied, too: the time of summary.json must be that of the merge, so
    that Snakemake rebuilds tables.
    """
    for file in os.scandir(source.path):
        if file.is_file(follow_symlinks=False) and not file.name.startswith((".", "lock")):
            is_large = links and file.name.endswith((".npz", ".pkl"))
            put = link if is_large else copy
            with naming(target.path / file.name):
                put(Path(file.path), target.path / file.name)
            sync(target.path / file.name)
    sync(target.path)


def _published(run: RunDir) -> list[str]:
    """Returns the names of a run's files that a job has written."""
    return [path.name for path in (run.config, run.metrics, run.archive, run.reload, run.summary)]


def _difference(theirs: RunDir, ours: RunDir, there: Reached, here: Reached) -> str:
    """Returns why two results are not of one computation; nothing if they are.

    Results of as many iterations have one digest. Else the rows of metrics.csv after the last
    common iteration are equal, apart from the times.
    """
    both = (ours, here), (theirs, there)
    known = [fingerprint_of(run.state, read_status(run.state)) for run, _ in both]
    if all(known) and known[0] != known[1]:
        ends, what = known, "fingerprint (two experiments have this id by chance)"
    elif here == there and here.is_finished:
        ends = [str(read_summary(run.state).get("archive_digest")) for run, _ in both]
        what = "archive_digest"
    elif other := _other_files(*(recorded(run.state) for run, _ in both)):
        ends, what = other, "used code"
    else:
        last = min(here.iterations, there.iterations)
        rows = [_row(run.state, last) for run, _ in both]
        other = [
            name for name, text in rows[0].items() if not agree(name, text, rows[1].get(name, text))
        ]
        ends = [", ".join(f"{name} {row[name]}" for name in other) for row in rows]
        what = f"metrics.csv, row {last}"
    if ends[0] == ends[1]:
        return ""
    if wrong := [problem for run, _ in both for problem in _problems(run.state, run)]:
        return "; ".join(wrong)
    texts = [
        f"{run.path}: {end} ({_origin(run)})" for (run, _), end in zip(both, ends, strict=True)
    ]
    return (
        f"{what} differs: {'; '.join(texts)}. To take the second one, first run "
        f"`qdsweep clean --runs {ours.name}`"
    )


def _other_files(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """Returns the files that two records have with different hashes, as text for each of them.

    There are none where a run of an earlier release has no record.
    """
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    if not (ours and theirs and names):
        return []
    return [
        ", ".join(f"{name} {record.get(name, 'none')[:10]}" for name in names)
        for record in (ours, theirs)
    ]


def _row(state: StateDir, iteration: int) -> dict[str, str]:
    """Returns the row of metrics.csv after an iteration, without times; empty if it is missing."""
    lines = read_lines(state.metrics)
    if len(lines) <= iteration:
        return {}
    cells = zip(lines[0].split(","), lines[iteration].split(","), strict=True)
    return {name: text for name, text in cells if not name.startswith("seconds_")}


def _origin(run: RunDir) -> str:
    """Returns the versions and the CPUs of a run."""
    versions = read_json_if_whole(run.state.summary).get("versions")
    for path in run.state.reloads()[:1] if versions is None else ():
        versions = reload.verify(path)["versions"]
    parts = [f"{name} {version}" for name, version in (versions or {}).items()]
    for attempt in read_status(run.state).attempts:
        parts.append(f"{attempt.get('cpu', 'unknown CPU')} of {attempt.get('host')}")
    return ", ".join(dict.fromkeys(parts))


def _problems(state: StateDir, run: RunDir) -> Iterator[str]:
    """Yields the files of a run that are not as they were written.

    Args:
        state: The run's `state/`, or a copy of it.
        run: The run, which messages name.
    """
    for text in _wrong(state, run):
        yield text.replace(str(state.path), str(run.state.path))


def _wrong(state: StateDir, run: RunDir) -> Iterator[str]:
    changed = state.damaged()
    yield from (f"{path} has changed since it was written" for path in changed)
    if changed:
        return
    try:
        for path in state.path.glob("*.npz"):
            read_arrays(path)  # it compares checksums
        reached = _reached(state)
        if reached.is_finished:
            newest = state.reloads() or [state.reload(reached.iterations)]
            lacking = [path for path in (state.config, state.metrics, *newest) if not path.exists()]
            yield from (f"{path} does not exist: copy the run again" for path in lacking)
            yield from _wrong_results(state, run)
        elif (now := read_status(state)).id != run.name or now.status not in _UNFINISHED:
            yield f"{state.status} is not of an unfinished run {run.name}"
        if not state.sums.exists():
            yield from _wrong_config(state, run)
        yield from _wrong_reloads(state)
    except BadInput as error:
        yield str(error)


def _wrong_results(state: StateDir, run: RunDir) -> Iterator[str]:
    """Compares summary.json with the archive and with status.json."""
    summary, status, arrays = read_summary(state), read_status(state), read_arrays(state.archive)
    unordered = {name: rows for name, rows in arrays.items() if name != "index"}
    if summary.get("archive_digest") not in [archive_digest(arrays), archive_digest(unordered)]:
        yield f"{state.archive} does not have the archive_digest of {state.summary}"
    known = {"id": status.id, **{unit: getattr(status, unit) for unit in BUDGETS}, **status.metrics}
    ends = {name: summary[name] for name in known if summary.get(name) is not None}
    if ends != {name: known[name] for name in ends} or status.id != run.name:
        yield f"{state.status} differs from {state.summary}"
    elif any(status.budget.get(unit, 0) > getattr(status, unit) for unit in BUDGETS):
        yield f"{state.status}: its budget is larger than the run"


def _wrong_config(state: StateDir, run: RunDir) -> Iterator[str]:
    """Checks that config.yaml is the experiment of the run, with the user's code now or then."""
    experiment = compose(str(state.config))
    if identity_in(experiment, run).id == run.name:
        return
    if not code_of_run(run.name, experiment, Results(run.path.parent.parent)):
        yield f"{state.config}: neither it nor the known code of its plug-ins makes {run.name}"


def _wrong_reloads(state: StateDir) -> Iterator[str]:
    """Checks the reload files, and the files that the newest one needs."""
    header: dict[str, Any] = {}
    for path in reversed(state.reloads()):
        try:
            header = reload.verify(path)
        except ValueError as error:
            yield f"{path}: {error}"
            return
    if not header:
        return
    if not reload.fits(state)(header):
        yield f"{state.metrics} does not have the rows of the reload file"
    if (checksum := header.get("history")) is not None:
        rows = HistoryFile(state).read()
        if rows is None or checksum_of(until(rows, header["iteration"])) != checksum:
            yield f"{state.insertions} does not have the rows of the reload file"
