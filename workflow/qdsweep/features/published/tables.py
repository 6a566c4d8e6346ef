"""The comparison with published results: does a group's mean agree with the published one?

Each published value has one of two rules, which the sweep file fixes before any run:

- `tolerance`: the mean agrees if the difference is at most the tolerance.
- `spread` and `trials`: the mean agrees if Welch's test finds no significant difference, with p
  values that Holm's method corrects for the number of such values in the sweep file (family-wise
  level 5 %). A difference of at most `MARGIN` of the published mean agrees, too.
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.legend import group_names
from qdsweep.analysis.selection import read_tables
from qdsweep.analysis.sheet import Cell, Sheet, number_cell, text_cell, write_sheet
from qdsweep.analysis.statistics import (
    ALPHA,
    MIN_SEEDS,
    holm,
    mean_error_count,
    welch_half_width,
    welch_of_summaries,
)
from qdsweep.metrics import Metric
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import Plan, read_plan
from qdsweep.sweep.groups import Groups
from qdsweep.text import mean_and_error, number, p_value

if TYPE_CHECKING:
    import pandas as pd

_NAME = "published"

MARGIN = 0.005
"""Equivalence margin [fraction of the published mean].

Half a percent is less than a typical run differs from the next one: the median standard deviation
of a trial in pyribs' sphere table is 0.64 % of the QD score and 0.77 % of the coverage. A reader of
such a table calls two means within it the same. Some algorithms have a standard deviation of
0.0005 %, where a test finds differences without any meaning.
"""
_TESTED = ["spread", "trials", "p", "detectable"]

_RULE = (
    "A mean agrees with the published one if the difference is at most the tolerance of the sweep"
    " file."
)
_TEST_RULE = (
    "Published: mean ± standard deviation of a trial. A mean agrees with the published one if"
    f" Welch's test, corrected by Holm's method, has p ≥ {ALPHA:.2g}, or if the difference is at"
    f" most {100 * MARGIN:g} % of the published mean. Detectable: half the width of the confidence"
    " interval of the difference, corrected for the number of tests, but at least that margin."
)


def write_tables(sweep_dir: Path) -> None:
    """Writes tables/published of a sweep that names published values, nothing else."""
    sweep = SweepDir(sweep_dir)
    plan, folder = read_plan(sweep), sweep.tables
    if plan.published:
        table = compare_published(plan, read_tables(sweep_dir).summary)
        write_sheet(folder, published_sheet(plan, table), table)
        return
    for old in folder.glob(f"{_NAME}.*"):  # of an earlier sweep file, which named some
        old.unlink(missing_ok=True)


def compare_published(plan: Plan, summary: "pd.DataFrame") -> "pd.DataFrame":
    """Compares published means with those of the sweep.

    Only runs that have reached their budget count, each once.

    Returns:
        A row for each published value, in the order of the sweep file; coverage is a fraction.

    Raises:
        BadInput: A published value belongs to no group, or to several.
    """
    import pandas as pd

    groups = Groups(plan.columns, [row.typed for row in plan.computed], plan.experiment)
    finished = summary[summary["status"] == "finished"].drop_duplicates(["group", "id"])
    rows = []
    for number_, entry in enumerate(plan.published, start=1):
        group = groups.choose(number_, entry.where)
        values = finished.loc[finished["group"] == group, entry.metric].to_numpy(float)
        mean, error, n = mean_error_count(values)
        rows.append(
            {
                "group": group,
                "metric": entry.metric,
                "mean": mean,
                "se": error,
                "n": n,
                "published": entry.mean,
                "spread": entry.spread,
                "trials": entry.trials,
                "tolerance": entry.tolerance,
                "difference": mean - entry.mean,
                "p": math.nan,
                "detectable": math.nan,
                "verdict": verdict(mean - entry.mean, entry.tolerance or math.nan),
                "source": entry.source,
            }
        )
    table = pd.DataFrame(rows)
    if table["spread"].isna().all():
        return table.drop(columns=_TESTED)
    table = table.astype({"spread": float, "trials": "Int64", "tolerance": float})
    _test(table)
    return table


def _test(table: "pd.DataFrame") -> None:
    """Completes the rows of values with a spread.

    The detectable difference is half the width of the confidence interval of the difference, at
    the level that Holm's method begins with, 5 % divided by the number of tests; at least the
    margin. Values that have no results yet count as tests.
    """
    rows = table[table["spread"].notna()]
    n, se, trials = (rows[name].to_numpy(float) for name in ("n", "se", "trials"))
    published, spread = rows["published"].to_numpy(), rows["spread"].to_numpy()
    ours = np.array([rows["mean"], se * np.sqrt(n), n])
    p = welch_of_summaries(ours.T, np.array([published, spread, trials]).T)
    enough, margin = n >= MIN_SEEDS, MARGIN * np.abs(published)
    corrected = np.where(enough, holm(np.where(enough, p, 1.0)), math.nan)
    halves = [
        welch_half_width(np.square(errors), counts, ALPHA / len(rows))
        for errors, counts in zip(
            np.array([se, spread / np.sqrt(trials)]).T, np.array([n, trials]).T, strict=True
        )
    ]
    table.loc[rows.index, "p"] = corrected
    table.loc[rows.index, "detectable"] = np.where(enough, np.maximum(halves, margin), math.nan)
    table.loc[rows.index, "verdict"] = [
        verdict(*row) for row in zip(rows["difference"], margin, corrected, strict=True)
    ]


def verdict(difference: float, limit: float, p: float = 0.0) -> str:
    """Returns the conclusion: agrees, differs, too few seeds or no results.

    Args:
        difference: Our mean minus the published one; nan without results.
        limit: The tolerance, or the equivalence margin.
        p: The corrected p value; nan with too few seeds, 0 where nothing is tested.
    """
    if math.isnan(difference):
        return "no results"
    if math.isnan(p):
        return "too few seeds"
    # A difference of 0.1 is within a tolerance of 0.1, whatever rounding does to both.
    return "agrees" if p >= ALPHA or abs(difference) <= limit * (1 + 1e-9) else "differs"


def published_sheet(plan: Plan, table: "pd.DataFrame") -> Sheet:
    """Returns the result of `compare` for a reader, a row for each published value."""
    metrics = {metric.name: metric for metric in plan.metrics}
    table = group_names(plan).dressed(table)
    sources = list(dict.fromkeys(table["source"]))
    listed = " ".join(f"[{i}] {source}." for i, source in enumerate(sources, start=1))
    verdicts = table["verdict"].value_counts()
    given = [name for name in ("published", "spread", "tolerance") if name in table]
    decimals = {
        name: max(_decimals(metrics[name].factor * rows[given].to_numpy()))
        for name, rows in table.groupby("metric")
    }
    counts = ", ".join(f"{word}: {n}" for word, n in verdicts.items())
    tested = "spread" in table
    columns = ["This sweep", "Seeds", "Published", "Tolerance", "Difference"]
    rule = _RULE
    if tested:
        columns = ["This sweep", "Seeds", "Published", "Trials", "Difference", "p", "Detectable"]
        rule = _TEST_RULE
        if table["tolerance"].notna().any():
            rule += f" Rows without trials: {_RULE[0].lower()}{_RULE[1:]}"
    return Sheet(
        name=_NAME,
        title="Published values",
        note=(
            f"{counts[0].upper()}{counts[1:]}. This sweep: mean ± standard error over the seeds of"
            f" finished runs. {rule} Sources: {listed}"
        ),
        columns=["Group", "Metric", "Verdict", "Source", *columns],
        text=4,
        rows=[
            _row(row, metrics[row["metric"]], sources, decimals[row["metric"]])
            for row in table.to_dict("records")
        ],
    )


def _row(row: dict[str, Any], metric: Metric, sources: list[str], decimals: int) -> list[Cell]:
    mean, error, published, tolerance, difference = (
        metric.factor * row[name] for name in ("mean", "se", "published", "tolerance", "difference")
    )
    sign = "+" if difference > 0 else ""
    shown = number_cell(sign + number(difference, decimals), difference)
    cells = [
        text_cell(row["group"]),
        text_cell(metric.heading),
        text_cell(row["verdict"]),
        text_cell(f"[{sources.index(row['source']) + 1}]"),
        number_cell(mean_and_error(mean, error, decimals), mean),
        number_cell(str(row["n"]), row["n"]),
    ]
    if "spread" not in row:
        tolerated = number_cell(number(tolerance, decimals), tolerance)
        return [*cells, number_cell(number(published, decimals), published), tolerated, shown]
    trials = math.nan if math.isnan(row["spread"]) else float(row["trials"])
    limit = metric.factor * row["detectable"] if math.isnan(tolerance) else tolerance
    return [
        *cells,
        number_cell(mean_and_error(published, metric.factor * row["spread"], decimals), published),
        number_cell(number(trials), trials),
        shown,
        number_cell(p_value(row["p"]), row["p"]),
        number_cell(number(limit, decimals), limit),
    ]


def _decimals(values: np.ndarray) -> list[int]:
    """Returns the decimals that values were given with, in spite of their binary fractions."""
    texts = [np.format_float_positional(round(value, 10), trim="-") for value in values.ravel()]
    return [len(text.partition(".")[2]) for text in texts]
