"""One run's results at the budgets of a sweep's rows: its metrics, cut there and thinned."""

import contextlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.noise import COLUMN as NOISE
from qdsweep.analysis.noise import noise_of
from qdsweep.analysis.selection import score_scale_of
from qdsweep.analysis.statistics import scaled
from qdsweep.config.archive_kinds import ARCHIVES
from qdsweep.config.experiment import BUDGETS
from qdsweep.config.sweep import Reevaluate
from qdsweep.errors import BadInput
from qdsweep.files import damaged
from qdsweep.metrics import (
    COMPILE,
    DELIVERED_FRACTION,
    METRICS,
    NORM_DELIVERED,
    NORM_QD_SCORE,
    OF_REEVALUATION,
    OTHER_CODE,
    OWN_SECONDS,
    PLACES,
    RESULTS,
    SECONDS,
    Metric,
    curves_of,
)
from qdsweep.records.dependencies import ACCEPTED
from qdsweep.records.index import Index, signatures
from qdsweep.records.metrics_file import read_metrics, unit_column
from qdsweep.records.paths import RunDir, RunFiles, SweepDir
from qdsweep.records.plan import PlannedRow
from qdsweep.records.results import read_summary
from qdsweep.records.sources import Measured, code_of_metrics, measured_otherwise
from qdsweep.records.status import require_fingerprint
from qdsweep.runs.load import Run

if TYPE_CHECKING:
    import pandas as pd


POINTS = 500

# Name of a column of metrics.csv -> ``(n,)`` its values.
Columns = dict[str, np.ndarray]
# Name of a user's metric -> its current code; those whose file is gone are left out.
Codes = dict[str, Measured]


@dataclass(frozen=True)
class Curve:
    """What a run had reached, over evaluations.

    Attributes:
        evaluations: ``(k,)`` numbers of evaluations, ascending.
        values: Name of a metric with a curve, or one of `PLACES` -> ``(k,)`` its values. Seconds
            are those since the run's start: the sum of all phases, without compilation and pauses
            between attempts. Environment steps are NaN where they were not counted.
    """

    evaluations: np.ndarray
    values: dict[str, np.ndarray]

    def along(self, name: str) -> np.ndarray:
        """Returns `evaluations`, or one of the values."""
        return self.evaluations if name == "evaluations" else self.values[name]

    def at(self, places: np.ndarray, over: str, names: Iterable[str]) -> dict[str, np.ndarray]:
        """Returns the last values known at each place of `over`, never any reached later."""
        last = np.searchsorted(self.along(over), places, side="right") - 1
        return {name: self.along(name)[last] for name in names}


def current_code(metrics: Iterable[Metric]) -> Codes:
    """Returns the current code of the user's metrics among these."""
    codes: Codes = {}
    for metric in metrics:
        if metric.function:
            with contextlib.suppress(BadInput):
                codes |= code_of_metrics({metric.name: metric.function})
    return codes


def curve_metrics(
    files: RunFiles, archive_type: str, metrics: tuple[Metric, ...] = METRICS
) -> Columns:
    """Reads metrics.csv as tables and curves need it.

    An unstructured archive has no cells, so its coverage and QD score per cell (pyribs gives 1 and
    the mean objective) are left empty. Metrics that were not measured are empty too.

    Raises:
        BadInput: metrics.csv is missing or is not such a table.
    """
    table = read_metrics(files.metrics)
    # Plain arrays: in a sweep of 100,000 runs, most of the time was that of pandas' indexing.
    columns = {name: column.to_numpy() for name, column in table.items()}
    empty = np.full(len(table), np.nan)
    if ARCHIVES[archive_type].cells is None:
        columns |= {m.name: empty for m in metrics if m.recorded and m.needs_cells}
    for own in (metric.name for metric in metrics if metric.function):
        columns[own] = _numbers(table[own]) if own in table else empty
    return columns


def clear_other_code(
    run: Run, table: Columns, metrics: Iterable[Metric], codes: Codes
) -> dict[str, np.ndarray]:
    """Empties the cells of the user's metrics that other code than the current one measured.

    The last one is measured again where the archive suffices.

    Args:
        run: The run.
        table: Its metrics, of `curve_metrics`, which are changed.
        metrics: Those of the sweep.
        codes: Their current code.

    Returns:
        Name -> ``(n,)`` whether other code measured its cell, of the metrics with such cells.
    """
    cleared: dict[str, np.ndarray] = {}
    for metric in (metric for metric in metrics if metric.name in codes):
        values, code = table[metric.name], codes[metric.name]
        attempts = run.summary.get("attempts", ())
        others = np.array(measured_otherwise(attempts, metric.name, code, len(values)), bool)
        others &= ~np.isnan(values)
        if not others.any():
            continue
        cleared[metric.name] = others
        table[metric.name] = np.where(others, np.nan, values)
        if others[-1] and run.summary["iterations"] == table["iteration"][-1]:
            from qdsweep.runs.final_metric import measure_archive

            again = measure_archive(run, metric)
            table[metric.name][-1] = math.nan if again is None else again
    return cleared


