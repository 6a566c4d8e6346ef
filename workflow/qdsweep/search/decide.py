"""A table of decisions: which settings the places of a level are given, from markers below it.

New settings of a search, from what was seen of earlier ones; their runs are planned at once.

A place of a search: the run that it was given is lengthened, and its marker says how far it got.

Its metric is read from the row of metrics.csv at the budget, never from where the run stands now:
another sweep may have taken it further.
"""

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qdsweep.config.base import typed
from qdsweep.errors import BadInput, QdsweepError
from qdsweep.files import read_json_if_whole
from qdsweep.host.machine import apply_baseline, has_avx2
from qdsweep.metrics import Metric
from qdsweep.records.metrics import column_of, read_lines
from qdsweep.records.paths import Results, RunDir, SweepDir
from qdsweep.records.plan import Plan, read_plan
from qdsweep.records.results import write_configs
from qdsweep.records.search import (
    Chosen,
    Decision,
    Level,
    decision_path,
    is_whole,
    marker_path,
    read_decision,
    seen_in,
    write_decision,
    write_sealed,
)
from qdsweep.records.sources import finder
from qdsweep.records.status import read_failure
from qdsweep.search.levels import promote
from qdsweep.search.pbt import exploited
from qdsweep.search.places import SEED, compose_setting
from qdsweep.search.tpe import Looks, Row, asker, swept_sources, to_tell
from qdsweep.sweep.drawn import SAMPLE


def propose_settings(plan: Plan, level: Level, seen: Looks, results: Results) -> Decision:
    """Asks for the settings of a level, and plans their runs.

    Args:
        plan: The sweep, whose search samples by tpe.
        level: The level.
        seen: What was seen of the levels before it.
        results: The folder results/.

    Returns:
        What the model was told, and the new settings.

    Raises:
        BadInput: There are not so many different settings.
    """
    assert plan.search is not None
    apply_baseline("avx2" if has_avx2() else "native")  # before numpy is imported
    settings = [one["values"] for one in plan.candidates]
    sources = swept_sources(plan.sweep, settings, results.path.parent)
    told = to_tell(sources, seen)
    reason = f"tpe, from {len(told)} settings" if told else "random: too few settings for a model"
    names, seeds = [source.name for source in sources], [*plan.candidates[0]["runs"]]

    def can_be(row: Row) -> bool:
        """Values that may each be drawn need not go together."""
        try:
            values = dict(zip(names, map(typed, row), strict=True))
            compose_setting(plan.base, values, seeds[0])
        except BadInput:
            return False
        return True

    chosen = []
    for place, proposed in enumerate(asker(sources, plan.search.seed, can_be)(seen, level)):
        number = level.first + place
        found = {SAMPLE: number, **proposed}
        values = {name: found[name] for name in plan.columns if name != SEED}
        runs = plan_setting(plan, values, results)
        chosen.append(Chosen(place, number, values, reason, runs=runs))
    return Decision(told, chosen)


def plan_setting(plan: Plan, values: Mapping[str, Any], results: Results) -> dict[str, str]:
    """Writes the experiments of a setting that was chosen on the way, one for each swept seed.

    Returns:
        Swept seed -> run.

    Raises:
        BadInput: There is no such experiment.
    """
    find = finder(results)
    runs = {}
    for seed in plan.candidates[0]["runs"]:
        experiment = compose_setting(plan.base, values, seed)
        runs[seed] = find(experiment)
        write_configs({runs[seed]: experiment}, results)
    return runs


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


def take_place(
    sweep: SweepDir, plan: Plan, name: str, place: int, seed: str, start: Callable[[RunDir], int]
) -> int:
    """Lengthens a place's run and writes the marker.

    Args:
        sweep: The sweep's folder.
        plan: Its plan.
        name: The level.
        place: The place.
        seed: The swept seed; empty where none is swept.
        start: Lengthens a run to the level's budget, and returns the exit code.

    Returns:
        The exit code; 0 also where the run fails by a fault of its own, twice alike: its setting
        ranks last.

    Raises:
        QdsweepError: The run cannot go on, and another start may mend that.
    """
    level = level_of(plan, name)
    one = given(sweep, plan.candidates, level, place)
    run = sweep.results.run(one.runs[seed])
    failed, score = one.failed, None
    if failed is None:
        failed, code = _compute(run, start)
        if code:
            return code
    if failed is None:
        score = score_at(run, plan.decider, plan.unit, level.budget)
        failed = f"it has no {plan.decider.name}" if score is None else None
    marker = {
        "level": name,
        "place": place,
        "setting": one.setting,
        "values": dict(one.values),
        "seed": seed,
        "run": run.name,
        "runs": dict(one.runs),
        "unit": plan.unit,
        "budget": level.budget,
        "metric": plan.decider.name,
        "score": score,
        "failed": failed,
    }
    write_sealed(marker_path(sweep, name, place, seed), marker)
    return 0


def _compute(run: RunDir, start: Callable[[RunDir], int]) -> tuple[str | None, int]:
    """Returns why a run fails whenever it is computed, if it does, and the exit code."""
    before: tuple[object, str] | None = None
    while True:
        try:
            return None, start(run)
        except QdsweepError as error:
            failure = read_failure(run.state)
            if not failure or isinstance(error, BadInput):
                raise
            now = failure.get("iteration"), _reason(failure)
            if now == before:
                return now[1], 0
            before = now


def _reason(failure: Mapping[str, Any]) -> str:
    """Returns why a run failed in words that every engine says alike; its log has the others.

    Of several rows of a batch that fail, it depends on the workers which one is met first.
    """
    trace = str(failure.get("traceback") or "").strip()
    error = trace.splitlines()[-1].split(":")[0] if trace else failure["exception"]
    return f"{error} in iteration {int(failure['iteration']) + 1}"


def score_at(run: RunDir, metric: Metric, unit: str, budget: int) -> float | None:
    """Returns a metric after a budget, larger is better; None where it has no value there.

    Raises:
        BadInput: metrics.csv is missing or damaged, or ends before.
    """
    column = column_of(unit)
    about = read_json_if_whole(run.state.summary).get("archive", {})
    if metric.needs_cells and about.get("cells", 0) is None:  # pyribs gives the mean objective
        metric = metric.always
    for row in csv.DictReader(read_lines(run.state.metrics)):
        if int(row[column]) >= budget:
            text = row.get(metric.name) or ""
            value = float(text) if text else math.nan
            return metric.sign * value if math.isfinite(value) else None
    raise BadInput(
        f"{run.state.metrics} ends before {budget} {unit}: remove {run.path}, and start again"
    )
