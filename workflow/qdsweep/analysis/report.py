"""The page of a sweep: one self-contained HTML file, of nothing but its tables and figures."""

import base64
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.analysis.aggregate import METRICS, column_names, format_metric
from qdsweep.analysis.files import read_json, require
from qdsweep.analysis.partial import results_of
from qdsweep.analysis.plan import Plan, read_plan
from qdsweep.analysis.selection import Tables, read_tables
from qdsweep.analysis.text import number, plural
from qdsweep.config.files import read_yaml
from qdsweep.files import write_text

if TYPE_CHECKING:
    import pandas as pd

_FIGURES = {"overview": "Overview", "learning_curves": "Learning curves", "heatmaps": "Archives"}
_RUN_COLUMNS = {
    "norm_qd_score": "Normalised QD score",
    "coverage": "Coverage (%)",
    "obj_max": "Best objective",
    "evaluations": "Evaluations",
    "core_seconds": "Core-seconds",
}


def report(sweep_dir: Path, runs_dir: Path) -> None:
    """Writes `report.html` of a sweep.

    Args:
        sweep_dir: `results/sweeps/NAME`, with the tables and figures of the earlier stages.
        runs_dir: `results/runs`.

    Raises:
        BadInput: An earlier stage has not written its files.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    plan = read_plan(sweep_dir)
    tables = read_tables(sweep_dir)
    captions = read_json(sweep_dir / "plots" / "captions.json", "Run `qdsweep plot` first.")
    environment = Environment(
        loader=PackageLoader("qdsweep.analysis"), autoescape=True, undefined=StrictUndefined
    )
    page = environment.get_template("report.html").render(
        plan=plan,
        summary=summary_text(plan, tables),
        groups=group_table(plan, tables.table),
        runs=run_table(plan, tables.summary, sweep_dir / "plots" / "archives"),
        figures=[
            (title, _picture(sweep_dir / "plots" / f"{name}.svg"), shown_caption(name, captions))
            for name, title in _FIGURES.items()
        ],
        settings=settings(tables, runs_dir),
    )
    write_text(sweep_dir / "report.html", page)


def shown_caption(name: str, captions: dict[str, str]) -> str:
    """A figure's caption, unless the figure has it inside."""
    return "" if name == "overview" else captions[name]


def summary_text(plan: Plan, tables: Tables) -> str:
    """What was swept and what came out, in words."""
    done = tables.with_results.drop_duplicates("id")
    text = (
        f"{plural(len({row.run for row in plan.rows}), 'run')} of {plan.experiment} in "
        f"{plural(len(plan.groups), 'group')}, {number(done['evaluations'].sum())} evaluations, "
        f"{done['core_seconds'].sum() / 3600:.2f} core-hours."
    )
    partial = int((tables.summary["status"] == "partial").sum())
    if partial:
        text += f" {plural(partial, 'row')} of unfinished runs, taken at where they are."
    missing = len(tables.summary) - len(tables.with_results)
    if missing:
        text += f" {plural(missing, 'row')} without results: the tables leave them out."
    for groups in tables.scales.values():
        (best,) = tables.best(groups, 1)
        row = tables.table.set_index("group").loc[best]
        value, error, n = (row[f"qd_score_{part}"] for part in ("mean", "se", "n"))
        spread = f" ± {number(error)}" if math.isfinite(error) else ""
        text += (
            f" {best} has the highest mean QD score, {number(value)}{spread}"
            f" over {plural(int(n), 'seed')}."
        )
    top = done.loc[done["obj_max"].idxmax()]
    text += f" The best objective of all runs is {number(top['obj_max'], 2)} ({top['group']})."
    return text


def group_table(plan: Plan, table: "pd.DataFrame") -> dict[str, Any]:
    """The table of the groups: mean and standard error; cells are (text, sort key)."""
    names = column_names(plan)
    swept = {name: names[name] for name in plan.group_columns} or {"group": "group"}
    shown = {metric: head for metric, head in METRICS.items() if table[f"{metric}_n"].any()}
    table = table.reset_index(drop=True)
    texts = {metric: format_metric(table, metric) for metric in shown}
    rows = [
        [(str(row[column]), str(row[column])) for column in swept.values()]
        + [(str(row["runs"]), row["runs"])]
        + [(texts[metric][position], _key(row[f"{metric}_mean"])) for metric in shown]
        for position, row in enumerate(table.to_dict("records"))
    ]
    return {"columns": [*swept, "n", *shown.values()], "text": len(swept), "rows": rows}


def run_table(plan: Plan, summary: "pd.DataFrame", archives: Path) -> dict[str, Any]:
    """The table of the runs, each with a thumbnail of its archive."""
    names = column_names(plan)
    rows = []
    for row in summary.to_dict("records"):
        values = {name: row[name] * (100 if name == "coverage" else 1) for name in _RUN_COLUMNS}
        picture = archives / f"{row['id']}.png"
        rows.append(
            {
                "picture": _thumbnail(picture) if picture.exists() else None,
                "id": row["id"],
                "cells": [(str(row[name]), str(row[name])) for name in names.values()]
                + [(row["status"], row["status"])]
                + [(number(value, _decimals(name)), _key(value)) for name, value in values.items()],
            }
        )
    return {
        "columns": [*plan.columns, "status", *_RUN_COLUMNS.values()],
        "text": len(plan.columns) + 1,
        "rows": rows,
    }


def settings(tables: Tables, runs_dir: Path) -> list[tuple[str, str, str]]:
    """The resolved experiment and the versions of one run of each group, as text."""
    found = []
    for group in tables.position:
        run_dir = results_of(runs_dir / str(tables.median_run(group)["id"]))
        config = read_yaml(require(run_dir / "config.yaml", "Run `snakemake` again."))
        versions = read_json(run_dir / "summary.json", "Run `snakemake` again.")["versions"]
        listed = ", ".join(f"{name} {version}" for name, version in versions.items())
        found.append((group, json.dumps(config, indent=1), listed))
    return found


def _decimals(name: str) -> int:
    return 0 if name == "evaluations" else 2


def _key(value: float) -> float | str:
    """What a column is sorted by; a value that is missing comes last."""
    return value if math.isfinite(value) else ""


def _picture(path: Path) -> str:
    """A figure as a data URL: in the page, and in nothing but the page."""
    require(path, "Run `qdsweep plot` first.")
    kind = {".svg": "svg+xml", ".png": "png", ".jpg": "jpeg"}[path.suffix]
    return f"data:image/{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def _thumbnail(path: Path) -> str:
    """A small picture of an archive: a page of hundreds of runs stays light."""
    import io

    from PIL import Image

    with Image.open(path) as image:
        image = image.convert("RGB")
        image.thumbnail((250, 200))
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=80)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
