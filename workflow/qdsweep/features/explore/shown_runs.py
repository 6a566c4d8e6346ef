"""The runs that the page shows, and their labels and colours."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from qdsweep.analysis.legend import group_names, place_mark, sweep_marks
from qdsweep.errors import BadInput
from qdsweep.features.compare.merged import is_finished, merge_sweeps
from qdsweep.records.paths import Results, RunDir, SweepDir
from qdsweep.records.plan import Plan, read_plan
from qdsweep.text import nearest

MAX_MAPS = 24  # maps on one page


class ShownRun(NamedTuple):
    """A run of the page.

    Attributes:
        path: Its folder.
        label: What the page calls it.
        color: The colour of its lines.
        dash: The place of their dashes in the palette.
        group: What the page calls its group.
    """

    path: Path
    label: str
    color: str
    dash: int = 0
    group: str = ""


class PageRuns(NamedTuple):
    """What the page shows.

    Attributes:
        title: Its title.
        runs: Its runs, each once.
        notes: Sentences on runs that it leaves out.
        is_open: Whether more of them will follow.
        sweeps: The names of the sweeps whose groups are compared.
    """

    title: str
    runs: list[ShownRun]
    notes: list[str]
    is_open: bool
    sweeps: list[str]


def choose_runs(results: Results, names: Sequence[str], *, finished: int = 0) -> PageRuns:
    """Returns the runs of these names that have started.

    Args:
        results: The folder results/.
        names: Names of sweeps, ids of runs, or folders of either.
        finished: If not 0, it returns at most this many, and only finished runs of a sweep.

    Raises:
        BadInput: There is no such sweep or run.
    """
    runs: dict[Path, ShownRun] = {}
    notes, is_open = [], False
    for name in names:
        sweeps = (SweepDir(Path(name)), results.sweep(name))
        folders = (Path(name), results.run(name).path)
        if sweep := next((sweep for sweep in sweeps if sweep.plan.exists()), None):
            prefix = f"{sweep.name}: " if len(names) > 1 else ""
            plan = read_plan(sweep)
            looks = _looks(plan, sweep.results, prefix)
            left = {row.run for row in plan.rows if not is_finished(sweep.results, row)}
            for look in looks:
                if RunDir(look.path).summary.exists() if finished else _has_started(look):
                    runs.setdefault(look.path.resolve(), look)
            if left or not looks:
                done = f"{len(looks) - len(left)} of {len(looks)} runs are finished"
                notes.append(f"{sweep.name}: {done if looks else 'its search has not ended'}.")
                is_open = True
        elif run := next(filter(_is_run, folders), None):
            mark = place_mark(len(runs))
            runs.setdefault(run.resolve(), ShownRun(run, run.name, mark.color, mark.dash, run.name))
            is_open |= not RunDir(run).summary.exists()
        else:
            known = [folder.name for folder in (*results.known_sweeps(), *results.known_runs())]
            raise BadInput(
                f"{name}: {nearest(name, known)}it is neither a sweep of {results.sweeps}/ nor a "
                "run; give a sweep's name, or the folder of a run"
            )
    compared = list(dict.fromkeys(name for name in names if results.sweep(name).plan.exists()))
    try:
        merged = (
            _looks(Plan.of(merge_sweeps(results, compared).plan), results) if compared[1:] else []
        )
    except BadInput:  # such as a sweep without a finished run
        merged, compared = [], []
    same = {look.path.resolve(): look for look in merged}
    if same.keys() >= runs.keys():  # else runs of one group would have two names
        runs = {path: same[path] for path in runs}
    shown = _some_of_each(list(runs.values()), finished or MAX_MAPS)
    if len(shown) < len(runs):
        notes.append(f"{len(shown)} of {len(runs)} runs are shown. Others: `qdsweep explore RUN`.")
    title = ", ".join(Path(name).name for name in names[:3]) + ", ..." * (len(names) > 3)
    return PageRuns(title, shown, notes, is_open, compared if merged else [])


def _is_run(path: Path) -> bool:
    run = RunDir(path)
    return run.summary.exists() or run.config.exists() or run.state.path.is_dir()


def _has_started(run: ShownRun) -> bool:
    files = RunDir(run.path)
    return files.summary.exists() or files.state.status.exists()


def _looks(plan: Plan, results: Results, prefix: str = "") -> list[ShownRun]:
    """Returns the runs of a plan with the labels and colours of its figures."""
    called = group_names(plan)
    marks = sweep_marks(plan, called.names)
    looks = {}
    for row in plan.rows:
        group, seed = called.label(row.group), row.values.get("seed", "")
        mark, label = marks[group], f"{prefix}{group}" + (f", seed {seed}" if seed else "")
        path = results.run(row.run).path
        looks[row.run] = ShownRun(path, label, mark.color, mark.dash, f"{prefix}{group}")
    return list(looks.values())


def _some_of_each(runs: list[ShownRun], most: int) -> list[ShownRun]:
    """Returns at most `most` runs by group, as equally many of each as possible."""
    by_group: dict[str, list[ShownRun]] = {}
    for run in runs:
        by_group.setdefault(run.group, []).append(run)
    place = {run: place for members in by_group.values() for place, run in enumerate(members)}
    kept = set(sorted(place, key=lambda run: place[run])[:most])
    return [run for members in by_group.values() for run in members if run in kept]
