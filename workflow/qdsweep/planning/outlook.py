"""The forecast of a start: finished and remaining work, its cost, and the reason for each row.

It includes the cost of a change in the user's code: finished runs that are computed again.
"""

import functools
import json
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.config.family import FORMER
from qdsweep.config.files import shown
from qdsweep.config.own_code import read_source
from qdsweep.config.sweep import Confirm
from qdsweep.errors import BadInput
from qdsweep.host.owner import describe, read_owner
from qdsweep.records.dependencies import OUTDATED
from qdsweep.records.paths import Results, RunDir
from qdsweep.records.plan import Plan, PlannedRun, read_plan
from qdsweep.records.progress import Standing, core_seconds_left, read_standing, total
from qdsweep.records.sources import changed_files, finder, kept_code, replaced
from qdsweep.records.status import COMPUTED, read_status
from qdsweep.sweep.drawn import SAMPLE
from qdsweep.sweep.groups import UNGROUPED
from qdsweep.sweep.ids import identify
from qdsweep.sweep.runs import Row, Sweep, by_setting
from qdsweep.text import duration, plural


class CodeChange(NamedTuple):
    """The reason why a run that was computed before has not started now.

    Attributes:
        files: The files that have changed since.
        kept: The folder with the previous code; None for runs of releases before 0.2, which did
            not keep it.
    """

    files: tuple[Path, ...]
    kept: Path | None


def find_changes(
    name: str, sweep: Sweep, confirming: Sweep, results: Results
) -> dict[str, CodeChange]:
    """Returns the runs that were computed with other code of the user.

    Args:
        name: The sweep's name.
        sweep: Its runs.
        confirming: The runs that confirm it.
        results: The folder results/.
    """
    code = functools.cache(read_source)
    changes = {}
    before: dict[str, str] | None = None
    runs = sweep.runs | confirming.runs
    own = [alike for alike in by_setting(runs) if next(iter(alike.values())).plugins]
    for run, experiment in chain.from_iterable(alike.items() for alike in own):
        targets = tuple(experiment.plugins)
        if read_status(results.run(run).state).status:
            continue
        kept = replaced(experiment, results, code)
        if kept is not None:
            changes[run] = CodeChange(_files(targets, kept), kept)
            continue
        before = _before(name, sweep, results) if before is None else before
        if run in before and _was_computed(before[run], experiment, results):
            changes[run] = CodeChange(_files(targets, None), None)
    return changes


def renamed(
    experiment: str | Mapping[str, Any],
    sweep: Sweep,
    standings: Collection[Standing],
    results: Results,
) -> Iterator[str]:
    """Yields one line per preset whose name had other settings, if only these have runs.

    Args:
        experiment: The swept experiment.
        sweep: Its runs.
        standings: Their progress.
        results: The folder results/.
    """
    find = finder(results)
    finished = {now.run.id for now in standings if now.state == "finished"}
    left = [row for row in sweep.rows if row.id not in finished]
    for now, (name, _) in FORMER.items():
        rows = {row.id: row for row in left if row.experiment.algorithm.name == name}
        new = {
            run: row.experiment
            for run, row in rows.items()
            if not read_status(results.run(run).state).status
        }
        runs: list[str] = []
        for alike in by_setting(new):
            swept = rows[next(iter(alike))].values
            values = {key: swept[key] for key in swept if key != SAMPLE and swept[key] != ""}
            try:
                earlier = compose(experiment, {**values, "algorithm": now})
            except BadInput:  # the earlier preset had no such key
                continue
            seeds = [run.seed for run in alike.values()]
            runs += [find(earlier.model_copy(update={"seed": seed})).id for seed in seeds]
        other = dict.fromkeys(run for run in runs if run not in sweep.runs)
        runs = [run for run in other if read_status(results.run(run).state).status]
        if runs:
            yield (
                f"qdsweep: warning: algorithm {name} now has pyribs' settings. "
                f"{plural(len(runs), 'run')} of its earlier settings, such as {runs[0]}, "
                f"{'is' if len(runs) == 1 else 'are'} not part of this sweep. These settings are "
                f"now called {now}: to keep the runs, write this name"
            )


@functools.lru_cache  # for each run of a sweep
def _files(targets: tuple[str, ...], kept: Path | None) -> tuple[Path, ...]:
    return changed_files(targets, kept_code(kept, targets) if kept else None)


