"""Tables of decisions: the candidates for the places of a level, from the markers below it.

The module also proposes new candidates from the results of earlier ones, and plans their runs. It
extends the run of a place, and writes a marker of the progress. The metric is that of the row of
metrics.csv at the budget, because another sweep may have extended the run further.
"""

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qdsweep.config.experiment import refuse_idle
from qdsweep.config.model import typed
from qdsweep.errors import BadInput, QdsweepError
from qdsweep.files import read_json_if_whole
from qdsweep.host.machine import apply_baseline, has_avx2
from qdsweep.metrics import Metric
from qdsweep.records.metrics_file import read_lines, unit_column
from qdsweep.records.paths import Results, RunDir, SweepDir
from qdsweep.records.plan import Plan, read_plan
from qdsweep.records.results import write_configs
from qdsweep.records.search_files import (
    Chosen,
    Decision,
    Level,
    marker_path,
    read_decision,
    seen_in,
    write_decision,
    write_sealed,
)
from qdsweep.records.sources import code_of_metrics, finder, measured_otherwise, require_own
from qdsweep.records.status import read_attempts, read_failure
from qdsweep.search.levels import promote
from qdsweep.search.pbt import decide_generation
from qdsweep.search.search_plan import SEED_COLUMN, compose_candidate
from qdsweep.search.tpe import SeenLevels, WrittenRow, asker, for_model, swept_sources
from qdsweep.sweep.drawn import SAMPLE


def propose_candidates(plan: Plan, level: Level, seen: SeenLevels, results: Results) -> Decision:
    """Proposes the candidates of a level, and plans their runs.

    Args:
        plan: The sweep, whose search samples by tpe.
        level: The level.
        seen: The results of the levels before it.
        results: The folder results/.

    Returns:
        The candidates for the model, and the new candidates.

    Raises:
        BadInput: There are too few different candidates.
    """
    assert plan.search is not None
    apply_baseline("avx2" if has_avx2() else "native")  # before numpy is imported
    known = [candidate["values"] for candidate in plan.candidates]
    sources = swept_sources(plan.sweep, known)
    model = for_model(sources, seen)
    reason = f"tpe, from {len(model)} settings" if model else "random: too few settings for a model"
    names, seeds = [source.name for source in sources], [*plan.candidates[0]["runs"]]

    def is_valid(row: WrittenRow) -> bool:
        """Returns whether the values of a row, which are drawn separately, are compatible."""
        try:
            values = dict(zip(names, map(typed, row), strict=True))
            refuse_idle(compose_candidate(plan.base, values, seeds[0]))
        except BadInput:
            return False
        return True

    find = finder(results)
    chosen = []
    for place, proposed in enumerate(asker(sources, plan.search.seed, is_valid)(seen, level)):
        number = level.first + place
        row = {SAMPLE: number, **proposed}
        values = {name: row[name] for name in plan.columns if name != SEED_COLUMN}
        experiments = [compose_candidate(plan.base, values, seed) for seed in seeds]
        runs = [require_own(find(experiment), results) for experiment in experiments]
        write_configs(dict(zip(runs, experiments, strict=True)), results)
        by_seed = dict(zip(seeds, runs, strict=True))
        chosen.append(Chosen(place, number, values, reason, runs=by_seed))
    return Decision(model, chosen)


def decide(sweep: SweepDir, name: str, block: int) -> None:
    """Writes a table of decisions, and the experiments of runs that are not planned yet.

    Args:
        sweep: The sweep's folder.
        name: The level of the decisions.
        block: The number of the table.

    Raises:
        BadInput: A file that it needs is missing or damaged.
    """
    plan = read_plan(sweep)
    level = level_of(plan, name)
    below = [level_of(plan, name) for name in level.below]
    if level.kind == "exploited":
        decision = decide_generation(sweep, plan, level, below[0])
    elif level.kind == "asked":
        seen = [(lower, seen_in(sweep, lower, range(lower.places))) for lower in below]
        decision = propose_candidates(plan, level, seen, sweep.results)
    else:
        first, last, upto = level.sees(block, below[0].places)
        before = read_decision(sweep, level, block - 1) if block else Decision([], [])
        decision = promote(seen_in(sweep, below[0], range(first, last)), before, upto)
    write_decision(sweep, level, block, decision)


def level_of(plan: Plan, name: str) -> Level:
    """Returns a level of a search.

    Raises:
        BadInput: The search has no level of this name.
    """
    for level in plan.levels:
        if level.name == name:
            return level
    known = ", ".join(level.name for level in plan.levels) or "none"
    raise BadInput(f"the sweep {plan.name} has no level {name!r}; known: {known}")


