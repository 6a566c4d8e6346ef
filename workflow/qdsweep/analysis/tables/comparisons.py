"""The table of the differences between groups."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.labels import Called
from qdsweep.analysis.selection import compared_metric, in_percent
from qdsweep.analysis.tables.pairs import Pairs, Runs, compare, runs_of
from qdsweep.analysis.tables.sheet import Cell, Sheet, number_cell, text_cell, write_sheet
from qdsweep.analysis.tables.statistics import (
    ENOUGH_SEEDS,
    MIN_SEEDS,
    mann_whitney,
    probability_of_improvement,
)
from qdsweep.analysis.text import common_decimals, number, p_value, with_interval
from qdsweep.metrics import Metric
from qdsweep.records.sweep_dir import SweepDir

if TYPE_CHECKING:
    import pandas as pd

# More groups of a scale than these, and the table shows the best ones: all pairs are tested.
SHOWN_GROUPS = 12
_COLUMNS = (
    "Higher mean",
    "Lower mean",
    "n",
    "Difference",
    "P(higher > lower) [95 %]",
    "p (Welch)",
    "p (Holm)",
    "p (Mann-Whitney)",
)


def write_comparisons(
    sweep_dir: Path,
    rank: Metric,
    summary: "pd.DataFrame",
    score_scales: Mapping[str, list[str]],
    called: Called,
) -> None:
    """Writes `tables/comparisons`: the tests between the groups of each scale."""
    import pandas as pd

    records: list[dict[str, Any]] = []
    rows: list[list[Cell]] = []
    left_out = False
    summary = in_percent(summary)
    for scale, name in zip(score_scales, short_names(list(score_scales)), strict=True):
        metric = compared_metric(rank, summary, score_scales[scale])
        of_metric = runs_of(summary, metric.column)
        groups = {group: of_metric[group] for group in score_scales[scale] if group in of_metric}
        pairs = compare(groups, metric.sign)
        left_out |= len(pairs.groups) > SHOWN_GROUPS
        listed = _records(groups, pairs, metric.sign, {"scale": scale, "metric": metric.column})
        start = [text_cell(called.scale(name))] if len(score_scales) > 1 else []
        rows += [[*start, *cells] for cells in _rows(listed, called)]
        records += listed
    columns = [*(["Task"] if len(score_scales) > 1 else []), *_COLUMNS]
    few = any(min(r["n_higher"], r["n_lower"]) < ENOUGH_SEEDS for r in records)
    note = _note(rank, bool(rows), few, left_out)
    text = len(columns) - len(_COLUMNS) + 2
    sheet = Sheet("comparisons", "Differences between groups", note, columns, text, rows)
    write_sheet(SweepDir(sweep_dir).tables, sheet, pd.DataFrame(records, columns=list(_DATA)))


_DATA = (
    "scale", "metric", "higher", "lower", "n_higher", "n_lower", "mean_higher", "mean_lower",
    "difference", "difference_se", "improvement", "improvement_low", "improvement_high",
    "welch_p", "holm_p", "mann_whitney_p",
)  # fmt: skip


def _records(
    groups: Mapping[str, Runs], pairs: Pairs, sign: int, where: dict[str, str]
) -> list[dict[str, Any]]:
    records = []
    tests = (pairs.first, pairs.second, pairs.welch, pairs.holm)
    for i, j, welch_p, holm_p in zip(*tests, strict=True):
        if max(i, j) >= SHOWN_GROUPS:
            continue
        one, other = (pairs.groups[position] for position in (i, j)[::sign])
        higher, lower = groups[one].scores, groups[other].scores
        improvement = probability_of_improvement([higher], [lower])
        variances = [scores.var(ddof=1) / len(scores) for scores in (higher, lower)]
        values = (
            *(one, other, len(higher), len(lower)),
            *(higher.mean(), lower.mean(), higher.mean() - lower.mean(), np.sqrt(sum(variances))),
            *(improvement.value, improvement.low, improvement.high),
            *(welch_p, holm_p, mann_whitney(higher, lower)),
        )
        records.append(where | dict(zip(_DATA[len(where) :], values, strict=True)))
    return records


def _rows(records: list[dict[str, Any]], called: Called) -> list[list[Cell]]:
    differences, errors = ([r[name] for r in records] for name in ("difference", "difference_se"))
    decimals = common_decimals(differences, errors)
    return [_row(record, decimals, called) for record in records]


def _row(record: dict[str, Any], decimals: int, called: Called) -> list[Cell]:
    low, value, high = (record[f"improvement{end}"] for end in ("_low", "", "_high"))
    # With fewer seeds the interval excludes too much, too often.
    if min(record["n_higher"], record["n_lower"]) < ENOUGH_SEEDS:
        low = high = math.nan
    p_values = [record[name] for name in ("welch_p", "holm_p", "mann_whitney_p")]
    equal = math.isclose(record["mean_higher"], record["mean_lower"], rel_tol=1e-12)
    return [
        text_cell(called.label(record["higher"])),
        text_cell(called.label(record["lower"]) + (" (equal)" if equal else "")),
        number_cell(f"{record['n_higher']}, {record['n_lower']}", record["n_higher"]),
        number_cell(number(record["difference"], decimals), record["difference"]),
        number_cell(with_interval(value, low, high, decimals=2), value),
        *(number_cell(p_value(p), p) for p in p_values),
    ]


def _note(rank: Metric, any_rows: bool, few: bool, left_out: bool) -> str:
    if not any_rows:
        return (
            f"Nothing can be tested: that takes two groups of at least {MIN_SEEDS} seeds with runs"
            " of their own and comparable QD scores (one domain, archive and offset)."
        )
    without = f" (of the {rank.always.phrase} where the archive has no cells)"
    beaten = "worse" if rank.smaller else "better"
    text = (
        "Every pair of groups with comparable QD scores, by the difference of the mean"
        f" {rank.phrase}{without if rank.instead else ''}. p: Welch's t test, two-sided;"
        " corrected by Holm's method for all pairs of the domain, archive and offset; the"
        " Mann-Whitney U test, not corrected. P(higher > lower): probability that a run of the one"
        f" is {beaten} than a run of the other, with its 95 % interval."
        f" The unit of replication is the seed; groups of fewer than {MIN_SEEDS} are not tested."
    )
    if few:
        text += f" Intervals are given from {ENOUGH_SEEDS} seeds on."
    if left_out:
        text += (
            f" Shown: the {SHOWN_GROUPS} groups with the {rank.extreme} means; all are corrected"
            " for."
        )
    return text


def short_names(score_scales: list[str]) -> list[str]:
    """Returns score scales in so many of their parts (domain, archive, ...) that all differ."""
    parts = [scale.split("; ") for scale in score_scales]
    for count in range(1, max(map(len, parts), default=1) + 1):
        names = ["; ".join(part[:count]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return score_scales
