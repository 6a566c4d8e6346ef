"""The page of a sweep: one self-contained HTML file, made of its tables and figures."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.style import style
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
from qdsweep.analysis.page.search import SECTION, search_section
from qdsweep.analysis.sheet import Sheet, number_cell, read_sheet, text_cell
from qdsweep.analysis.stages import STAGES
from qdsweep.analysis.tables.search import TABLES as SEARCH_TABLES
from qdsweep.config.base import value_text
from qdsweep.config.keys import ALIASES, dotted
from qdsweep.experiment.load import Run
from qdsweep.files import write_text
from qdsweep.metrics import shown_metrics
from qdsweep.records.paths import SweepDir
from qdsweep.sweep.groups import values_label
from qdsweep.text import number, plain

# The seed differs within a group; titles and citations are for the methods paragraph.
_NO_SETTINGS = {
    "seed",
    *(f"{part}.{key}" for part in ("algorithm", "domain") for key in ("title", "cite")),
}
# The page calls a key by its alias.
_ALIASED = {dotted(key): dotted((*key[:-1], name)) for name, key in ALIASES.items()}


@dataclass(frozen=True)
class Settings:
    """What every group of a sweep shares, as YAML; and a table of what differs, if anything."""

    common: str
    differing: Sheet | None


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
            flat[_ALIASED.get(path, path)] = value

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

    data = SweepData.read(sweep_dir, runs_dir)
    shown = sheets(data.sweep)
    names = {sheet.name for sheet, _ in shown if sheet.rows}
    sections = figure_sections(data)
    searched = search_section(data, shown, sections)
    if searched is not None:
        shown = [(sheet, files) for sheet, files in shown if sheet.name not in SEARCH_TABLES]
        sections.pop(SECTION, None)
    with style(data.plan.figures.column_width):
        interactive = interactive_figures(data)
    views = {
        figure.name: [json.loads(view) for view in figure.views.values()] for figure in interactive
    }
    pictures = thumbnails(data)
    environment = Environment(
        loader=PackageLoader("qdsweep.analysis.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        # The page cannot typeset formulas.
        finalize=lambda value: plain(value) if type(value) is str else value,
    )
    page = environment.get_template("report.html").render(
        plan=data.plan,
        summary=headline(data),
        sheets=shown,
        interactive=interactive,
        plotly_source=packed(plotly_source()),
        plotly_views=packed(json.dumps(views)),
        search=searched,
        sections=sections,
        films=films(data),
        runs=run_sheet(data),
        run_files=[download(data.sweep.summary)],
        thumbnails=pictures,
        thumbnails_left_out=data.with_results["id"].nunique() - len(pictures),
        methods=methods(data, names),
        commands=commands(data),
        settings=settings(data.median_runs),
    )
    write_text(data.sweep.report, page)


def sheets(sweep: SweepDir) -> list[tuple[Sheet, list[Download]]]:
    """Returns the tables of a sweep, the main one first, each with its files."""
    others = {path.stem: path for path in sorted(sweep.tables.glob("*.json"))}
    order = dict.fromkeys(name for name in (*_TABLES, *others) if name in others)
    return [
        (read_sheet(path), [download(path.with_suffix(end)) for end in (".csv", ".tex", ".md")])
        for path in (sweep.table, *(others[name] for name in order))
    ]


def commands(data: SweepData) -> list[str]:
    """Returns the commands that make this page again from the existing runs."""
    partial = " --partial" if (data.summary["status"] == "partial").any() else ""
    *others, last = STAGES
    done = [*(stage for stage in others if stage.is_done(data.sweep.path)), last]
    return [
        f"qdsweep {stage.name} {data.sweep.name}{partial if stage.name == 'aggregate' else ''}"
        for stage in done
    ]


def run_sheet(data: SweepData) -> Sheet:
    """Returns the table of the runs."""
    plan, summary = data.plan, data.summary
    metrics = [
        metric
        for metric in shown_metrics(plan.metrics)
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


def thumbnails(data: SweepData) -> list[tuple[str, str, Picture]]:
    """Returns id, swept values and a small picture of the archive of each run that has one."""
    pictures: dict[str, tuple[str, str, Picture]] = {}
    for row in data.plan.rows:
        path = data.sweep.archives / f"{row.run}.png"
        if row.run not in pictures and path.exists() and len(pictures) < MAX_THUMBNAILS:
            label = values_label(row.values, list(row.values), data.plan.figures.names)
            pictures[row.run] = (row.run, label or row.group, thumbnail(path))
    return list(pictures.values())
