"""The table of corrected archives: by how much a sweep overestimates its QD scores."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.analysis.legend import group_names
from qdsweep.analysis.selection import (
    cells_of,
    corrected_per_cell,
    read_tables,
    score_scale_of,
)
from qdsweep.analysis.sheet import Sheet, number_cell, text_cell, write_sheet
from qdsweep.analysis.statistics import mean_of, standard_error
from qdsweep.config.sweep import Reevaluate
from qdsweep.elites.corrected_archive import CORRECTED_METRICS
from qdsweep.errors import BadInput
from qdsweep.files import AGAIN
from qdsweep.metrics import BY_NAME, DRAWN, RANK
from qdsweep.records.paths import RunDir, SweepDir
from qdsweep.records.plan import read_plan
from qdsweep.records.results import read_summary
from qdsweep.records.sums import read_checked
from qdsweep.text import common_decimals, mean_and_error, plural

if TYPE_CHECKING:
    import pandas as pd

# Column of tables/corrected.csv -> its heading.
_OWN = [metric for metric in DRAWN if metric.name in CORRECTED_METRICS]
_METRICS: dict[str, str] = {}
for _one in _OWN:
    _METRICS[_one.column] = _one.heading
    _METRICS[f"corrected_{_one.column}"] = f"{_one.heading}, corrected"
    if _one.name == "qd_score":
        _METRICS["luck_percent"] = "Overestimation (%)"


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
                records.append({"group": group, **_record(folder, settings.stem)})
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
    sheet = _sheet(group_names(plan).dressed(shown), headings, _note(runs, settings, further))
    write_sheet(sweep.tables, sheet, data)


def _record(folder: RunDir, stem: str) -> dict[str, Any]:
    about = read_checked(folder.corrected(stem), AGAIN)
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
    return record


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
            mean, error = row[f"{name}_mean"], row[f"{name}_se"]
            text = mean_and_error(mean, error, _decimals(data, name))
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
        "share of the QD score that is lost. Mean ± standard error over seeds."
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
