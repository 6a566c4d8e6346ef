"""One run's metrics: read once, cut at a row's budget, thinned to a short curve."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qdsweep.config.archives import ARCHIVES
from qdsweep.config.experiment import BUDGETS
from qdsweep.metrics import METRICS, Metric, curves_of
from qdsweep.records.metrics import OWN_SECONDS, SECONDS, column_of, read_metrics
from qdsweep.records.plan import Row
from qdsweep.records.run_dir import RunFiles

if TYPE_CHECKING:
    import pandas as pd

POINTS = 500


# What curves are drawn over besides evaluations.
PLACES = ("seconds", "steps", "core_seconds")


@dataclass(frozen=True)
class Curve:
    """What a run had reached, over evaluations.

    Attributes:
        evaluations: ``(k,)`` numbers of evaluations, ascending.
        values: Name of a metric that is drawn -> ``(k,)`` its values; and of `PLACES`: seconds
            since the run's start (the sum of all phases, without compilation and pauses between
            attempts), environment steps, NaN where nobody counted them, and core-seconds.
    """

    evaluations: np.ndarray
    values: dict[str, np.ndarray]

    def along(self, name: str) -> np.ndarray:
        """Returns `evaluations`, or one of the values."""
        return self.evaluations if name == "evaluations" else self.values[name]

    def at(self, places: np.ndarray, name: str, over: str = "evaluations") -> np.ndarray:
        """Returns the last value known at each place of `over`, never one reached later."""
        last = np.searchsorted(self.along(over), places, side="right") - 1
        return self.along(name)[last]


def curve_metrics(
    files: RunFiles, archive_type: str, metrics: tuple[Metric, ...] = METRICS
) -> "pd.DataFrame":
    """Reads metrics.csv as tables and curves need it.

    An unstructured archive has no cells, so its coverage and normalised QD score (pyribs
    gives 1 and the mean objective) are left empty; so are metrics that the run has not measured.

    Raises:
        BadInput: metrics.csv is missing or is not such a table.
    """
    import pandas as pd

    table = read_metrics(files.metrics)
    if ARCHIVES[archive_type].cells is None:
        table[[one.name for one in metrics if one.recorded and one.needs_cells]] = np.nan
    for own in (one.name for one in metrics if one.function):
        there = table[own] if own in table else pd.Series(np.nan, table.index)
        table[own] = pd.to_numeric(there, errors="coerce").astype(float)
    return table


def is_timed(metrics: "pd.DataFrame") -> bool:
    """Returns whether anybody knows what the iterations took; of imported runs nobody does."""
    return bool(metrics[list(SECONDS)].notna().any(axis=None))


def own_seconds(metrics: "pd.DataFrame") -> np.ndarray:
    """Returns what the user's metrics took in each iteration, 0 where there are none [s]."""
    if OWN_SECONDS not in metrics:
        return np.zeros(len(metrics))
    return np.nan_to_num(metrics[OWN_SECONDS].to_numpy(float))


def budget_row(metrics: "pd.DataFrame", row: Row) -> int | None:
    """Returns the position of the metrics at a row's budget, None if it is not reached."""
    position = len(metrics) - 1
    for unit in BUDGETS:
        amount = getattr(row, unit)
        if amount is not None:
            position = int(np.searchsorted(metrics[column_of(unit)], amount))
    return position if 0 <= position < len(metrics) else None


def qd_auc(metrics: "pd.DataFrame", position: int) -> float:
    """Returns the area under the QD score over evaluations, divided by the evaluations.

    That is the mean QD score while the budget was spent, in the QD score's own unit. The area is
    a trapezoid's from the empty archive (0 evaluations, QD score 0) to the row at `position`.
    Tjanaka et al. 2022 ("Approximating gradients for differentiable quality diversity in
    reinforcement learning") define "QD score AUC" as the right Riemann sum of lambda solutions
    times the QD score of each iteration; divided by the evaluations, it is larger than ours by
    half the score's mean gain an iteration. pyribs and QDax compute none.
    """
    evaluations, scores = (
        np.concatenate([[0.0], metrics[name].to_numpy(float)[: position + 1]])
        for name in ("evaluations", "qd_score")
    )
    return float(np.trapezoid(scores, evaluations) / evaluations[-1])


def thin_curve(
    metrics: "pd.DataFrame",
    position: int,
    measured: tuple[Metric, ...] = METRICS,
    workers: int = 1,
) -> Curve:
    """Returns at most `POINTS` rows up to `position`, evenly spaced, first and last included."""
    kept = np.unique(np.linspace(0, position, min(position + 1, POINTS)).round().astype(int))
    names = (metric.name for metric in curves_of(measured))
    columns = {name: metrics[name].to_numpy(float)[kept] for name in names}
    seconds = metrics[list(SECONDS)].to_numpy(float).sum(axis=1) + own_seconds(metrics)
    columns["steps"] = metrics["steps"].to_numpy(float)[kept]
    columns["seconds"] = np.cumsum(seconds if is_timed(metrics) else seconds * np.nan)[kept]
    columns["core_seconds"] = workers * columns["seconds"]
    return Curve(metrics["evaluations"].to_numpy()[kept], columns)


def common_grid(curves: list[Curve], over: str = "evaluations") -> np.ndarray:
    """Returns the places of `over` at which to compare `curves`: where all of them have a value.

    They are the first curve's own, so that curves with the same places are not shifted.
    """
    start = max(curve.along(over)[0] for curve in curves)
    end = min(curve.along(over)[-1] for curve in curves)
    own = curves[0].along(over)
    return np.union1d(own[(own >= start) & (own <= end)], [end])
