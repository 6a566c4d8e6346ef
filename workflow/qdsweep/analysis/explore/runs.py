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
    """

    title: str
    runs: list[Shown]
    notes: list[str]


def choose_runs(results: Results, names: Sequence[str]) -> Chosen:
    """Returns the finished runs of these names.

    Args:
        results: The folder results/.
        names: Names of sweeps, ids of runs, or folders of either. Without any, it is the sweep that
            was started last.

    Raises:
        BadInput: There is no such sweep or run, or none of its runs is finished.
    """
    if not names:
        names = [sweep.name for sweep in results.known_sweeps()[:1]]
    if not names:
        raise BadInput(
            f"{results.path}/ has no sweep; name the folder of a finished run, or start a sweep"
        )
    runs: dict[Path, Shown] = {}
    notes = []
    for name in names:
        sweeps = (SweepDir(Path(name)), results.sweep(name))
        folders = (Path(name), results.run(name).path)
        if sweep := next((sweep for sweep in sweeps if sweep.plan.exists()), None):
            added, note = _of_sweep(sweep, f"{sweep.name}: " if len(names) > 1 else "")
            for shown in added:
                runs.setdefault(shown.path.resolve(), shown)
            notes += [note] if note else []
        elif run := next(filter(_is_run, folders), None):
            mark = place_mark(len(runs))
            runs.setdefault(run.resolve(), Shown(run, run.name, mark.color, mark.dash))
        else:
            known = [folder.name for folder in (*results.known_sweeps(), *results.known_runs())]
            raise BadInput(
                f"{name}: {nearest(name, known)}it is neither a sweep of {results.sweeps}/ nor a "
                "run; give a sweep's name, or the folder of a run"
            )
    if len(runs) > MOST:
        notes.append(f"{MOST} of {len(runs)} runs are shown. Name others to see them.")
    title = ", ".join(Path(name).name for name in names[:3]) + ", ..." * (len(names) > 3)
    return Chosen(title, list(runs.values())[:MOST], notes)


def _is_run(path: Path) -> bool:
    run = RunDir(path)
    return run.summary.exists() or run.config.exists() or run.state.path.is_dir()


def _of_sweep(sweep: SweepDir, prefix: str) -> tuple[list[Shown], str]:
    """Returns the finished runs of a sweep with the look of its figures, and a note on others."""
    plan = read_plan(sweep)
    called = group_names(plan)
    marks = sweep_marks(plan, called.names)
    rows = {row.run: row for row in plan.rows}
    finished = {run: row for run, row in rows.items() if sweep.results.run(run).summary.exists()}
    if not finished:
        raise BadInput(f"the sweep {sweep.name} has no finished run; `qdsweep status` lists them")
    shown = []
    for run in _some_of_each([(row.group, run) for run, row in finished.items()]):
        group, seed = called.label(rows[run].group), rows[run].values.get("seed", "")
        mark, label = marks[group], f"{prefix}{group}" + (f", seed {seed}" if seed else "")
        shown.append(Shown(sweep.results.run(run).path, label, mark.color, mark.dash))
    parts = []
    if len(finished) < len(rows):
        parts.append(f"{len(finished)} of {len(rows)} runs are finished")
    if len(shown) < len(finished):
        parts.append(f"{len(shown)} of {len(finished)} are shown")
    return shown, f"{sweep.name}: {', and '.join(parts)}." if parts else ""


def _some_of_each(runs: list[tuple[str, str]]) -> Iterator[str]:
    """Yields at most `MOST` runs in their order, as equally many of each group as possible."""
    by_group: dict[str, list[str]] = {}
    for group, run in runs:
        by_group.setdefault(group, []).append(run)
    place = {run: members.index(run) for members in by_group.values() for run in members}
    kept = set(sorted(place, key=lambda run: place[run])[:MOST])
    for members in by_group.values():
        yield from (run for run in members if run in kept)
