"""One run's results at the budgets of a sweep's rows."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.analysis.score_scale import score_scale_of
from qdsweep.analysis.tables.curves import (
    SECONDS,
    STATE,
    Curve,
    budget_row,
    curve_metrics,
    qd_auc,
    thin_curve,
)
from qdsweep.files import damaged
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
    *STATE,
    "qd_auc",
    "qd_score_fraction",
    *SECONDS,
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


def read_results(files: RunFiles, rows: list[Row], *, partial: bool) -> list[Result]:
    """Reads a run at the budget of each of its rows; where `partial`, at most as far as it is.

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
    metrics = curve_metrics(files, summary["archive"]["type"])
    return [_result(metrics, row, about, width, partial) for row in rows]


def _result(
    metrics: "pd.DataFrame", row: Row, about: dict[str, Any], width: float, partial: bool
) -> Result:
    position, status = budget_row(metrics, row), "finished"
    if position is None:
        if not partial or metrics.empty:
            return Result(about, None)
        position, status = len(metrics) - 1, "partial"
    state = {name: metrics[name].iat[position].item() for name in STATE}
    seconds = {name: float(metrics[name].iloc[: position + 1].sum()) for name in SECONDS}
    wall = sum(seconds.values())
    record = {
        **about,
        "status": status,
        **state,
        "qd_auc": qd_auc(metrics, position),
        # 1: an archive full of elites with the highest objective that there is.
        "qd_score_fraction": state["norm_qd_score"] / width,
        **seconds,
        "wall_seconds": wall,
        "core_seconds": wall * max(int(about["workers"] or 1), 1),
    }
    return Result(record, thin_curve(metrics, position))


def column_names(plan: Plan) -> dict[str, str]:
    """Returns the swept names as columns of summary.csv: one that is taken gets `swept_`."""
    taken = {"id", "group", *RESULTS}
    return {name: f"swept_{name}" if name in taken else name for name in plan.columns}
