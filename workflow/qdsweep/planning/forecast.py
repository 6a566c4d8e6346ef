"""What a start of a sweep would do with each of its rows, and why."""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from qdsweep.config.experiment import Experiment
from qdsweep.planning.changes import Change
from qdsweep.planning.outlook import planned_evaluations
from qdsweep.records.plan import Plan
from qdsweep.records.progress import Standing, core_seconds_left


class Forecast(NamedTuple):
    """What will be done for a row of a sweep.

    Attributes:
        label: What was swept.
        state: finished, running, stopped, failed or waiting; of the row's run.
        unit: Of the budget: iterations, evaluations or steps.
        done: How much of the budget is used.
        budget: The budget.
        evaluations: Evaluations left; 0 in a row whose run another row computes, and where the
            budget is in steps.
        least: Whether they may become more.
        seconds: Core-seconds left, None where nobody knows.
        action: What will be done, and why.
    """

    label: str
    state: str
    unit: str
    done: int
    budget: int
    evaluations: int
    least: bool
    seconds: float | None
    action: str


def forecast(
    plan: Plan,
    standings: Collection[Standing],
    runs: Mapping[str, Experiment],
    changes: Mapping[str, Change],
) -> Iterator[Forecast]:
    """Yields what a start would do for each row of a sweep, and then for each run that confirms it.

    Args:
        plan: The sweep.
        standings: Where its runs stand.
        runs: Run id -> experiment, with the budget that a start gives it.
        changes: Of `find_changes`.
    """
    by_run = {now.run.id: now for now in standings}
    left = core_seconds_left(standings)
    rows = [(row.run, plan.label(row)) for row in plan.computed]
    rows += [(now.run.id, now.run.label) for now in standings if now.run.confirms]
    first: dict[str, int] = {}
    for number, (run, label) in enumerate(rows, start=1):
        now, earlier = by_run[run], first.setdefault(run, number)
        evaluations = max(0, planned_evaluations(runs[run]) - now.evaluations)
        seconds, action = left[run], _action(now, changes)
        if earlier != number:
            evaluations, seconds, action = 0, 0.0, f"nothing: has the run of row {earlier}"
        elif now.state == "finished":
            evaluations = 0
        used = now.run.unit, now.done, now.run.budget
        least = runs[run].may_evaluate_more
        yield Forecast(label, now.state, *used, evaluations, least, seconds, action)


def _action(now: Standing, changes: Mapping[str, Change]) -> str:
    if now.state == "finished":
        return "nothing: has reached its budget"
    if now.state == "running":
        return f"nothing: is computed by {now.note}"
    if now.state == "waiting":
        change = changes.get(now.run.id)
        if change is None:
            return "computed: not begun yet"
        return f"computed anew: {', '.join(file.name for file in change.files)} has changed"
    if now.state == "failed":
        return f"tried again after {now.done:,}: {now.cause}"
    return f"goes on after {now.done:,}: {now.cause or 'was stopped'}"


def first_batches(runs: Mapping[str, Experiment]) -> Iterator[str]:
    """Yields a line for each algorithm whose first iteration has another size than the others."""
    lines = map(_first_batch, runs.values())
    yield from dict.fromkeys(line for line in lines if line is not None)


def _first_batch(experiment: Experiment) -> str | None:
    later, first = experiment.num_emitters * experiment.batch_size, experiment.first_iteration
    if first == later or experiment.algorithm.explores:  # whose batches have no fixed size
        return None
    whole = planned_evaluations(experiment)
    if not whole:
        return None
    key = "initial_solutions" if experiment.first_batch is None else "first_batch"
    return (
        f"{experiment.algorithm.name}: the first batch ({key}) is {first:,} of its "
        f"{whole:,} evaluations ({min(1, first / whole):.1%}); later ones are {later:,} each"
    )
