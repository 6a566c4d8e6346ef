"""One run's results at the budgets of a sweep's rows."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.analysis.score_scale import score_scale_of
from qdsweep.analysis.tables.curves import (
    Curve,
    budget_row,
    curve_metrics,
    is_timed,
    own_seconds,
    qd_auc,
    thin_curve,
)
from qdsweep.files import damaged
from qdsweep.metrics import METRICS, RECORDED, Metric
from qdsweep.records.metrics import COMPILE, SECONDS
from qdsweep.records.plan import Plan, Row
from qdsweep.records.run_dir import RunFiles
from qdsweep.records.summary import read_summary

if TYPE_CHECKING:
    import pandas as pd


def sources(files: RunFiles) -> tuple[Path, ...]:
    """Returns the files that are read of a run; its results change only when they do."""
    return files.summary, files.metrics, files.config


RESULTS = (
    "status",
    *(metric.name for metric in RECORDED),
    "qd_auc",
    "qd_score_fraction",
    *SECONDS,
    COMPILE,
    "wall_seconds",
    "core_seconds",
    "engine",
    "workers",
    "total_evaluations",
    "scale",
)


@dataclass(frozen=True)
class Result:
    """A run's results at one budget.

    Attributes:
        record: `RESULTS`, plain values; only a status, and what is known of the run, where the
            budget is not reached.
        curve: The way there; None where the budget is not reached.
    """

    record: dict[str, Any]
    curve: Curve | None


def read_results(
    files: RunFiles,
    rows: list[Row],
    *,
    partial: bool,
    metrics: tuple[Metric, ...] = METRICS,
) -> list[Result]:
    """Reads a run at the budget of each of its rows; where `partial`, at most as far as it is.

    `metrics`: those of the sweep.

    Raises:
        BadInput: A file of the run is missing or damaged.
    """
    summary = read_summary(files)
    try:
        about = {
            "status": "unfinished",
            "engine": summary["engine"],
            "workers": summary["workers"],
            "total_evaluations": summary["evaluations"],
            "scale": score_scale_of(files.path, summary),
        }
        low, high = summary["archive"].get("objective_range") or (0.0, math.nan)
        width = (high - low) or math.nan
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise damaged(files.summary, error) from error
    table = curve_metrics(files, summary["archive"]["type"], metrics)
    return [_result(table, metrics, row, about, width, partial) for row in rows]


def _result(
    table: "pd.DataFrame",
    metrics: tuple[Metric, ...],
    row: Row,
    about: dict[str, Any],
    width: float,
    partial: bool,
) -> Result:
    position, status = budget_row(table, row), "finished"
    if position is None:
        if not partial or table.empty:
            return Result(about, None)
        position, status = len(table) - 1, "partial"
    state = {m.name: table[m.name].iat[position].item() for m in metrics if m.recorded}
    seconds = {name: float(table[name].iloc[: position + 1].sum()) for name in SECONDS}
    wall = sum(seconds.values()) + float(own_seconds(table)[: position + 1].sum())
    if not is_timed(table):
        wall, seconds = math.nan, dict.fromkeys(SECONDS, math.nan)
    workers = max(int(about["workers"] or 1), 1)
    record = {
        **about,
        "status": status,
        **state,
        "qd_auc": qd_auc(table, position),
        # 1: an archive full of elites with the highest objective that there is.
        "qd_score_fraction": state["norm_qd_score"] / width,
        **seconds,
        COMPILE: float(table[COMPILE].iloc[: position + 1].sum()),  # 0 where nobody knows
        "wall_seconds": wall,
        "core_seconds": wall * workers,
    }
    return Result(record, thin_curve(table, position, metrics, workers))


def column_names(plan: Plan) -> dict[str, str]:
    """Returns the swept names as columns of summary.csv: one that is taken gets `swept_`."""
    taken = {"id", "group", *RESULTS, *(metric.name for metric in plan.own)}
    return {name: f"swept_{name}" if name in taken else name for name in plan.columns}