def _numbers(column: "pd.Series") -> np.ndarray:
    """Returns a column of the user's metrics as floats; what is not a number is empty."""
    import pandas as pd

    return pd.to_numeric(column, errors="coerce").to_numpy(float)


def is_timed(metrics: Columns) -> bool:
    """Returns whether the time of the iterations is known; it is not for imported runs."""
    return not all(np.isnan(metrics[name]).all() for name in SECONDS)


def own_seconds(metrics: Columns) -> np.ndarray:
    """Returns the time of the user's metrics in each iteration, 0 where there are none [s]."""
    if OWN_SECONDS not in metrics:
        return np.zeros(len(metrics["iteration"]))
    return np.nan_to_num(metrics[OWN_SECONDS].astype(float))


def budget_row(metrics: Columns, row: PlannedRow) -> int | None:
    """Returns the position of the metrics at a row's budget, None if it is not reached."""
    length = len(metrics["iteration"])
    position = length - 1
    for unit in BUDGETS:
        amount = getattr(row, unit)
        if amount is not None:
            position = int(np.searchsorted(metrics[unit_column(unit)], amount))
    return position if 0 <= position < length else None


def qd_auc(metrics: Columns, position: int) -> float:
    """Returns the area under the QD score over evaluations, divided by the evaluations.

    That is the mean QD score while the budget was spent, in the QD score's own unit. The area is
    a trapezoid's from the empty archive (0 evaluations, QD score 0) to the row at `position`.
    Tjanaka et al. 2022 ("Approximating gradients for differentiable quality diversity in
    reinforcement learning") define "QD score AUC" as the right Riemann sum of lambda solutions
    times the QD score of each iteration. Divided by the evaluations, it is larger than ours by
    half the score's mean gain per iteration. pyribs and QDax have no such metric.
    """
    evaluations, scores = (
        np.concatenate([[0.0], metrics[name][: position + 1]])
        for name in ("evaluations", "qd_score")
    )
    scores, exponent = scaled(scores)
    return float(np.ldexp(np.trapezoid(scores, evaluations) / evaluations[-1], exponent))


def thin_curve(
    metrics: Columns,
    position: int,
    measured: tuple[Metric, ...] = METRICS,
    workers: int = 1,
) -> Curve:
    """Returns at most `POINTS` rows up to `position`, evenly spaced, first and last included."""
    places = np.unique(np.linspace(0, position, min(position + 1, POINTS)).round().astype(int))
    names = (metric.name for metric in curves_of(measured))
    columns = {name: metrics[name][places].astype(float, copy=False) for name in (*names, "steps")}
    seconds = sum(metrics[name] for name in SECONDS) + own_seconds(metrics)
    columns["seconds"] = np.cumsum(seconds if is_timed(metrics) else seconds * np.nan)[places]
    columns["core_seconds"] = workers * columns["seconds"]
    return Curve(metrics["evaluations"][places], columns)


def common_grid(curves: list[Curve], over: str = "evaluations") -> np.ndarray:
    """Returns the places of `over` at which to compare `curves`: where all of them have a value.

    They are the first curve's own, so that curves with the same places are not shifted.
    """
    start = max(curve.along(over)[0] for curve in curves)
    end = min(curve.along(over)[-1] for curve in curves)
    own = curves[0].along(over)
    return np.union1d(own[(own >= start) & (own <= end)], [end])


def sources(files: RunFiles, again: Reevaluate | None) -> tuple[Path, ...]:
    """Returns the files that are read of a run; its results change only when they do."""
    run = RunDir(files.path)
    further = [run.corrected(again.stem)] if again else []
    return files.summary, files.metrics, files.config, run.state.noise, *further


@dataclass(frozen=True)
class Result:
    """A run's results at one budget.

    Attributes:
        record: `RESULTS`, and `OTHER_CODE` and `ACCEPTED` where they apply, plain values; only a
            status, and what is known of the run, where the budget is not reached.
        curve: The way there; None where the budget is not reached.
    """

    record: dict[str, Any]
    curve: Curve | None


def read_results(
    files: RunFiles,
    rows: list[PlannedRow],
    *,
    partial: bool,
    metrics: tuple[Metric, ...] = METRICS,
    codes: Codes | None = None,
    again: Reevaluate | None = None,
) -> list[Result]:
    """Reads a run at the budget of each of its rows; where `partial`, at most as far as it is.

    Args:
        files: The run.
        rows: The rows.
        partial: Whether a run may be unfinished.
        metrics: Those of the sweep.
        codes: The code of the user's metrics whose values count; None: the current one.
        again: The key `reevaluate` of the sweep.

    Raises:
        BadInput: A file of the run is missing or damaged, or of another experiment.
    """
    summary = read_summary(files)
    require_fingerprint(files.path, str(summary.get("fingerprint", "")), rows[0].fingerprint)
    try:
        about = {
            "status": "unfinished",
            "engine": summary["engine"],
            "workers": summary["workers"],
            "total_evaluations": summary["evaluations"],
            # Of the final archive, whatever the row's budget is. Earlier releases did not count.
            "elites_below_range": summary.get("objectives_outside", {}).get("below"),
            "scale": score_scale_of(files.path, summary),
            NOISE: noise_of(files, summary),
        }
        if summary.get(ACCEPTED):
            about[ACCEPTED] = True
        low, high = summary["archive"].get("objective_range") or (0.0, math.nan)
        width = high - low
        width = width if math.isfinite(width) and width else math.nan
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise damaged(files.summary, error) from error
    table = curve_metrics(files, summary["archive"]["type"], metrics)
    codes = current_code(metrics) if codes is None else codes
    others = clear_other_code(Run(files.path), table, metrics, codes)
    results = [_result(table, metrics, others, row, about, width, partial) for row in rows]
    delivered = {} if again is None else _evaluated_again(files.path, again, width)
    for result in results:  # elites were evaluated again at the end of the run only
        if delivered and result.curve and result.record["iteration"] == delivered["iteration"]:
            result.record.update({name: delivered[name] for name in OF_REEVALUATION})
    return results


