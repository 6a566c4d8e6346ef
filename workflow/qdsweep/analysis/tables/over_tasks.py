"""One result over several tasks: aggregate scores, probabilities of improvement, profiles."""

import math
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.selection import TaskScore, task_score
from qdsweep.analysis.sheet import (
    Cell,
    Sheet,
    number_cell,
    remove_sheet,
    text_cell,
    write_sheet,
)
from qdsweep.analysis.statistics import (
    ENOUGH_SEEDS,
    MIN_SEEDS,
    SEEDS_RULE,
    Scores,
    interquartile_mean,
    mean_of,
    performance_profile,
    probability_of_improvement,
)
from qdsweep.analysis.tables.comparisons import SHOWN_GROUPS, runs_of
from qdsweep.files import write_csv
from qdsweep.metrics import RANK, Metric
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import Plan
from qdsweep.sweep.groups import brief_names, group_labels
from qdsweep.text import common_decimals, number, with_interval

if TYPE_CHECKING:
    import pandas as pd

_Label = Callable[[str], str]
SHEETS = ("over_tasks", "improvement")
_TAUS = 101


def scores_by_task(
    plan: Plan, summary: "pd.DataFrame", score_scales: Mapping[str, list[str]]
) -> dict[str, list[Scores]]:
    """Returns the scores of each algorithm: ``(n,)`` in [0, 1] on each task, in the same order.

    A task is a scale: domain, archive and offset. An algorithm is what else was swept, by the
    names that differ within a task. Algorithms without results on some task are left out; there
    are none at all where there are fewer than two tasks.
    """
    runs = runs_of(plan, summary, task_score(plan.rank).column)
    tasks = [[group for group in groups if group in runs] for groups in score_scales.values()]
    tasks = [groups for groups in tasks if groups]
    if len(tasks) < 2:
        return {}
    values = {group: rows[0].values for group, rows in plan.groups.items()}
    names = [
        name
        for name in plan.group_columns
        if any(len({values[group][name] for group in groups}) > 1 for groups in tasks)
    ]
    every = [group for groups in tasks for group in groups]
    brief = brief_names(plan.columns)
    texts = group_labels(names, [values[g] for g in every], plan.experiment, brief)
    labels = dict(zip(every, texts, strict=True))
    by_task = [{labels[group]: runs[group].scores for group in groups} for groups in tasks]
    return {
        label: [task[label] for task in by_task]
        for label in by_task[0]
        if all(label in task for task in by_task)
    }


def write_over_tasks(
    sweep_dir: Path,
    scores: Mapping[str, list[Scores]],
    called: _Label = str,
    rank: Metric = RANK,
) -> None:
    """Writes `tables/over_tasks`, `tables/improvement` and `tables/profiles.csv`.

    Files of an earlier start are removed if there is nothing to write. `called`: algorithm -> its
    label.
    """
    folder = SweepDir(sweep_dir).tables
    for name in (*SHEETS, "profiles"):
        remove_sheet(folder, name)
    if not scores:
        return
    _write_means(folder, task_score(rank), scores, called)
    ranked = sorted(scores, key=lambda label: -interquartile_mean(scores[label]).value)
    best = {label: scores[label] for label in ranked[:SHOWN_GROUPS]}
    _write_profiles(folder, best)
    if len(best) > 1:
        _write_improvement(folder, best, called, left_out=len(best) < len(scores))


def _write_means(
    folder: Path, score: TaskScore, scores: Mapping[str, list[Scores]], called: _Label
) -> None:
    import pandas as pd

    records = [
        {
            "algorithm": label,
            "tasks": len(strata),
            "runs": sum(map(len, strata)),
            "mean": float(np.mean([mean_of(task) for task in strata])),
            **interquartile_mean(strata).columns("iqm"),
        }
        for label, strata in scores.items()
    ]
    data = pd.DataFrame(records)
    # An interval of 95 % is about four standard errors wide.
    decimals = common_decimals(data["mean"], (data["iqm_high"] - data["iqm_low"]) / 4)
    best = data["iqm"].max()
    rows = []
    for row in data.itertuples():
        text = with_interval(row.iqm, row.iqm_low, row.iqm_high, decimals)
        is_best = (
            len(scores) > 1
            and min(map(len, scores[row.algorithm])) >= MIN_SEEDS
            and math.isclose(row.iqm, best, rel_tol=1e-12)
        )
        rows.append(
            [
                text_cell(called(row.algorithm)),
                number_cell(str(row.tasks), row.tasks),
                number_cell(str(row.runs), row.runs),
                number_cell(number(row.mean, decimals), row.mean),
                number_cell(text, row.iqm, bold=is_best),
            ]
        )
    fewest = min(len(task) for strata in scores.values() for task in strata)
    note = (
        f"Scores are {score.text}: 1 is {score.best}. Mean: of the tasks' means. IQM:"
        " interquartile mean of all runs with its pointwise 95 % interval over seeds, tasks being"
        " strata."
    )
    if fewest >= MIN_SEEDS and data["iqm_low"].isna().any():
        note += " It is unknown where the middle half of the runs are equal."
    if any(row[-1].bold for row in rows):
        note += " Bold: the highest IQM."
    if fewest < ENOUGH_SEEDS:
        note += f" {SEEDS_RULE} With fewer, the interval is approximate or unknown."
    columns = ["Algorithm", "Tasks", "Runs", "Mean", "IQM [95 %]"]
    sheet = Sheet("over_tasks", "Results over all tasks", note, columns, 1, rows)
    write_sheet(folder, sheet, data)


def _write_improvement(
    folder: Path, scores: Mapping[str, list[Scores]], called: _Label, *, left_out: bool
) -> None:
    import pandas as pd

    data: list[dict[str, Any]] = []
    rows: list[list[Cell]] = []
    for first, second in combinations(scores, 2):
        improvement = probability_of_improvement(scores[first], scores[second])
        data.append({"algorithm": first, "other": second, **improvement.columns("improvement")})
        value = improvement.value
        text = with_interval(value, improvement.low, improvement.high, decimals=2)
        rows.append([text_cell(called(first)), text_cell(called(second)), number_cell(text, value)])
    note = (
        "Probability that a run of X scores higher than a run of Y on the same task, mean over the"
        " tasks, with its pointwise 95 % interval over seeds. On one task it is Vargha and"
        " Delaney's A. X has the higher interquartile mean."
    )
    if left_out:
        note += f" Shown: the {SHOWN_GROUPS} algorithms with the highest interquartile means."
    columns = ["X", "Y", "P(X > Y) [95 %]"]
    title = "Probability of improvement over all tasks"
    sheet = Sheet("improvement", title, note, columns, 2, rows)
    write_sheet(folder, sheet, pd.DataFrame(data))


def _write_profiles(folder: Path, scores: Mapping[str, list[Scores]]) -> None:
    import pandas as pd

    every = np.concatenate([task for strata in scores.values() for task in strata])
    taus = np.linspace(min(every.min(), 0.0), every.max(), _TAUS)
    tables = []
    for label, strata in scores.items():
        fraction, low, high = performance_profile(strata, taus)
        columns = {"tau": taus, "fraction": fraction, "low": low, "high": high}
        tables.append(pd.DataFrame({"algorithm": label, **columns}))
    write_csv(pd.concat(tables), folder / "profiles.csv")
