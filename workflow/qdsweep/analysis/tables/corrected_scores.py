"""The table of corrected archives: by how much a sweep overestimates its QD scores."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.legend import group_names
from qdsweep.analysis.noise import DELIVERED_TEXT
from qdsweep.analysis.selection import (
    cells_of,
    corrected_per_cell,
    read_tables,
    score_scale_of,
)
from qdsweep.analysis.sheet import Sheet, number_cell, text_cell, write_sheet
from qdsweep.analysis.statistics import MEAN_TEXT, half_width, mean_of, standard_error
from qdsweep.config.sweep import Reevaluate
from qdsweep.elites.corrected_archive import CORRECTED_METRICS, read_hits, read_robustness
from qdsweep.errors import BadInput
from qdsweep.metrics import BY_NAME, DRAWN, RANK
from qdsweep.records.paths import RunDir, SweepDir
from qdsweep.records.plan import read_plan
from qdsweep.records.results import read_summary
from qdsweep.text import common_decimals, listed, mean_and_error, plural

if TYPE_CHECKING:
    import pandas as pd

# Column of tables/corrected.csv -> its heading.
_OWN = [metric for metric in DRAWN if metric.name in CORRECTED_METRICS]
_METRICS: dict[str, str] = {"delivered_qd_score": "QD score, delivered"}
for _one in _OWN:
    _METRICS[_one.column] = _one.heading
    _METRICS[f"corrected_{_one.column}"] = f"{_one.heading}, corrected"
    if _one.name == "qd_score":
        _METRICS["luck_percent"] = "Overestimation (% of reported)"
_METRICS |= {
    "objective_loss": "Objective loss",
    "hit_rate_percent": "Hit rate (%)",
    "hit_rate_median_percent": "Hit rate (%), median of elites",
    "hit_rate_low_percent": "Hit rate (%), 10 % quantile of elites",
}


def write_corrected(sweep_dir: Path, runs_dir: Path) -> None:
    """Writes `tables/corrected.*`: each group's archives as reported, and corrected.

    Raises:
        BadInput: The sweep file has no `reevaluate`, or no run was evaluated again.
    """
    import pandas as pd

    sweep = SweepDir(sweep_dir)
    plan = read_plan(sweep)
    settings = plan.reevaluate
    if settings is None:
        raise BadInput(
            f"{sweep.plan}: the sweep has no corrected archives; give its file the "
            "key reevaluate, such as `reevaluate: {times: 10}`, and run `snakemake`"
        )
    records = []
    for group, rows in plan.groups.items():
        for run in dict.fromkeys(row.run for row in rows):
            folder = RunDir(runs_dir / run)
            if folder.corrected(settings.stem).exists():
                records.append({"group": group, **_record(folder, settings)})
    if not records:
        raise BadInput(
            f"{runs_dir}: no run has a {settings.stem}.json: run `snakemake`, which makes them, or "
            "`qdsweep reevaluate` for one run"
        )
    runs = pd.DataFrame(records)
    data = _by_group(runs)
    tables = read_tables(sweep_dir)
    done = tables.with_results
    further = bool((done["total_evaluations"] > done["evaluations"]).any())
    shown, is_divided = corrected_per_cell(data, cells_of(tables.table))
    score = (RANK if is_divided else RANK.always).label
    best, label = BY_NAME["obj_max"], tables.metric("obj_max").label
    headings = {name: head.replace(RANK.always.label, score) for name, head in _METRICS.items()}
    headings[best.name] = headings[best.name].replace(best.label, label)
    if _is_lucky(runs):  # the luckiest of all evaluations
        headings = {name: head for name, head in headings.items() if best.name not in name}
    note = _note(runs, settings, further)
    note += _convergence(runs, settings, group_names(plan).label)
    sheet = _sheet(group_names(plan).dressed(shown), headings, note)
    write_sheet(sweep.tables, sheet, data)


def _record(folder: RunDir, settings: Reevaluate) -> dict[str, Any]:
    about = read_robustness(folder.path, settings)
    record = {
        "scale": score_scale_of(folder.path, read_summary(folder)),
        "seed_matters": about["seed_matters"],
        "one_seed": about["evaluation_seed"] not in ("iteration", "solution"),
    }
    for prefix, part in (("", "reported"), ("corrected_", "corrected")):
        for name in CORRECTED_METRICS:
            value = about[part][name]
            record[f"{prefix}{name}"] = math.nan if value is None else value
        for metric in (metric for metric in _OWN if metric.percent):
            record[f"{prefix}{metric.column}"] = metric.factor * record[f"{prefix}{metric.name}"]
    reported = record["qd_score"]
    share = 1 - record["corrected_qd_score"] / reported if reported > 0 else math.nan
    if not about["seed_matters"]:
        share *= 0  # only the order of a sum differs
    record["luck_percent"] = 100 * share
    hits = read_hits(folder, settings.stem) / settings.times if about["hit_rate"] else np.empty(0)
    low, median = np.quantile(hits, (0.1, 0.5)) if len(hits) else (math.nan, math.nan)
    half = (about["corrected_half"] or {}).get("qd_score")
    later = {
        "delivered_qd_score": (about["delivered"] or {}).get("qd_score"),
        "delivered_error": about["delivered_error"],
        "half": half,
        "objective_loss": about["objective_loss"],
        "hit_rate_percent": None if about["hit_rate"] is None else 100 * about["hit_rate"],
        "hit_rate_median_percent": 100 * median,
        "hit_rate_low_percent": 100 * low,
    }
    return record | {name: math.nan if value is None else value for name, value in later.items()}


def _is_lucky(runs: "pd.DataFrame") -> bool:
    return bool((runs["seed_matters"] & ~runs["one_seed"]).any())


def _convergence(runs: "pd.DataFrame", settings: Reevaluate, called: Callable[[str], str]) -> str:
    """Returns sentences on scores that more evaluations of each elite would change.

    The corrected score has not converged where its second half of evaluations changes it by more
    than the standard error over seeds. The delivered score has no bias, but noise within a run.
    """
    text = ""
    groups = {str(group): rows for group, rows in runs.groupby("group", sort=False)}
    more = [
        called(group)
        for group, rows in groups.items()
        if abs((rows["corrected_qd_score"] - rows["half"]).mean())
        > standard_error(rows["corrected_qd_score"].to_numpy(float))
    ]
    if more:
        text += (
            " The corrected scores still change with the number of re-evaluations"
            f" ({listed(more, most=3)}; from {settings.times // 2} to {settings.times} by more than"
            f" one standard error). Use times: {4 * settings.times}."
        )
    noisy = [
        called(group)
        for group, rows in groups.items()
        if rows["delivered_error"].mean() > 0.5 * rows["delivered_qd_score"].std()
    ]
    if noisy:
        text += (
            f" The delivered QD score of {listed(noisy, most=3)} has a standard error within runs"
            " of more than half of its standard deviation between seeds. More times lower it."
        )
    return text


def _by_group(runs: "pd.DataFrame") -> "pd.DataFrame":
    import pandas as pd

    records = []
    for group, rows in runs.groupby("group", sort=False):
        record = {"group": group, "scale": rows["scale"].iat[0], "n": len(rows)}
        for name in _METRICS:
            values = rows[name].to_numpy(float)
            record[f"{name}_mean"] = mean_of(values)
            record[f"{name}_se"] = standard_error(values)
        records.append(record)
    return pd.DataFrame(records)


def _sheet(data: "pd.DataFrame", headings: dict[str, str], note: str) -> Sheet:
    shown = {name: head for name, head in headings.items() if data[f"{name}_mean"].notna().any()}
    rows = []
    for row in data.to_dict("records"):
        cells = [text_cell(row["group"]), number_cell(str(row["n"]), row["n"])]
        for name in shown:
            mean, half = row[f"{name}_mean"], half_width(row[f"{name}_se"], row["n"])
            text = mean_and_error(mean, half, _decimals(data, name))
            cells.append(number_cell(text, mean))
        rows.append(cells)
    columns = ["Group", "Seeds", *shown.values()]
    return Sheet("corrected", "Corrected archives", note, columns, 1, rows)


def _decimals(data: "pd.DataFrame", name: str) -> int:
    """Returns the decimals of the metric as reported, also for the corrected one."""
    reported = name.removeprefix("corrected_")
    return common_decimals(data[f"{reported}_mean"], data[f"{reported}_se"])


def _note(runs: "pd.DataFrame", settings: Reevaluate, further: bool) -> str:
    text = (
        f"Every elite of the final archives was evaluated {plural(settings.times, 'time')} again "
        "with fresh evaluation seeds. It was then inserted with its mean objective and measures "
        "into an empty archive: the corrected one (Flageat and Cully 2024). Overestimation: the "
        f"share of the reported QD score that is lost. Delivered: {DELIVERED_TEXT}. Objective "
        "loss: reported minus mean objective. Hit rate: the share of evaluations in the elite's "
        f"own cell. {MEAN_TEXT[0].upper()}{MEAN_TEXT[1:]}, over seeds."
    )
    if runs["one_seed"].any() and runs["seed_matters"].any():
        text += (
            " Where all evaluations had one seed (evaluation_seed: fixed, or a number), it is the"
            " part of the score that depends on that seed."
        )
    if further:
        text += (
            " Runs beyond the budget of this sweep are taken at their ends here. Other tables have"
            " them at the sweep's budget."
        )
    if not runs["seed_matters"].any():
        text += (
            " No evaluation here depends on its seed, so the corrected archives equal the reported "
            "ones."
        )
    return text