def _evaluated_again(run: Path, settings: Reevaluate, width: float) -> dict[str, Any]:
    """Returns `OF_REEVALUATION` of a run and its `iteration`; nothing where there is no file.

    Args:
        run: Its folder.
        settings: The key `reevaluate` of the sweep.
        width: The width of the objective range.
    """
    if not RunDir(run).corrected(settings.stem).exists():
        return {}
    from qdsweep.elites.corrected_archive import read_robustness

    about = read_robustness(run, settings)
    values = {name: about[name] for name in ("objective_loss", "hit_rate")}
    for prefix in ("delivered", "corrected"):
        scores = about[prefix] or {}
        values[f"{prefix}_qd_score"] = scores.get("qd_score")
        values[f"norm_{prefix}_qd_score"] = scores.get(NORM_QD_SCORE)
    numbers = {name: math.nan if value is None else value for name, value in values.items()}
    fraction = numbers[NORM_DELIVERED] / width
    return {**numbers, DELIVERED_FRACTION: fraction, "iteration": about["iterations"]}


def _result(
    table: Columns,
    metrics: tuple[Metric, ...],
    others: dict[str, np.ndarray],
    row: PlannedRow,
    about: dict[str, Any],
    width: float,
    partial: bool,
) -> Result:
    position, status = budget_row(table, row), "finished"
    if position is None:
        position, status = len(table["iteration"]) - 1, "partial"
        if not partial or position < 0:
            return Result(about, None)
    state = {m.name: table[m.name][position].item() for m in metrics if m.recorded}
    *seconds_of, compiled = (
        float(np.nansum(table[name][: position + 1])) for name in (*SECONDS, COMPILE)
    )
    seconds = dict(zip(SECONDS, seconds_of, strict=True))
    wall = sum(seconds.values()) + float(own_seconds(table)[: position + 1].sum())
    if not is_timed(table):
        wall, seconds = math.nan, dict.fromkeys(SECONDS, math.nan)
    workers = max(int(about["workers"] or 1), 1)
    record = {
        **about,
        "status": status,
        **state,
        # An external run may have no curve, only its end.
        "qd_auc": math.nan if row.imported and not position else qd_auc(table, position),
        # 1: an archive full of elites with the highest objective that there is.
        "qd_score_fraction": state[NORM_QD_SCORE] / width,
        **seconds,
        COMPILE: compiled,  # 0 where it is unknown
        "wall_seconds": wall,
        "core_seconds": wall * workers,
    }
    if named := [name for name, of in others.items() if of[: position + 1].any()]:
        record[OTHER_CODE] = " ".join(named)
    return Result(record, thin_curve(table, position, metrics, workers))


def key_of(
    files: RunFiles,
    rows: list[PlannedRow],
    *,
    partial: bool,
    codes: Codes,
    again: Reevaluate | None = None,
) -> list[Any]:
    """Returns what the results of a run depend on: files, budgets, `partial`, code of metrics."""
    budgets = [[row.iterations, row.evaluations, row.steps] for row in rows]
    return [partial, budgets, signatures(*sources(files, again)), *([codes] if codes else [])]


def result_index(sweep: SweepDir, metrics: tuple[Metric, ...]) -> Index[list[Result]]:
    """Returns the index of a sweep's results: those of each run, in the order of its rows."""
    names = [*(metric.name for metric in curves_of(metrics)), *PLACES]

    def dump(result: Result) -> list[Any]:
        curve = result.curve
        return [result.record, curve and [curve.evaluations, *map(curve.along, names)]]

    def load(record: dict[str, Any], arrays: Iterator[np.ndarray]) -> Result:
        evaluations = next(arrays, None)
        if evaluations is None:
            return Result(record, None)
        values = dict(zip(names, arrays, strict=True))
        return Result(record, Curve(evaluations.astype(int), values))

    return Index(
        path=sweep.cache,
        # The number is to be raised when the meaning of an entry changes.
        form=[7, *RESULTS, *(metric.name for metric in metrics), *names],
        dump=lambda results: [dump(result) for result in results],
        load=lambda data, take: [load(record, map(take, sizes or ())) for record, sizes in data],
    )
