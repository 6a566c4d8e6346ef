"""The places of a level: each has a candidate, whose run is extended, and then a marker.

The metric of a marker is that of the row of metrics.csv at the budget, because another sweep may
have extended the run further.
"""

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qdsweep.errors import BadInput, QdsweepError
from qdsweep.files import read_json_if_whole
from qdsweep.metrics import Metric
from qdsweep.records.last_stop import read_failure
from qdsweep.records.metrics_file import read_lines, unit_column
from qdsweep.records.paths import RunDir, SweepDir
from qdsweep.records.plan import Plan
from qdsweep.records.search_files import Chosen, Level, marker_path, read_decision, write_sealed
from qdsweep.records.sources import code_of_metrics, measured_otherwise
from qdsweep.records.status import read_attempts


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
