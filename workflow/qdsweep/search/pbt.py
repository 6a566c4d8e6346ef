"""Population-based training: the worst members take over the state of the best, with new values.

It uses truncation selection of Jaderberg et al. (2017), Population based training of neural
networks. All members of a generation are ranked together, at equal budgets, so speed does not
matter. Every draw has its own stream, from the search's seed, generation, place and name.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from qdsweep.config.compose import compose
from qdsweep.config.experiment import Experiment
from qdsweep.config.keys import refuse_fixed_names, schedule_text, unchanging
from qdsweep.config.model import typed
from qdsweep.config.search import Search
from qdsweep.config.sweep import SweepFile
from qdsweep.errors import BadInput
from qdsweep.records.dependencies import refuse_other_code
from qdsweep.records.paths import RunDir, SweepDir
from qdsweep.records.plan import Plan
from qdsweep.records.results import read_config, write_configs
from qdsweep.records.search_files import Chosen, Decision, Level, Seen, ordinal, seen_in
from qdsweep.records.sources import find_run, form_in, require_own
from qdsweep.search.draws import uniform
from qdsweep.search.levels import ranked
from qdsweep.sweep.drawn import DrawnSource
from qdsweep.sweep.grammar import drawn_in
from qdsweep.sweep.groups import CHANGES
from qdsweep.sweep.runs import Sweep

# The number of tries for new values of a member, before it stays unchanged.
_TRIES = 100


def exploit(
    search: Search, sources: Sequence[DrawnSource], seen: Sequence[Seen], generation: int, at: int
) -> Decision:
    """Returns the next generation.

    If a member takes over, its `parent` is its donor's place, and its `values` are the new values.
    Their entry `CHANGES` has the earlier values: `0 sigma=0.5; 900 sigma=0.4`. All members are
    different experiments.

    Args:
        search: The settings of the search, with the key `pbt`.
        sources: The drawn sources.
        seen: All places of the previous generation.
        generation: The number of the next generation, from 1.
        at: The iteration after which it starts.
    """
    assert search.pbt is not None
    order = ranked(seen)
    count = max(1, int(search.pbt.exploit * len(order)))
    donors = [donor for donor in order[:count] if donor.score is not None]
    replaced = [] if not donors else order[-count:] + [bad for bad in order if bad.score is None]
    best, worst = ({member.place for member in group} for group in (donors, replaced))
    chosen, taken = [], {(member.setting, _text(sources, member.values)) for member in seen}
    for rank, member in enumerate(order, start=1):
        place, standing = member.place, f"{ordinal(rank)} of {len(order)}"
        chosen.append(member.chosen_for(place, standing))
        for number in range(_TRIES) if place in worst - best else ():
            stream = f"{generation} {place} {number}"
            donor = donors[int(uniform(search.seed, f"donor {stream}", 0) * len(donors))]
            values = _explored(search, sources, donor.values, stream)
            experiment = donor.setting, _text(sources, values)
            if experiment not in taken:
                taken.add(experiment)
                setting = generation * len(order) + place
                values[CHANGES] = _history(sources, donor.values, values, at)
                reason = f"{standing}: takes over place {donor.place}"
                chosen[-1] = Chosen(place, setting, values, reason, donor.place)
                break
    return Decision(list(seen), sorted(chosen, key=lambda member: member.place))


def change_of(sources: Sequence[DrawnSource], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the new values of a member, by swept parameter."""
    return {source.name: values[source.name] for source in sources}


def _explored(
    search: Search, sources: Sequence[DrawnSource], values: Mapping[str, Any], stream: str
) -> dict[str, Any]:
    """Returns values near those of a donor, or new draws."""
    assert search.pbt is not None
    explored = dict(values)
    for source in sources:
        resample, which, quantile = (
            uniform(search.seed, f"{source.name} {stream}", number) for number in range(3)
        )
        if resample < search.pbt.resample:
            text = source.value(quantile)
        else:
            factor = search.pbt.factors[int(which * len(search.pbt.factors))]
            text = source.scaled(values[source.name], factor)
        explored[source.name] = typed(text)
    return explored


