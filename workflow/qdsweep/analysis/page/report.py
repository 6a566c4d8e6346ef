"""The page of a sweep: one self-contained HTML file, of nothing but its tables and figures."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from qdsweep.analysis.figures.look import read_dressed
from qdsweep.analysis.page.embed import Download, Picture, download, packed, thumbnail
from qdsweep.analysis.page.gallery import figure_sections, films
from qdsweep.analysis.page.interactive import interactive_figures, plotly_source
from qdsweep.analysis.page.methods import methods
from qdsweep.analysis.page.settings import median_runs, settings
from qdsweep.analysis.page.words import core_time, listed
from qdsweep.analysis.plan import Plan, read_plan
from qdsweep.analysis.selection import Tables, read_tables
from qdsweep.analysis.tables.group_table import unequal_budgets
from qdsweep.analysis.tables.sheet import Sheet, number_cell, read_sheet, text_cell
from qdsweep.analysis.text import mean_and_error, number, plural
from qdsweep.files import write_text

if TYPE_CHECKING:
    import pandas as pd

# Tables after the main one, in this order; any other follows by name.
_TABLES = (
    *("published", "confirmed", "comparisons", "over_tasks", "improvement"),
    *("corrected", "timing"),
)
_RUN_COLUMNS = {
    "norm_qd_score": "Normalised QD score",
    "coverage": "Coverage (%)",
    "obj_max": "Best objective",
    "evaluations": "Evaluations",
    "core_seconds": "Core-seconds",
}
MAX_THUMBNAILS = 400


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
    runs = median_runs(tables, runs_dir)
    shown = sheets(sweep_dir)
    dressed_plan, dressed, look = read_dressed(sweep_dir)  # as its figures show it
    with look.style(dressed):
        interactive = interactive_figures(dressed_plan, dressed)
    views = {
        figure.name: [json.loads(view) for view in figure.views.values()] for figure in interactive
    }
    pictures = thumbnails(plan, sweep_dir / "plots" / "archives")
    environment = Environment(
        loader=PackageLoader("qdsweep.analysis.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    page = environment.get_template("report.html").render(
        plan=plan,
        summary=summary_text(plan, tables),
        sheets=shown,
        interactive=interactive,
        plotly_source=packed(plotly_source()),
        plotly_views=packed(json.dumps(views)),
        sections=figure_sections(sweep_dir),
        films=films(sweep_dir, dressed, look.names),
        runs=run_sheet(plan, tables.summary),
        run_files=[download(sweep_dir / "summary.csv")],
        thumbnails=pictures,
        thumbnails_left_out=tables.with_results["id"].nunique() - len(pictures),
        methods=methods(plan, tables, runs, runs_dir, {s.name for s, _ in shown if s.rows}),
        settings=settings(runs),
    )
    write_text(sweep_dir / "report.html", page)


def summary_text(plan: Plan, tables: Tables) -> str:
    """What was swept and what came out, in words."""
    done = tables.with_results.drop_duplicates("id")
    text = (
        f"{plural(len({row.run for row in plan.rows}), 'run')} of {plan.experiment} in "
        f"{plural(len(plan.groups), 'group')}, {number(done['evaluations'].sum())} evaluations, "
        f"{core_time(done['core_seconds'].sum())}."
    )
    partial = int((tables.summary["status"] == "partial").sum())
    if partial:
        text += f" {plural(partial, 'row')} of unfinished runs, taken at where they are."
    missing = len(tables.summary) - len(tables.with_results)
    if missing:
        text += f" {plural(missing, 'row')} without results: the tables leave them out."
    best = [tables.best(groups, 1)[0] for groups in tables.scales.values() if len(groups) > 1]
    if 0 < len(best) <= 6:  # more are for the table
        noun = "score is that" if len(best) == 1 else "scores are those"
        text += f" The highest mean QD {noun} of {listed([_score(tables, b) for b in best])}."
    text += unequal_budgets(tables.table, tables.scales)
    top = done.loc[done["obj_max"].idxmax()]
    text += f" The best objective of all runs is {number(top['obj_max'], 2)} ({top['group']})."
    return text


def _score(tables: Tables, group: str) -> str:
    row = tables.table.set_index("group").loc[group]
    value, error, n = (row[f"qd_score_{part}"] for part in ("mean", "se", "n"))
    return f"{group} ({mean_and_error(value, error)}, {plural(int(n), 'seed')})"


def sheets(sweep_dir: Path) -> list[tuple[Sheet, list[Download]]]:
    """Returns the tables of a sweep, the main one first, each with its files."""
    found = {path.stem: path for path in sorted((sweep_dir / "tables").glob("*.json"))}
    order = [*(name for name in _TABLES if name in found), *(n for n in found if n not in _TABLES)]
    paths = [sweep_dir / "table.json", *(found[name] for name in order)]
    return [
        (read_sheet(path), [download(path.with_suffix(end)) for end in (".csv", ".tex", ".md")])
        for path in paths
    ]


def run_sheet(plan: Plan, summary: "pd.DataFrame") -> Sheet:
    """Returns the table of the runs."""
    rows = []
    for planned, row in zip(plan.rows, summary.to_dict("records"), strict=True):
        values = {name: row[name] * (100 if name == "coverage" else 1) for name in _RUN_COLUMNS}
        rows.append(
            [
                *map(text_cell, planned.values.values()),
                text_cell(row["status"]),
                *(number_cell(number(v, _decimals(name)), v) for name, v in values.items()),
            ]
        )
    columns = [*plan.columns, "status", *_RUN_COLUMNS.values()]
    return Sheet("runs", "Runs", "", columns, len(plan.columns) + 1, rows)


def thumbnails(plan: Plan, archives: Path) -> list[tuple[str, str, Picture]]:
    """Returns id, swept values and a small picture of the archive of each run that has one."""
    found: dict[str, tuple[str, str, Picture]] = {}
    for row in plan.rows:
        picture = archives / f"{row.run}.png"
        if row.run not in found and picture.exists() and len(found) < MAX_THUMBNAILS:
            values = [f"{name.split('.')[-1]} {value}" for name, value in row.values.items()]
            label = ", ".join(values) or row.group
            found[row.run] = (row.run, label, thumbnail(picture))
    return list(found.values())


def _decimals(name: str) -> int:
    return 0 if name == "evaluations" else 2
