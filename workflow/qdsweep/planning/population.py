"""Generations of population-based training: what they can change, and how one follows another."""

from collections.abc import Mapping, Sequence

from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.config.schedule import refuse_fixed_names, unchanging
from qdsweep.config.sweep import SweepFile
from qdsweep.errors import BadInput
from qdsweep.records.config import read_config, write_configs
from qdsweep.records.plan import Plan
from qdsweep.records.run_dir import RunDir
from qdsweep.records.search import Decision, Level, seen_in
from qdsweep.records.sources import find_run
from qdsweep.records.sweep_dir import SweepDir
from qdsweep.strategies.pbt import change_of, exploit
from qdsweep.sweep.grammar import drawn_in
from qdsweep.sweep.runs import Sweep


def refuse_population(text: str, sweep: Sweep, unit: str) -> None:
    """Refuses a sweep that a population cannot train on.

    Args:
        text: The sweep.
        sweep: Its runs.
        unit: Of their budget.

    Raises:
        BadInput: A value cannot change while a run lasts, or the budget is not in iterations.
    """
    experiment = sweep.rows[0].experiment
    sources = drawn_in(text)
    for source in sources:
        if source.name.split(".")[-1] == "batch_size":
            raise BadInput(
                "search.pbt: batch_size cannot be drawn: members are compared after equal "
                "iterations, which would be other numbers of evaluations"
            )
        if source.condition:
            raise BadInput(
                f"search.pbt: {source.name} is drawn under a condition, which the donor of another "
                "state may not fulfil: leave out `if ...`, or sweep the cases apart"
            )
    if unit != "iterations":
        raise BadInput(
            "search.pbt: write the budget in iterations (iterations: N in the experiment): a "
            "schedule counts them"
        )
    if experiment.schedule:
        raise BadInput(
            "search.pbt makes the schedule itself: leave the key schedule out of the experiment"
        )
    try:
        refuse_fixed_names(experiment, [source.name for source in sources])
    except BadInput as error:
        raise BadInput(f"search.pbt: {error}") from None


def with_changes(settings: SweepFile, experiments: Sequence[Experiment]) -> list[Experiment]:
    """Returns experiments to try before a start: those of a population with a change in mid-run.

    A part of the user's may refuse it, which its next generation would find out.

    Args:
        settings: The sweep file.
        experiments: Those of its runs.
    """
    if settings.staged_search is None or settings.staged_search.pbt is None:
        return list(experiments)
    names = [source.name for source in drawn_in(settings.sweep)]
    return [
        one if one.schedule else one.model_copy(update={"schedule": [unchanging(one, names)]})
        for one in experiments
    ]


def exploited(sweep: SweepDir, plan: Plan, level: Level, below: Level) -> Decision:
    """Decides about a generation; the runs that take over are given their donors' state.

    Args:
        sweep: The sweep's folder.
        plan: Its plan.
        level: The generation.
        below: The one before it.

    Raises:
        BadInput: A file that it needs is missing or damaged.
    """
    from qdsweep.records.fork import fork  # it imports numpy, which no start needs

    assert plan.search is not None
    sources = drawn_in(plan.sweep)
    seen = seen_in(sweep, below, range(below.places))
    number = plan.levels.index(level)
    decision = exploit(plan.search, sources, seen, number, below.budget)
    results, at, chosen = sweep.results, below.budget, []
    for one in decision.chosen:
        if one.runs:
            chosen.append(one)
            continue
        assert one.parent is not None
        runs = {}
        for seed, donor in seen[one.parent].runs.items():
            child = _child(results.run(donor), at, change_of(sources, one.values))
            runs[seed] = find_run(child, results)
            write_configs({runs[seed]: child}, results)
            fork(results.run(donor), results.run(runs[seed]), at)
        chosen.append(one._replace(runs=runs))
    return decision._replace(chosen=chosen)


def _child(donor: RunDir, at: int, values: Mapping[str, object]) -> Experiment:
    """Returns a donor's experiment with one more change."""
    data = read_config(donor.state.config)
    data["schedule"] = [*data.get("schedule", []), {"at": at, "set": dict(values)}]
    return compose(data)