def _text(sources: Sequence[DrawnSource], values: Mapping[str, Any]) -> str:
    return schedule_text([(0, change_of(sources, values))])


def _history(
    sources: Sequence[DrawnSource], before: Mapping[str, Any], now: Mapping[str, Any], at: int
) -> str:
    """Returns the values of a lineage, each with its iteration; `0` is the start."""
    earlier = str(before.get(CHANGES) or _text(sources, before))
    return f"{earlier}; {schedule_text([(at, change_of(sources, now))])}"


def refuse_population(text: str, sweep: Sweep, unit: str) -> None:
    """Refuses a sweep that is not suitable for population-based training.

    Args:
        text: The sweep.
        sweep: Its runs.
        unit: The unit of their budget.

    Raises:
        BadInput: A value cannot change during a run, or the budget is not in iterations.
    """
    experiment = sweep.rows[0].experiment
    sources = drawn_in(text)
    for source in sources:
        if source.name.split(".")[-1] == "batch_size":
            raise BadInput(
                "search.pbt: batch_size cannot be drawn, because members are compared after equal "
                "numbers of iterations, which would be different numbers of evaluations"
            )
        if source.condition:
            raise BadInput(
                f"search.pbt: {source.name} is drawn under a condition, which may not hold for a "
                "donor. Remove `if ...`, or write one sweep per case"
            )
    if unit != "iterations":
        raise BadInput(
            "search.pbt: write the budget in iterations (iterations: N in the experiment), because "
            "a schedule counts iterations"
        )
    if experiment.schedule:
        raise BadInput(
            "search.pbt makes the schedule itself: remove the key schedule from the experiment"
        )
    try:
        refuse_fixed_names(experiment, [source.name for source in sources])
    except BadInput as error:
        raise BadInput(f"search.pbt: {error}") from None


def with_changes(settings: SweepFile, experiments: Sequence[Experiment]) -> list[Experiment]:
    """Returns the experiments to try before a start. Those of a population get a change.

    The user's own code may refuse a change, which would otherwise stop the next generation.

    Args:
        settings: The sweep file.
        experiments: The experiments of its runs.
    """
    if settings.staged_search is None or settings.staged_search.pbt is None:
        return list(experiments)
    names = [source.name for source in drawn_in(settings.sweep)]
    return [
        experiment
        if experiment.schedule
        else experiment.model_copy(update={"schedule": [unchanging(experiment, names)]})
        for experiment in experiments
    ]


def decide_generation(sweep: SweepDir, plan: Plan, level: Level, below: Level) -> Decision:
    """Decides a generation, and copies donors' states to the runs that take over.

    Args:
        sweep: The sweep's folder.
        plan: Its plan.
        level: The generation.
        below: The previous generation.

    Raises:
        BadInput: A file that it needs is missing or damaged.
    """
    from qdsweep.search.fork import fork  # imports numpy, which the start of a sweep does not need

    assert plan.search is not None
    sources = drawn_in(plan.sweep)
    seen = seen_in(sweep, below, range(below.places))
    number = plan.levels.index(level)
    decision = exploit(plan.search, sources, seen, number, below.budget)
    results, at, chosen = sweep.results, below.budget, []
    for member in decision.chosen:
        runs = dict(member.runs)
        donors = {} if runs or member.parent is None else seen[member.parent].runs
        for seed, donor in donors.items():
            refuse_other_code(results.run(donor))
            child = _child(results.run(donor), at, change_of(sources, member.values))
            runs[seed] = require_own(find_run(child, results), results)
            write_configs({runs[seed]: child}, results)
            fork(results.run(donor), results.run(runs[seed]), at)
        chosen.append(member._replace(runs=runs))
    return decision._replace(chosen=chosen)


def _child(donor: RunDir, at: int, values: Mapping[str, object]) -> Experiment:
    """Returns a donor's experiment with one more change."""
    data = read_config(donor.state.config)
    form, _ = form_in(compose(data), donor)
    data["schedule"] = [*data.get("schedule", []), {"at": at, "set": dict(values)}]
    return compose(data).model_copy(update={"domain": form.domain})