def chosen_at(
    sweep: SweepDir, candidates: Sequence[Mapping[str, Any]], level: Level, place: int
) -> Chosen:
    """Returns the candidate of a place.

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
        candidate = candidates[number]
        return Chosen(place, number, candidate["values"], "", runs=candidate["runs"])
    return read_decision(sweep, level, level.block_of(place)).chosen[place]


def run_of_place(
    sweep: SweepDir, candidates: Sequence[Mapping[str, Any]], level: Level, place: int, seed: str
) -> RunDir | None:
    """Returns the run of a place; None if it is not decided yet."""
    try:
        return sweep.results.run(chosen_at(sweep, candidates, level, place).runs[seed])
    except BadInput:
        return None


def take_place(
    sweep: SweepDir,
    plan: Plan,
    level: Level,
    place: int,
    seed: str,
    start: Callable[[RunDir], int],
) -> int:
    """Extends a place's run and writes the marker.

    Args:
        sweep: The sweep's folder.
        plan: Its plan.
        level: The level.
        place: The place.
        seed: The swept seed; empty if none is swept.
        start: Extends a run to the level's budget, and returns the exit code.

    Returns:
        The exit code. It is also 0 if the run itself fails twice in the same way. Its candidate
        then ranks last.

    Raises:
        QdsweepError: The run cannot continue, and another start may fix that.
    """
    candidate = chosen_at(sweep, plan.candidates, level, place)
    run = sweep.results.run(candidate.runs[seed])
    failed, score = candidate.failed, None
    if failed is None:
        failed, code = _compute(run, start)
        if code:
            return code
        if failed is not None:  # on the terminal, as the rule redirects only errors
            cause = read_failure(run.state)["message"]
            text = f"{run.name} failed, so its setting ranks last: {cause} ({run.state.log})"
            print(f"qdsweep: {text}", flush=True)
    if failed is None:
        score = score_at(run, plan.decider, plan.unit, level.budget)
        failed = f"it has no {plan.decider.name}" if score is None else None
    marker = {
        "level": level.name,
        "place": place,
        "setting": candidate.setting,
        "values": dict(candidate.values),
        "seed": seed,
        "run": run.name,
        "runs": dict(candidate.runs),
        "unit": plan.unit,
        "budget": level.budget,
        "metric": plan.decider.name,
        "score": score,
        "failed": failed,
        **({"sources": dict(plan.sources)} if plan.decider.function else {}),
    }
    write_sealed(marker_path(sweep, level.name, place, seed), marker)
    return 0


def _compute(run: RunDir, start: Callable[[RunDir], int]) -> tuple[str | None, int]:
    """Returns the exit code, and the reason if a run fails whenever it is computed."""
    before: tuple[object, str] | None = None
    while True:
        try:
            return None, start(run)
        except QdsweepError as error:
            failure = read_failure(run.state)
            if not failure or isinstance(error, BadInput):
                raise
            latest = failure.get("iteration"), _reason(failure)
            if latest == before:
                return latest[1], 0
            before = latest


def _reason(failure: Mapping[str, Any]) -> str:
    """Returns why a run failed, in a text that is equal for every engine.

    The text names no row: if several rows of a batch fail, the first report depends on the workers.
    """
    trace = str(failure.get("traceback") or "").strip()
    error = trace.splitlines()[-1].split(":")[0] if trace else failure["exception"]
    return f"{error} in iteration {int(failure['iteration']) + 1}"


def score_at(run: RunDir, metric: Metric, unit: str, budget: int) -> float | None:
    """Returns a metric at a budget, with the sign by which larger is better; None if undefined.

    Raises:
        BadInput: metrics.csv is missing or damaged, or ends before the budget; or other code than
            the current one measured the value.
    """
    column = unit_column(unit)
    about = read_json_if_whole(run.state.summary).get("archive", {})
    if metric.needs_cells and about.get("cells", 0) is None:  # pyribs has the mean objective here
        metric = metric.always
    for row in csv.DictReader(read_lines(run.state.metrics)):
        if int(row[column]) >= budget:
            text = row.get(metric.name) or ""
            if metric.function and text:
                _require_current(run, metric, int(row["iteration"]))
            value = float(text) if text else math.nan
            return metric.sign * value if math.isfinite(value) else None
    raise BadInput(
        f"{run.state.metrics} ends before {budget} {unit}. Remove {run.path}, and start again"
    )


def _require_current(run: RunDir, metric: Metric, iteration: int) -> None:
    """Refuses a value of a user's metric that other code than the current one measured."""
    code = code_of_metrics({metric.name: metric.function})[metric.name]
    attempts = read_attempts(run.state.status)
    if measured_otherwise(attempts, metric.name, code, iteration)[-1]:
        raise BadInput(
            f"{run.state.metrics}: other code than the current {metric.function} measured"
            f" {metric.name}, so the search cannot rank by it. Restore that code, or remove"
            f" {run.path}, and start again"
        )