def _before(name: str, sweep: Sweep, results: Results) -> dict[str, str]:
    """Returns run id -> the id of the row with the same values at the last start."""
    try:
        rows = read_plan(results.sweep(name)).computed
    except BadInput:
        return {}
    ids = {_key(row.typed): row.run for row in rows}
    now = {row.id: ids.get(_key(row.values), row.id) for row in sweep.rows}
    return {run: before for run, before in now.items() if before != run}


def _key(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True)


def _was_computed(run: str, experiment: Experiment, results: Results) -> bool:
    """Returns whether a run of this experiment has results, whatever the user's code was."""
    folder = results.run(run)
    if read_status(folder.state).status not in COMPUTED:
        return False
    try:
        other = compose(str(folder.state.config))
    except BadInput:
        return False
    now, then = (identify(each, lambda _: "") for each in (experiment, other))
    return now.fingerprint == then.fingerprint


def outlook(
    name: str,
    sweep: Sweep,
    confirming: Sweep,
    standings: Collection[Standing],
    changes: Mapping[str, CodeChange],
    results: Results,
) -> Iterator[str]:
    """Counts runs, evaluations and core time, and names the runs that another process computes.

    Args:
        name: The sweep's name.
        sweep: Its runs.
        confirming: The runs that confirm it.
        standings: The state of each run.
        changes: The runs that other code computed before, from `find_changes`.
        results: The folder results/.

    Yields:
        Lines.
    """
    for line in sweep.unpaired:
        yield f"qdsweep: warning: sweep: {line}"
    yield from _late_changes(sweep.runs)
    yield from _first_policies(sweep.runs)
    yield from _changes(changes, sweep.runs | confirming.runs)
    left = core_seconds_left(standings)
    own = [now for now in standings if not now.run.confirms]
    if own:
        yield _line(name, sweep, own, left)
    for now in standings:
        if now.state == "running":
            yield _elsewhere(results.run(now.run.id))


def _line(
    name: str, sweep: Sweep, standings: Collection[Standing], left: Mapping[str, float | None]
) -> str:
    open_runs = [now for now in standings if not now.is_settled]
    outdated = sum(now.state == "outdated" for now in standings)
    finished = len(standings) - len(open_runs) - outdated
    line = f"qdsweep: {name}: {plural(len(standings), 'run')}, {finished} finished"
    if sweep.duplicates:
        line += f" ({plural(sweep.duplicates, 'duplicate row')} of the sweep run once)"
    line += f", {outdated:,} outdated" * bool(outdated)
    if not open_runs:
        return line + ", nothing left"
    evaluations = _evaluations(
        [
            (sweep.runs[now.run.id], 0 if now.state == "replaced" else now.evaluations)
            for now in open_runs
        ]
    )
    steps = sum(max(0, now.run.budget - now.done) for now in open_runs if now.run.unit == "steps")
    amounts = [evaluations] if evaluations else []
    amounts += [f"{steps:,} environment steps"] if steps else []
    seconds = total([left[now.run.id] for now in open_runs])
    time = (
        "core time unknown until a run has started"
        if seconds is None
        else f"about {duration(seconds)} of core time left"
    )
    return f"{line}, {' and '.join(amounts or ['0 evaluations'])} left, {time}"


def confirm_line(
    confirm: Confirm,
    sweep: Sweep,
    confirming: Sweep,
    standings: Collection[Standing],
    results: Results,
    finalists: int | None = None,
) -> str:
    """Counts the runs that confirm a sweep; the largest possible ones before it has winners.

    Args:
        confirm: The key of the sweep file.
        sweep: Its runs.
        confirming: The runs that confirm it, once the sweep is finished and has its winners.
        standings: The state of all these runs; those of a search are read here.
        results: The folder results/.
        finalists: The number of configurations that a search computes whole; None: no search.
    """
    later = confirming if confirming.runs else _largest(confirm, sweep, finalists)
    own = [now for now in standings if now.run.id in later.runs] or [*_read(later, results)]
    alike = _read(sweep, results) if finalists else standings
    title = "to confirm it" if confirming.runs else "to confirm it, at most"
    return _line(title, later, own, core_seconds_left([*alike, *own]))


def _read(sweep: Sweep, results: Results) -> Iterator[Standing]:
    for run, experiment in sweep.runs.items():
        ((unit, amount),) = experiment.budget.items()
        yield read_standing(results.run(run), PlannedRun(run, "", unit, amount))


