"""A table of decisions: which settings the places of a level are given, from markers below it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qdsweep.errors import BadInput
from qdsweep.planning.population import exploited
from qdsweep.planning.proposals import propose_settings
from qdsweep.records.plan import Plan, read_plan
from qdsweep.records.run_dir import RunDir
from qdsweep.records.search import (
    Chosen,
    Decision,
    Level,
    decision_path,
    is_whole,
    read_decision,
    seen_in,
    write_decision,
)
from qdsweep.records.sweep_dir import SweepDir
from qdsweep.strategies.halving import promote


def decide(sweep: SweepDir, name: str, block: int) -> None:
    """Writes a table of decisions, and the experiments of runs that nobody has planned yet.

    Args:
        sweep: The sweep's folder.
        name: The level that it is about.
        block: The table.

    Raises:
        BadInput: A file that it needs is missing or damaged.
    """
    plan = read_plan(sweep)
    level = level_of(plan, name)
    decision = _WAYS[level.kind](sweep, plan, level, block)
    write_decision(sweep, level, block, decision)


def level_of(plan: Plan, name: str) -> Level:
    """Returns a level of a search.

    Raises:
        BadInput: It has none of this name.
    """
    for level in plan.levels:
        if level.name == name:
            return level
    known = ", ".join(level.name for level in plan.levels) or "none"
    raise BadInput(f"the sweep {plan.name} has no level {name!r}; known: {known}")


def given(
    sweep: SweepDir, candidates: Sequence[Mapping[str, Any]], level: Level, place: int
) -> Chosen:
    """Returns what a place was given.

    Args:
        sweep: The sweep's folder.
        candidates: `Plan.candidates`.
        level: The level of the place.
        place: The place.

    Raises:
        BadInput: Its table of decisions is missing or damaged.
    """
    if level.kind == "known":
        number = level.first + place
        one = candidates[number]
        return Chosen(place, number, one["values"], "", runs=one["runs"])
    return read_decision(sweep, level, level.block_of(place)).chosen[place]


def run_of_place(
    sweep: SweepDir, candidates: Sequence[Mapping[str, Any]], level: Level, place: int, seed: str
) -> RunDir | None:
    """Returns the run that a place was given; None where that is not decided yet."""
    if level.kind != "known" and not is_whole(
        decision_path(sweep, level.name, level.block_of(place))
    ):
        return None
    return sweep.results.run(given(sweep, candidates, level, place).runs[seed])


def _promoted(sweep: SweepDir, plan: Plan, level: Level, block: int) -> Decision:
    below = level_of(plan, level.below[0])
    first, last, upto = level.sees(block, below.places)
    before = read_decision(sweep, level, block - 1) if block else Decision([], [])
    return promote(seen_in(sweep, below, range(first, last)), before, upto)


def _asked(sweep: SweepDir, plan: Plan, level: Level, block: int) -> Decision:
    below = [level_of(plan, name) for name in level.below]
    seen = [(one, seen_in(sweep, one, range(one.places))) for one in below]
    return propose_settings(plan, level, seen, sweep.results)


def _exploited(sweep: SweepDir, plan: Plan, level: Level, block: int) -> Decision:
    return exploited(sweep, plan, level, level_of(plan, level.below[0]))


# Kind of a level -> what decides about it.
_WAYS: dict[str, Callable[[SweepDir, Plan, Level, int], Decision]] = {
    "promoted": _promoted,
    "asked": _asked,
    "exploited": _exploited,
}
