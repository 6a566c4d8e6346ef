"""The table of published values: does a group's mean equal the published one, within a margin?"""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.legend import group_names
from qdsweep.analysis.selection import read_tables
from qdsweep.analysis.sheet import Cell, Sheet, number_cell, text_cell, write_sheet
from qdsweep.analysis.statistics import ALPHA, MIN_SEEDS, deviation_of, mean_error_count
from qdsweep.config.sweep import MOST_SEEDS
from qdsweep.features.published.verdicts import DIFFERS, EQUIVALENT, UNDECIDED, judge
from qdsweep.metrics import Metric
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import Plan, read_plan
from qdsweep.sweep.groups import Groups
from qdsweep.text import mean_and_error, number, p_value, with_interval

if TYPE_CHECKING:
    import pandas as pd

_NAME = "published"

_RULE = (
    "This sweep: mean ± standard error over the seeds of finished runs. Published: mean ± standard"
    " deviation of a trial. Difference: in per cent of the published mean, with Welch's 90 %"
    " interval. Equivalent: that interval is within ± the margin (TOST, Lakens 2017). Differs: not"
    f" equivalent, and p ≤ {ALPHA:.2g} (t test, Holm's correction for the {{}} values of the file)"
    ". Undecided: neither. Deciding seeds: how many would decide it, up to"
    f" {MOST_SEEDS:,}, if means and deviations stayed."
)
_OURS = " A mean without a published deviation has that of this sweep's runs{}."
_OWN_COUNT = ", and without trials their number"


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
    rows, ours, theirs = [], [], []
    for number_, entry in enumerate(plan.published, start=1):
        group = groups.choose(number_, entry.where)
        values = finished.loc[finished["group"] == group, entry.metric].dropna().to_numpy(float)
        mean, error, n = mean_error_count(values)
        spread = float(deviation_of(values)) if n >= MIN_SEEDS else math.nan
        ours.append([mean, spread, n])
        theirs.append([entry.mean, entry.spread, entry.trials or max(n, 1)])
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
                "margin": entry.margin,
                "difference": mean - entry.mean,
                "source": entry.source,
            }
        )
    table = pd.DataFrame(rows).astype({"spread": float, "trials": float})
    margins = (table["margin"] * table["published"].abs()).to_numpy()
    verdicts = judge(np.array(ours), np.array(theirs, float), margins)
    return table.assign(
        low=table["difference"] - verdicts.half,
        high=table["difference"] + verdicts.half,
        p=verdicts.p,
        deciding_seeds=verdicts.seeds,
        verdict=verdicts.words,
    )


def published_sheet(plan: Plan, table: "pd.DataFrame") -> Sheet:
    """Returns the result of `compare_published` for a reader, a row for each published value."""
    metrics = {metric.name: metric for metric in plan.metrics}
    table = group_names(plan).dressed(table)
    sources = list(dict.fromkeys(table["source"]))
    listed = " ".join(f"[{i}] {source}." for i, source in enumerate(sources, start=1))
    decimals = {
        name: max(_decimals(metrics[name].factor * rows[["published", "spread"]].to_numpy()))
        for name, rows in table.groupby("metric")
    }
    return Sheet(
        name=_NAME,
        title="Published values",
        note=f"{_counts(table)} {_RULE.format(len(table))}{_notes(plan, table)} Sources: {listed}",
        columns=[
            *("Group", "Metric", "Verdict", "Source", "This sweep", "Seeds", "Published", "Trials"),
            *("Difference (%)", "Margin (%)", "p", "Deciding seeds"),
        ],
        text=4,
        rows=[
            _row(row, metrics[row["metric"]], sources, decimals[row["metric"]])
            for row in table.to_dict("records")
        ],
    )


def counted(verdicts: "pd.Series") -> str:
    """Returns the number of each verdict."""
    counts = {EQUIVALENT: 0, UNDECIDED: 0, DIFFERS: 0} | verdicts.value_counts().to_dict()
    return ", ".join(f"{word}: {n}" for word, n in counts.items())


def _counts(table: "pd.DataFrame") -> str:
    """Returns sentences with the number of each verdict."""
    text = counted(table["verdict"])
    within = within_margin(table)
    more = f" Equivalent, but significantly different within the margin: {within}."
    return f"{text[0].upper()}{text[1:]}.{more if within else ''}"


def within_margin(table: "pd.DataFrame") -> int:
    """Returns how many equivalent means differ significantly."""
    return int((table["verdict"].eq(EQUIVALENT) & (table["p"] <= ALPHA)).sum())


def _notes(plan: Plan, table: "pd.DataFrame") -> str:
    """Returns sentences on entries that do not give all numbers, or give an old key."""
    text = ""
    if (ours := table["spread"].isna()).any():
        text = _OURS.format(_OWN_COUNT if table.loc[ours, "trials"].isna().any() else "")
    if any(entry.tolerance is not None for entry in plan.published):
        text += " The key tolerance of the file is ignored: margin replaces it."
    return text


def _row(row: dict[str, Any], metric: Metric, sources: list[str], decimals: int) -> list[Cell]:
    mean, error, published, spread = (
        metric.factor * row[name] for name in ("mean", "se", "published", "spread")
    )
    scale = 100 / abs(row["published"]) if row["published"] else math.nan
    difference, low, high = (scale * row[name] for name in ("difference", "low", "high"))
    seeds = row["deciding_seeds"]
    none = row["verdict"] == UNDECIDED and math.isnan(seeds)
    return [
        text_cell(row["group"]),
        text_cell(metric.heading),
        text_cell(row["verdict"]),
        text_cell(f"[{sources.index(row['source']) + 1}]"),
        number_cell(mean_and_error(mean, error, decimals), mean),
        number_cell(str(row["n"]), row["n"]),
        number_cell(mean_and_error(published, spread, decimals), published),
        number_cell(number(row["trials"]), row["trials"]),
        number_cell(with_interval(difference, low, high, 1), difference),
        number_cell(f"{100 * row['margin']:g}", row["margin"]),
        number_cell(p_value(row["p"]), row["p"]),
        number_cell("none" if none else number(seeds), seeds),
    ]


def _decimals(values: np.ndarray) -> list[int]:
    """Returns the decimals that values were given with, in spite of their binary fractions."""
    texts = [np.format_float_positional(round(value, 10), trim="-") for value in values.ravel()]
    return [len(text.partition(".")[2]) for text in texts]
