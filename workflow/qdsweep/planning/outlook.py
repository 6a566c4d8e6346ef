"""The lines at every start: what of a sweep is done and left, and what runs elsewhere."""

from collections.abc import Collection, Iterator, Mapping

from qdsweep.config.experiment import Experiment
from qdsweep.host.lock import describe, read_owner
from qdsweep.records.confirm import read_confirm
from qdsweep.records.plan import Plan
from qdsweep.records.progress import Standing, core_seconds_left, read_standing, total
from qdsweep.records.run_dir import RunDir
from qdsweep.records.status import read_status
from qdsweep.records.sweep_dir import Results
from qdsweep.sweep.runs import Sweep


def outlook(plan: Plan, sweep: Sweep, confirming: Sweep, results: Results) -> Iterator[str]:
    """Counts runs, evaluations and core-hours, and names the runs that another process computes.

    Args:
        plan: The sweep as it is planned now.
        sweep: Its runs.
        confirming: The runs that confirm it.
        results: The folder results/.

    Yields:
        Lines.
    """
    for line in sweep.unpaired:
        yield f"qdsweep: warning: sweep: {line}"
    rows = read_confirm(results.sweep(plan.name)) if plan.confirm else []
    standings = [read_standing(results.run(run.id), run) for run in plan.runs(rows)]
    left = core_seconds_left(standings)
    for name, part, confirms in ((plan.name, sweep, False), ("to confirm it", confirming, True)):
        own = [now for now in standings if now.run.confirms == confirms]
        if own:
            yield _line(name, part, own, left)
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
    seconds = total([left[now.run.id] for now in open_runs])
    hours = (
        "core-hours unknown until a run has begun"
        if seconds is None
        else f"about {seconds / 3600:.2g} core-hours left"
    )
    return f"{line}, {evaluations:,} evaluations left, {hours}"


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

    def is_finished(run: str, budget: Mapping[str, int]) -> bool:
        status = read_status(results.run(run).state)
        return status.status == "finished" and all(
            getattr(status, unit) >= amount for unit, amount in budget.items()
        )

    return [one for run, one in runs.items() if not is_finished(run, one.budget)]


def planned_evaluations(experiment: Experiment) -> int:
    """Returns the evaluations of a whole run (as if all batches had one size)."""
    if experiment.evaluations is not None:
        return experiment.evaluations
    return (experiment.iterations or 0) * experiment.num_emitters * experiment.batch_size


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
