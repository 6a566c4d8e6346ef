"""The line at every start: how much of a sweep is done, and what is left."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from qdsweep.config.experiment import Experiment
from qdsweep.host.lock import describe, is_alive, read_owner
from qdsweep.records.progress import Standing, read_standing
from qdsweep.sweep.runs import Sweep


def outlook(name: str, sweep: Sweep, runs_dir: Path) -> str:
    """Counts runs, evaluations and core-hours.

    Core-hours are estimated from finished runs of the same domain and algorithm, or else of the
    same domain.

    Args:
        name: The sweep's name.
        sweep: Its runs.
        runs_dir: `results/runs`.

    Returns:
        One line.
    """
    finished = evaluations = 0
    left: list[tuple[Experiment, int]] = []
    costs: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for run, experiment in sweep.runs.items():
        standing = read_standing(runs_dir / run)
        total = planned_evaluations(experiment)
        done = standing.evaluations
        if done:
            for kind in _kinds(experiment):
                costs[kind].append(standing.core_seconds / done)
        if _finished(experiment, standing):
            finished += 1
        else:
            evaluations += max(0, total - done)
            left.append((experiment, max(0, total - done)))
    line = f"qdsweep: {name}: {_count(len(sweep.runs), 'run')}, {finished} finished"
    if sweep.duplicates:
        line += f" ({_count(sweep.duplicates, 'duplicate row')} of the sweep run once)"
    if not left:
        return line + ", nothing left"
    return f"{line}, {evaluations:,} evaluations left, {_core_hours(left, costs)}"


def unfinished(runs: Mapping[str, Experiment], runs_dir: Path) -> list[Experiment]:
    """The runs that have not reached their budget."""
    return [
        experiment
        for run, experiment in runs.items()
        if not _finished(experiment, read_standing(runs_dir / run))
    ]


def runs_elsewhere(sweep: Sweep, runs_dir: Path) -> Iterator[str]:
    """A line for each run that another process computes at this moment, and what to do."""
    for run in sweep.runs:
        lock = runs_dir / run / "state" / "lock"
        if lock.exists() and is_alive(lock):
            owner = read_owner(lock) or {}
            job = owner.get("slurm_job")
            end = f"scancel {job}" if job else f"kill {owner.get('pid')} on {owner.get('host')}"
            yield (
                f"qdsweep: {run} is being computed by {describe(owner)}: wait for it, or end it "
                f"({end}; it saves its state)"
            )


def planned_evaluations(experiment: Experiment) -> int:
    """The evaluations of a whole run (first batches of another size aside)."""
    if experiment.evaluations is not None:
        return experiment.evaluations
    return (experiment.iterations or 0) * experiment.num_emitters * experiment.batch_size


def _core_hours(
    left: list[tuple[Experiment, int]], costs: dict[tuple[str, ...], list[float]]
) -> str:
    seconds = 0.0
    for experiment, evaluations in left:
        known = next((costs[kind] for kind in _kinds(experiment) if kind in costs), None)
        if known is None:
            return "core-hours unknown until a run has begun"
        seconds += evaluations * sum(known) / len(known)
    return f"about {seconds / 3600:.2g} core-hours left"


def _kinds(experiment: Experiment) -> list[tuple[str, ...]]:
    return [(experiment.domain.name, experiment.algorithm.name), (experiment.domain.name,)]


def _finished(experiment: Experiment, standing: Standing) -> bool:
    return standing.status == "finished" and all(
        getattr(standing, unit) >= amount for unit, amount in experiment.budget.items()
    )


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
