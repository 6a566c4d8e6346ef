"""The comparison with published results: does a group's mean agree with the published one?"""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.legend import group_names
from qdsweep.analysis.selection import read_tables
from qdsweep.analysis.sheet import Cell, Sheet, number_cell, text_cell, write_sheet
from qdsweep.analysis.statistics import mean_error_count
from qdsweep.metrics import Metric
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import Plan, read_plan
from qdsweep.sweep.groups import Groups
from qdsweep.text import mean_and_error, number

if TYPE_CHECKING:
    import pandas as pd

NAME = "published"


def write_published(sweep_dir: Path) -> None:
    """Writes tables/published of a sweep that names published values, nothing else."""
    sweep = SweepDir(sweep_dir)
    plan, folder = read_plan(sweep), sweep.tables
    if plan.published:
        table = compare(plan, read_tables(sweep_dir).summary)
        metrics = {metric.name: metric for metric in plan.metrics}
        write_sheet(folder, _sheet(group_names(plan).dressed(table), metrics), table)
        return
    for old in folder.glob(f"{NAME}.*"):  # of an earlier sweep file, which named some
        old.unlink(missing_ok=True)


def compare(plan: Plan, summary: "pd.DataFrame") -> "pd.DataFrame":
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
        difference = mean - entry.mean
        rows.append(
            {
                "group": group,
                "metric": entry.metric,
                "mean": mean,
                "se": error,
                "n": n,
                "published": entry.mean,
                "tolerance": entry.tolerance,
                "difference": difference,
                "verdict": verdict(difference, entry.tolerance),
                "source": entry.source,
            }
        )
    return pd.DataFrame(rows)


def verdict(difference: float, tolerance: float) -> str:
    """Returns the conclusion: agrees, differs or no results."""
    if math.isnan(difference):
        return "no results"
    # A difference of 0.1 is within a tolerance of 0.1, whatever rounding does to both.
    return "agrees" if abs(difference) <= tolerance * (1 + 1e-9) else "differs"


def _sheet(table: "pd.DataFrame", metrics: dict[str, Metric]) -> Sheet:
    sources = list(dict.fromkeys(table["source"]))
    listed = " ".join(f"[{i}] {source}." for i, source in enumerate(sources, start=1))
    verdicts = table["verdict"].value_counts()
    decimals = {
        name: max(_decimals(metrics[name].factor * rows[["published", "tolerance"]].to_numpy()))
        for name, rows in table.groupby("metric")
    }
    counts = ", ".join(f"{word}: {n}" for word, n in verdicts.items())
    return Sheet(
        name=NAME,
        title="Published values",
        note=(
            f"{counts[0].upper()}{counts[1:]}. This sweep: mean ± standard error over the seeds of"
            " finished runs. A mean agrees with the published one if the difference is at most the"
            f" tolerance of the sweep file. Sources: {listed}"
        ),
        columns=[
            "Group", "Metric", "Verdict", "Source",
            "This sweep", "Seeds", "Published", "Tolerance", "Difference",
        ],
        text=4,
        rows=[
            _row(row, metrics[row["metric"]], sources, decimals[row["metric"]])
            for row in table.to_dict("records")
        ],
    )  # fmt: skip


def _row(row: dict[str, Any], metric: Metric, sources: list[str], decimals: int) -> list[Cell]:
    mean, error, published, tolerance, difference = (
        metric.factor * row[name] for name in ("mean", "se", "published", "tolerance", "difference")
    )
    sign = "+" if difference > 0 else ""
    shown = number(difference, decimals)
    return [
        text_cell(row["group"]),
        text_cell(metric.heading),
        text_cell(row["verdict"]),
        text_cell(f"[{sources.index(row['source']) + 1}]"),
        number_cell(mean_and_error(mean, error, decimals), mean),
        number_cell(str(row["n"]), row["n"]),
        number_cell(number(published, decimals), published),
        number_cell(number(tolerance, decimals), tolerance),
        number_cell(sign + shown, difference),
    ]


def _decimals(values: np.ndarray) -> list[int]:
    """Returns the decimals that values were given with, in spite of their binary fractions."""
    texts = [np.format_float_positional(round(value, 10), trim="-") for value in values.ravel()]
    return [len(text.partition(".")[2]) for text in texts]