def _largest(confirm: Confirm, sweep: Sweep, finalists: int | None) -> Sweep:
    """Returns the runs that would confirm the largest groups of each domain and archive."""
    tasks: dict[str, dict[str, Row]] = {}
    for row in sweep.rows:
        domain, algorithm = row.experiment.domain, row.experiment.algorithm
        task = getattr(domain, "function", None) or getattr(domain, "env", None)
        scale = (domain.name, task, row.experiment.archive, algorithm.reported_archive.type)
        group = {name: value for name, value in row.values.items() if name not in UNGROUPED}
        tasks.setdefault(repr(scale), {})[repr(group)] = row
    runs = {}
    for groups in tasks.values():
        rows = sorted(groups.values(), key=lambda row: -_size(row.experiment))
        for row in rows[:finalists][: confirm.top]:
            for seed in range(confirm.seeds[0], confirm.seeds[1] + 1):
                runs[f"{row.id}+{seed}"] = row.experiment.model_copy(update={"seed": seed})
    return Sweep((), (), runs)


def _size(experiment: Experiment) -> int:
    return planned_evaluations(experiment) or experiment.steps or 0


def _evaluations(runs: Collection[tuple[Experiment, int]]) -> str:
    """Returns text such as `at least 200 evaluations`; empty where there are none.

    Args:
        runs: Experiments, each with the number of its finished evaluations.
    """
    planned = [(planned_evaluations(experiment), done) for experiment, done in runs]
    known = sum(max(0, all_ - done) for all_, done in planned if all_ is not None)
    is_unknown = any(all_ is None for all_, _ in planned)
    if is_unknown and not known:
        return "an unknown number of evaluations"
    if not known:
        return ""
    least = is_unknown or any(experiment.may_evaluate_more for experiment, _ in runs)
    return f"{'at least ' * least}{known:,} evaluations"


def _late_changes(runs: Mapping[str, Experiment]) -> Iterator[str]:
    """Yields one line per change of a schedule that never takes place."""
    late: dict[int, list[str]] = {}
    for run, experiment in runs.items():
        for at in experiment.late_changes:
            late.setdefault(at, []).append(run)
    for at, ids in sorted(late.items()):
        yield (
            f"qdsweep: warning: schedule: the change after iteration {at} never takes place in "
            f"{plural(len(ids), 'run')}, such as {ids[0]}: the budget ends before it"
        )


def _first_policies(runs: Mapping[str, Experiment]) -> Iterator[str]:
    """Yields a line if `return` would only measure first policies, and never a learned one."""
    ids = [run for run, experiment in runs.items() if experiment.judges_its_first_policy_alone]
    if ids:
        yield (
            f"qdsweep: warning: algorithm.evaluate_every: in {plural(len(ids), 'run')}, such as "
            f"{ids[0]}, the budget ends before the second greedy episodes, so `return` and the "
            "archive only measure the first policy: give a smaller evaluate_every"
        )


def _changes(changes: Mapping[str, CodeChange], runs: Mapping[str, Experiment]) -> Iterator[str]:
    """Yields one line per change of the user's code: its cost, and how to undo it."""
    for files, kept in dict.fromkeys(changes.values()):
        ids = [run for run, change in changes.items() if change == (files, kept)]
        names = ", ".join(map(shown, files))
        cost = _evaluations([(runs[run], 0) for run in ids])
        back = f"the code in {kept}" if kept else "the previous code, and start once"
        yield (
            f"qdsweep: warning: {names} has changed, so {plural(len(ids), 'run')} will be "
            f"computed again{f' ({cost})' * bool(cost)}. To keep them, restore {back}. "
            "Comments, docstrings, annotations of functions and layout may change at no cost"
        )


def _elsewhere(run: RunDir) -> str:
    """Returns a line on a run that another process computes now, with the remedy."""
    owner = read_owner(run.state.lock) or {}
    job = owner.get("slurm_job")
    end = f"scancel {job}" if job else f"kill {owner.get('pid')} on {owner.get('host')}"
    return (
        f"qdsweep: {run.name} is being computed by {describe(owner)}. Wait for it, or end it with "
        f"`{end}` (it saves its state)"
    )


def unfinished(runs: Mapping[str, Experiment], results: Results) -> list[Experiment]:
    """Returns the runs that have not reached their budget."""
    return [
        experiment
        for run, experiment in runs.items()
        if not read_status(results.run(run).state).has_reached(experiment.budget)
    ]


