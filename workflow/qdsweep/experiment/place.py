"""A place of a search: the run that it was given is lengthened, and its marker says how far it got.

Its metric is read from the row of metrics.csv at the budget, never from where the run stands now:
another sweep may have taken it further.
"""

import csv
import math
from collections.abc import Callable, Mapping
from typing import Any

from qdsweep.errors import BadInput, QdsweepError
from qdsweep.files import read_json_if_whole
from qdsweep.metrics import Metric
from qdsweep.planning.decision import given, level_of
from qdsweep.records.ending import read_failure
from qdsweep.records.metrics import column_of, read_lines
from qdsweep.records.plan import Plan
from qdsweep.records.run_dir import RunDir
from qdsweep.records.search import marker_path, write_sealed
from qdsweep.records.sweep_dir import SweepDir


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
