"""The runs that the page shows, and their labels and colours."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from qdsweep.analysis.legend import group_names, place_mark, sweep_marks
from qdsweep.config.files import nearest
from qdsweep.errors import BadInput
from qdsweep.records.paths import Results, RunDir, SweepDir
from qdsweep.records.plan import read_plan

MOST = 24  # maps on one page


class Shown(NamedTuple):
    """A run of the page.

    Attributes:
        path: Its folder.
        label: What the page calls it.
        color: The colour of its lines.
        dash: The place of their dashes in the palette.
    """

    path: Path
    label: str
    color: str
    dash: int = 0


class Chosen(NamedTuple):
    """What the page shows.

    Attributes:
        title: Its title.
        runs: Its runs, each once.
        notes: Sentences on runs that it leaves out.
        is_open: Whether more of them will follow.
    """

    title: str
    runs: list[Shown]
    notes: list[str]
    is_open: bool


def choose_runs(results: Results, names: Sequence[str]) -> Chosen:
    """Returns the runs of these names that have started.

    Args:
        results: The folder results/.
        names: Names of sweeps, ids of runs, or folders of either.

    Raises:
        BadInput: There is no such sweep or run.
    """
    runs: dict[Path, Shown] = {}
    notes, is_open = [], False
    for name in names:
        sweeps = (SweepDir(Path(name)), results.sweep(name))
        folders = (Path(name), results.run(name).path)
        if sweep := next((sweep for sweep in sweeps if sweep.plan.exists()), None):
            added, note, has_more = _of_sweep(sweep, f"{sweep.name}: " if len(names) > 1 else "")
            for shown in added:
                runs.setdefault(shown.path.resolve(), shown)
            notes += [note] if note else []
            is_open |= has_more
        elif run := next(filter(_is_run, folders), None):
            mark = place_mark(len(runs))
            runs.setdefault(run.resolve(), Shown(run, run.name, mark.color, mark.dash))
            is_open |= not RunDir(run).summary.exists()
        else:
            known = [folder.name for folder in (*results.known_sweeps(), *results.known_runs())]
            raise BadInput(
                f"{name}: {nearest(name, known)}it is neither a sweep of {results.sweeps}/ nor a "
                "run; give a sweep's name, or the folder of a run"
            )
    if len(runs) > MOST:
        notes.append(f"{MOST} of {len(runs)} runs are shown. Name others to see them.")
    title = ", ".join(Path(name).name for name in names[:3]) + ", ..." * (len(names) > 3)
    return Chosen(title, list(runs.values())[:MOST], notes, is_open)


def last_sweep(results: Results) -> str:
    """Returns the name of the sweep that was started last.

    Raises:
        BadInput: There is none.
    """
    for sweep in results.known_sweeps():
        return sweep.name
    raise BadInput(
        f"{results.path}/ has no sweep; name the folder of a finished run, or start a sweep"
    )


def _is_run(path: Path) -> bool:
    run = RunDir(path)
    return run.summary.exists() or run.config.exists() or run.state.path.is_dir()


def _of_sweep(sweep: SweepDir, prefix: str) -> tuple[list[Shown], str, bool]:
    """Returns the runs of a sweep with the look of its figures, a note, and if others follow."""
    plan = read_plan(sweep)
    called = group_names(plan)
    marks = sweep_marks(plan, called.names)
    rows = {row.run: row for row in plan.rows}
    folders = {run: sweep.results.run(run) for run in rows}
    finished = sum(folder.summary.exists() for folder in folders.values())
    started = [run for run, folder in folders.items() if _has_started(folder)]
    shown = []
    for run in _some_of_each([(rows[run].group, run) for run in started]):
        group, seed = called.label(rows[run].group), rows[run].values.get("seed", "")
        mark, label = marks[group], f"{prefix}{group}" + (f", seed {seed}" if seed else "")
        shown.append(Shown(sweep.results.run(run).path, label, mark.color, mark.dash))
    parts = []
    if finished < len(rows):
        parts.append(f"{finished} of {len(rows)} runs are finished")
    if len(shown) < len(started):
        parts.append(f"{len(shown)} of {len(started)} are shown")
    note = f"{sweep.name}: {', and '.join(parts)}." if parts else ""
    return shown, note, finished < len(rows)


def _has_started(run: RunDir) -> bool:
    return run.summary.exists() or run.state.status.exists()


def _some_of_each(runs: list[tuple[str, str]]) -> Iterator[str]:
    """Yields at most `MOST` runs in their order, as equally many of each group as possible."""
    by_group: dict[str, list[str]] = {}
    for group, run in runs:
        by_group.setdefault(group, []).append(run)
    place = {run: members.index(run) for members in by_group.values() for run in members}
    kept = set(sorted(place, key=lambda run: place[run])[:MOST])
    for members in by_group.values():
        yield from (run for run in members if run in kept)
