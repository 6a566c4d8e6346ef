"""The lines at every start: what of a sweep is done and left, and what runs elsewhere."""

from collections.abc import Collection, Iterator, Mapping

from qdsweep.config.experiment import Experiment
from qdsweep.config.files import shown
from qdsweep.host.owner import describe, read_owner
from qdsweep.planning.changes import Change
from qdsweep.records.progress import Standing, core_seconds_left, total
from qdsweep.records.run_dir import RunDir
from qdsweep.records.status import read_status
from qdsweep.records.sweep_dir import Results
from qdsweep.sweep.runs import Sweep


def outlook(
    name: str,
    sweep: Sweep,
    confirming: Sweep,
    standings: Collection[Standing],
    changes: Mapping[str, Change],
    results: Results,
) -> Iterator[str]:
    """Counts runs, evaluations and core-hours, and names the runs that another process computes.

    Args:
        name: The sweep's name.
        sweep: Its runs.
        confirming: The runs that confirm it.
        standings: Where all of them stand.
        changes: What of them other code has computed before, of `find_changes`.
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
    for title, part, confirms in ((name, sweep, False), ("to confirm it", confirming, True)):
        own = [now for now in standings if now.run.confirms == confirms]
        if own:
            yield _line(title, part, own, left)
    for now in standings:
        if now.state == "running":
            yield _elsewhere(results.run(now.run.id))


def _line(
    name: str, sweep: Sweep, standings: Collection[Standing], left: Mapping[str, float | None]
) -> str:
    open_runs = [now for now in standings if now.state != "finished"]
    finished = len(standings) - len(open_runs)
    line = f"qdsweep: {name}: {_count(len(standings), 'run')}, {finished} finished"
    if sweep.duplicates:
        line += f" ({_count(sweep.duplicates, 'duplicate row')} of the sweep run once)"
    if not open_runs:
        return line + ", nothing left"
    evaluations = sum(
        max(0, planned_evaluations(sweep.runs[now.run.id]) - now.evaluations) for now in open_runs
    )
    steps = sum(max(0, now.run.budget - now.done) for now in open_runs if now.run.unit == "steps")
    least = "at least " * any(sweep.runs[now.run.id].may_evaluate_more for now in open_runs)
    amounts = [f"{least}{evaluations:,} evaluations"] if evaluations else []
    amounts += [f"{steps:,} environment steps"] if steps else []
    seconds = total([left[now.run.id] for now in open_runs])
    hours = (
        "core-hours unknown until a run has begun"
        if seconds is None
        else f"about {seconds / 3600:.2g} core-hours left"
    )
    return f"{line}, {' and '.join(amounts or ['0 evaluations'])} left, {hours}"


def _late_changes(runs: Mapping[str, Experiment]) -> Iterator[str]:
    """Yields a line for each change of a schedule that never comes."""
    late = [(at, run) for run, one in runs.items() for at in one.late_changes]
    for at in sorted({at for at, _ in late}):
        those = [run for one, run in late if one == at]
        yield (
            f"qdsweep: warning: schedule: the change after iteration {at} never comes in "
            f"{_count(len(those), 'run')}, such as {those[0]}: the budget ends before"
        )


def _first_policies(runs: Mapping[str, Experiment]) -> Iterator[str]:
    """Yields a line where `return` will be of first policies, and never of what was learned."""
    those = [run for run, one in runs.items() if one.judges_its_first_policy_alone]
    if those:
        yield (
            f"qdsweep: warning: algorithm.evaluate_every: in {_count(len(those), 'run')}, such as "
            f"{those[0]}, the budget ends before the second greedy episodes, so `return` and the "
            "archive are of the first policy alone: give a smaller evaluate_every"
        )


def _changes(changes: Mapping[str, Change], runs: Mapping[str, Experiment]) -> Iterator[str]:
    """Yields a line for each change of the user's code: what it costs, and how to take it back."""
    for files, kept in dict.fromkeys((one.files, one.kept) for one in changes.values()):
        anew = [run for run, one in changes.items() if (one.files, one.kept) == (files, kept)]
        names = ", ".join(map(shown, files))
        least = "at least " * any(runs[run].may_evaluate_more for run in anew)
        evaluations = sum(planned_evaluations(runs[run]) for run in anew)
        back = f"what is in {kept}" if kept else "the code of then and start once"
        yield (
            f"qdsweep: warning: {names} has changed, so {_count(len(anew), 'finished run')} will "
            f"be computed anew ({least}{evaluations:,} evaluations): to keep them, put back {back} "
            "(comments, docstrings and layout may change at no cost)"
        )


def _elsewhere(run: RunDir) -> str:
    """Returns a line on a run that another process computes now, and what to do."""
    owner = read_owner(run.state.lock) or {}
    job = owner.get("slurm_job")
    end = f"scancel {job}" if job else f"kill {owner.get('pid')} on {owner.get('host')}"
    return (
        f"qdsweep: {run.name} is being computed by {describe(owner)}: wait for it, or end it "
        f"({end}; it saves its state)"
    )


def unfinished(runs: Mapping[str, Experiment], results: Results) -> list[Experiment]:
    """Returns the runs that have not reached their budget."""
    return [
        one
        for run, one in runs.items()
        if not read_status(results.run(run).state).has_reached(one.budget)
    ]


def planned_evaluations(experiment: Experiment) -> int:
    """Returns the evaluations of a whole run, 0 where nobody knows: its budget is in steps.

    Of a run that `may_evaluate_more` they are the least.
    """
    if experiment.steps is not None:
        return 0
    if experiment.evaluations is not None:
        return experiment.evaluations
    return experiment.evaluations_after(experiment.iterations or 1)


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
