"""The page of a sweep: one self-contained HTML file, made of its tables and figures.

The resolved experiments of a sweep: what all groups share and what tells them apart.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.analysis.figures.style import read_dressed
from qdsweep.analysis.page.gallery import (
    Download,
    Picture,
    download,
    figure_sections,
    films,
    packed,
    thumbnail,
)
from qdsweep.analysis.page.headline import headline
from qdsweep.analysis.page.interactive import interactive_figures, plotly_source
from qdsweep.analysis.page.methods import methods
from qdsweep.analysis.page.search import SECTION, how_searched, search_section
from qdsweep.analysis.search import read_search
from qdsweep.analysis.selection import Tables
from qdsweep.analysis.sheet import Sheet, number_cell, read_sheet, text_cell
from qdsweep.analysis.stages import STAGES
from qdsweep.analysis.tables.search import TABLES as SEARCH_TABLES
from qdsweep.config.base import value_text
from qdsweep.experiment.load import Run
from qdsweep.files import write_text
from qdsweep.metrics import shown_metrics
from qdsweep.records.paths import RunDir, SweepDir
from qdsweep.records.plan import Plan
from qdsweep.sweep.groups import values_label
from qdsweep.text import number, plain

if TYPE_CHECKING:
    import pandas as pd


# The seed differs within a group; titles and citations are for the methods paragraph.
_NO_SETTINGS = {
    "seed",
    *(f"{part}.{key}" for part in ("algorithm", "domain") for key in ("title", "cite")),
}


@dataclass(frozen=True)
class Settings:
    """What every group of a sweep shares, as YAML; and a table of what differs, if anything."""

    common: str
    differing: Sheet | None


def median_runs(tables: Tables, runs_dir: Path) -> dict[str, Run]:
    """Returns the run of each group that figures show: the one with the median score."""
    return {
        group: Run(RunDir(runs_dir / str(tables.median_run(group)["id"])).results.path)
        for group in tables.series
    }


def settings(runs: dict[str, Run]) -> Settings:
    """Returns the settings of a sweep, without seeds, from a run of each group."""
    import yaml

    flat = {group: _flat(run.config) for group, run in runs.items()}
    keys = list(dict.fromkeys(key for config in flat.values() for key in config))
    varying = [key for key in keys if len({_text(config, key) for config in flat.values()}) > 1]
    common = {key: value for key, value in next(iter(flat.values())).items() if key not in varying}
    text = yaml.safe_dump(common, sort_keys=False, default_flow_style=None, width=90)
    if not varying:
        return Settings(text, None)
    table = [[_text(config, key) for key in varying] for config in flat.values()]
    heads, columns = list(flat), varying
    if len(varying) > len(flat):  # the longer side becomes the rows
        heads, columns, table = varying, list(flat), [list(row) for row in zip(*table, strict=True)]
    rows = [[text_cell(t) for t in (head, *row)] for head, row in zip(heads, table, strict=True)]
    corner = "group" if heads == list(flat) else "key"
    note = "Keys that a group's algorithm or domain does not have are empty."
    names, title = [corner, *columns], "What tells the groups apart"
    return Settings(text, Sheet("settings", title, note, names, len(names), rows))


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """Returns a config with dotted keys, without the seed and what the methods paragraph says."""
    flat: dict[str, Any] = {}

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict) and value:
            for key, part in value.items():
                walk(part, f"{path}.{key}" if path else str(key))
        elif isinstance(value, list) and any(isinstance(part, dict) for part in value):
            for position, part in enumerate(value):
                walk(part, f"{path}.{position}" if len(value) > 1 else path)
        else:
            flat[path] = value

    walk(config, "")
    return {key: value for key, value in flat.items() if key not in _NO_SETTINGS}


def _text(config: dict[str, Any], key: str) -> str:
    return value_text(config[key]) if key in config else ""


# Tables after the main one, in this order; any other follows by name.
_TABLES = (
    *("published", "confirmed", "factors", "comparisons", "over_tasks", "improvement"),
    *("corrected", "timing"),
)
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

    sweep = SweepDir(sweep_dir)
    plan, tables, look = read_dressed(sweep_dir)
    runs = median_runs(tables, runs_dir)
    own = {group: run for group, run in runs.items() if group not in plan.imported_groups}
    shown = sheets(sweep_dir)
    names = {sheet.name for sheet, _ in shown if sheet.rows}
    search = read_search(sweep, plan)
    sections = figure_sections(sweep_dir, plan.figures.column_width)
    searched = search_section(sweep_dir, search, plan.search, shown, sections)
    if searched is not None:
        shown = [(sheet, files) for sheet, files in shown if sheet.name not in SEARCH_TABLES]
        sections.pop(SECTION, None)
    with look.style():
        interactive = interactive_figures(plan, tables, search)
    views = {one.name: [json.loads(view) for view in one.views.values()] for one in interactive}
    pictures = thumbnails(plan, sweep.archives)
    environment = Environment(
        loader=PackageLoader("qdsweep.analysis.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        # Nothing in the page sets formulas.
        finalize=lambda value: plain(value) if type(value) is str else value,
    )
    page = environment.get_template("report.html").render(
        plan=plan,
        summary=headline(plan, tables, sweep_dir, look),
        sheets=shown,
        interactive=interactive,
        plotly_source=packed(plotly_source()),
        plotly_views=packed(json.dumps(views)),
        search=searched,
        sections=sections,
        films=films(sweep_dir, tables, look.names),
        runs=run_sheet(plan, tables.summary),
        run_files=[download(sweep.summary)],
        thumbnails=pictures,
        thumbnails_left_out=tables.with_results["id"].nunique() - len(pictures),
        methods=methods(
            plan, tables, own, sweep_dir, runs_dir, names, look.labels, how_searched(search, plan)
        ),
        commands=commands(sweep_dir, tables),
        settings=settings(own),
    )
    write_text(sweep.report, page)


def sheets(sweep_dir: Path) -> list[tuple[Sheet, list[Download]]]:
    """Returns the tables of a sweep, the main one first, each with its files."""
    sweep = SweepDir(sweep_dir)
    found = {path.stem: path for path in sorted(sweep.tables.glob("*.json"))}
    order = [*(name for name in _TABLES if name in found), *(n for n in found if n not in _TABLES)]
    paths = [sweep.table, *(found[name] for name in order)]
    return [
        (read_sheet(path), [download(path.with_suffix(end)) for end in (".csv", ".tex", ".md")])
        for path in paths
    ]


def commands(sweep_dir: Path, tables: Tables) -> list[str]:
    """Returns what makes this page again from the runs that are there, step by step."""
    partial = " --partial" if (tables.summary["status"] == "partial").any() else ""
    *others, last = STAGES
    done = [*(stage for stage in others if stage.is_done(sweep_dir)), last]
    return [
        f"qdsweep {stage.name} {sweep_dir.name}{partial if stage.name == 'aggregate' else ''}"
        for stage in done
    ]


def run_sheet(plan: Plan, summary: "pd.DataFrame") -> Sheet:
    """Returns the table of the runs."""
    every = shown_metrics(plan.metrics)
    metrics = [
        metric
        for metric in every
        if (metric.main or metric.cost or metric is plan.rank)
        and not (metric.optional and summary[metric.name].isna().all())
    ]
    rows = []
    for planned, row in zip(plan.rows, summary.to_dict("records"), strict=True):
        cells = [text_cell(text) for text in (*planned.values.values(), row["status"])]
        for metric in metrics:
            value = row[metric.name] * metric.factor
            cells.append(number_cell(number(value, 0 if metric.whole else 2), value))
        rows.append(cells)
    columns = [*map(plan.called, plan.columns), "status", *(metric.heading for metric in metrics)]
    return Sheet("runs", "Runs", "", columns, len(plan.columns) + 1, rows)


def thumbnails(plan: Plan, archives: Path) -> list[tuple[str, str, Picture]]:
    """Returns id, swept values and a small picture of the archive of each run that has one."""
    found: dict[str, tuple[str, str, Picture]] = {}
    for row in plan.rows:
        picture = archives / f"{row.run}.png"
        if row.run not in found and picture.exists() and len(found) < MAX_THUMBNAILS:
            label = values_label(row.values, list(row.values), plan.figures.names) or row.group
            found[row.run] = (row.run, label, thumbnail(picture))
    return list(found.values())