def planned_evaluations(experiment: Experiment) -> int | None:
    """Returns the evaluations of a whole run.

    A run that `may_evaluate_more` has at least these. They are 0 for a budget in steps, and None
    for one in iterations where only the algorithm's code knows the size of its batches.
    """
    if experiment.steps is not None:
        return 0
    if experiment.evaluations is not None:
        return experiment.evaluations
    if not experiment.algorithm.batch_is_known:
        return None
    return experiment.evaluations_after(experiment.iterations or 1)


class Forecast(NamedTuple):
    """The forecast for a row of a sweep.

    Attributes:
        label: The swept values.
        state: That of the row's run; see `Standing`.
        unit: Of the budget: iterations, evaluations or steps.
        done: How much of the budget is used.
        budget: The budget.
        evaluations: Evaluations left; 0 in a row whose run another row computes, and where the
            budget is in steps; None where they are unknown.
        least: Whether there may be more.
        seconds: Core-seconds left, None where they are unknown.
        action: The action, and its reason.
    """

    label: str
    state: str
    unit: str
    done: int
    budget: int
    evaluations: int | None
    least: bool
    seconds: float | None
    action: str


def forecast(
    plan: Plan,
    standings: Collection[Standing],
    runs: Mapping[str, Experiment],
    changes: Mapping[str, CodeChange],
) -> Iterator[Forecast]:
    """Yields the forecast of each row of a sweep, and then of each run that confirms it.

    Args:
        plan: The sweep.
        standings: The progress of its runs.
        runs: Run id -> experiment, with the budget that a start gives it.
        changes: From `find_changes`.
    """
    by_run = {now.run.id: now for now in standings}
    left = core_seconds_left(standings)
    rows = [(row.run, plan.label(row)) for row in plan.computed]
    rows += [(now.run.id, now.run.label) for now in standings if now.run.confirms]
    first: dict[str, int] = {}
    for number, (run, label) in enumerate(rows, start=1):
        now, earlier = by_run[run], first.setdefault(run, number)
        planned = planned_evaluations(runs[run])
        evaluations = None if planned is None else max(0, planned - now.evaluations)
        seconds, action = left[run], _action(now, changes)
        if earlier != number:
            evaluations, seconds, action = 0, 0.0, f"nothing: has the run of row {earlier}"
        elif now.is_settled:
            evaluations = 0
        elif now.state == "replaced":
            evaluations = planned
        used = now.run.unit, now.done, now.run.budget
        least = runs[run].may_evaluate_more
        state = "replaced" if now.state == "waiting" and run in changes else now.state
        if now.state == "replaced":  # the files of an outdated run are still there
            state = OUTDATED
        yield Forecast(label, state, *used, evaluations, least, seconds, action)


def _action(now: Standing, changes: Mapping[str, CodeChange]) -> str:
    if now.state == "finished":
        return "nothing: has reached its budget"
    if now.state == "outdated":
        return f"nothing: {now.note}"
    if now.state == "replaced":
        return f"computed again: {now.note}"
    if now.state == "running":
        return f"nothing: is being computed by {now.note}"
    if now.state == "waiting":
        change = changes.get(now.run.id)
        if change is None:
            return "computed: not started yet"
        return f"computed again: {', '.join(file.name for file in change.files)} has changed"
    if now.state == "failed":
        return f"tried again after {now.done:,}: {now.cause}"
    return f"resumed after {now.done:,}: {now.cause or 'was stopped'}"


def first_batches(runs: Mapping[str, Experiment]) -> Iterator[str]:
    """Yields one line per algorithm whose first iteration has another size than later ones."""
    lines = map(_first_batch, runs.values())
    yield from dict.fromkeys(line for line in lines if line is not None)


def _first_batch(experiment: Experiment) -> str | None:
    later, first = experiment.later_iteration, experiment.first_iteration
    if experiment.draws_as_later or experiment.algorithm.explores:  # its batches have no fixed size
        return None
    whole = planned_evaluations(experiment)
    if not whole:
        return None
    key = "initial_solutions" if experiment.first_batch is None else "first_batch"
    return (
        f"{experiment.algorithm.name}: the first batch ({key}) is {first:,} of its "
        f"{whole:,} evaluations ({min(1, first / whole):.1%}); later ones are {later:,} each"
    )
