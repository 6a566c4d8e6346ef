"""The page of a sweep: one self-contained HTML file with its tables and figures."""

import json
import math
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.style import style
from qdsweep.analysis.noise import LUCKY, as_reported
from qdsweep.analysis.page.descriptions import SCALES, flat, mutation_scale, with_step
from qdsweep.analysis.page.gallery import (
    Download,
    Maps,
    Picture,
    ShownFigure,
    download,
    figure_sections,
    films,
    packed,
    thumbnail,
)
from qdsweep.analysis.page.headline import headline
from qdsweep.analysis.page.interactive import Interactive, interactive_figures, plotly_source
from qdsweep.analysis.page.methods import methods, read_summaries
from qdsweep.analysis.page.search_section import search_section
from qdsweep.analysis.selection import largest_budgets
from qdsweep.analysis.sheet import Sheet, number_cell, read_sheet, text_cell
from qdsweep.analysis.stages import STAGES
from qdsweep.analysis.tables.comparisons import HEADINGS
from qdsweep.analysis.tables.group_table import elites_below_range, heading_of, unequal_budgets
from qdsweep.analysis.tables.search_table import TABLES as SEARCH_TABLES
from qdsweep.config.files import to_yaml
from qdsweep.config.keys import ALIASED
from qdsweep.config.model import value_text
from qdsweep.features import modules
from qdsweep.files import write_text
from qdsweep.metrics import shown_metrics
from qdsweep.ornaments import ornament
from qdsweep.records.paths import SweepDir
from qdsweep.records.study_files import shown_file
from qdsweep.runs.load import Run
from qdsweep.sweep.groups import values_label
from qdsweep.text import common_decimals, listed, number, plain, plural
from qdsweep.versions import __version__, own_commit

# The seed differs within a group; titles and citations are for the methods paragraph.
_NO_SETTINGS = {
    "seed",
    *(f"{part}.{key}" for part in ("algorithm", "domain") for key in ("title", "cite")),
}
# The sections of the page in their order: anchor, heading, and entry of the navigation.
_SECTIONS = (
    ("results", "Results", "Results"),
    ("curves", "Learning curves", "Curves"),
    ("archives", "Archives", "Archives"),
    ("held-out", "Held-out results", "Held-out"),
    ("search", "Search", "Search"),
    ("time", "Run time", "Run time"),
    ("runs", "Runs", "Runs"),
    ("methods", "Methods, settings and reproduction", "Methods"),
)
# Section of a figure -> section of the page; any other figure is in the results.
_FIGURES = {
    "Overview": "archives",
    "Learning": "curves",
    "Archives": "archives",
    "Evolution": "archives",
    "Corrected archives": "held-out",
    "Search": "search",
    "Time": "time",
}
# Tables after the main one, in this order; any other table follows by name, in the results.
_TABLES = {
    **dict.fromkeys(
        ("published", "factors", "comparisons", "over_tasks", "improvement"), "results"
    ),
    **dict.fromkeys(("confirmed", "corrected"), "held-out"),
    "timing": "time",
}
MAX_THUMBNAILS = 400

# Columns of pairs, which belong together.
_KEPT = (*HEADINGS[:2], "X", "Y")


@dataclass(frozen=True)
class Settings:
    """The settings that all groups of a sweep share, as YAML, and a table of the others."""

    common: str
    differing: Sheet | None


def group_settings(runs: dict[str, Run]) -> Settings:
    """Returns the settings of a sweep, without seeds, from a run of each group."""
    known = {group: _known(resolved(run)) for group, run in runs.items()}
    keys = list(dict.fromkeys(key for config in known.values() for key in config))
    varying = [key for key in keys if len({_text(config, key) for config in known.values()}) > 1]
    common = {key: value for key, value in next(iter(known.values())).items() if key not in varying}
    text = to_yaml(common, default_flow_style=None, width=90)
    if not varying:
        return Settings(text, None)
    table = [[_text(config, key) for key in varying] for config in known.values()]
    groups = list(known)
    heads, columns = groups, varying
    if len(varying) > len(groups):  # the longer side becomes the rows
        heads, columns, table = varying, groups, [list(row) for row in zip(*table, strict=True)]
    rows = [[text_cell(t) for t in (head, *row)] for head, row in zip(heads, table, strict=True)]
    corner = "Group" if heads == groups else "Key"
    note = "An empty cell: the key is not set, or the algorithm or domain does not have it."
    names, title = [corner, *columns], "Settings that differ"
    return Settings(text, Sheet("settings", title, note, names, len(names), rows))


def resolved(run: Run) -> dict[str, Any]:
    """Returns the config of a run with the values that its domain gives to keys that are null."""
    config, about = deepcopy(run.config), run.summary["archive"]
    ranges, objectives = about.get("ranges"), about.get("objective_range")
    step = mutation_scale(with_step(run))
    _fill(config["domain"], {"ranges": ranges, "objective_range": objectives})
    algorithm = config["algorithm"]
    archive = algorithm.get("archive", {})
    if objectives and archive.get("learning_rate") is not None:
        _fill(archive, {"threshold_min": objectives[0]})
    for part in (algorithm, algorithm.get("emitter", {}), *algorithm.get("emitters", ())):
        _fill(part, dict.fromkeys(SCALES, step))
    return config


def _fill(part: dict[str, Any], values: dict[str, Any]) -> None:
    """Replaces the nulls of a part of a config."""
    part |= {key: value for key, value in values.items() if key in part and part[key] is None}


def _known(config: dict[str, Any]) -> dict[str, Any]:
    """Returns a config with dotted keys, without the seed, titles, citations and unset keys."""
    known = {ALIASED.get(key, key): value for key, value in flat(config).items()}
    return {
        key: value
        for key, value in known.items()
        if key not in _NO_SETTINGS and value not in (None, "", [], {})
    }


def _text(config: dict[str, Any], key: str) -> str:
    return value_text(config[key]) if key in config else ""


@dataclass
class PageSection:
    """A section of the page.

    Attributes:
        name: Its anchor.
        title: Its heading.
        entry: Its entry of the navigation.
        tables: Its tables with their files.
        plots: Its interactive figures.
        figures: Its other figures.
        files: Figures of which the page has only the files.
    """

    name: str
    title: str
    entry: str
    tables: list[tuple[Sheet, list[Download]]] = field(default_factory=list)
    plots: list[Interactive] = field(default_factory=list)
    figures: list[ShownFigure] = field(default_factory=list)
    files: list[ShownFigure] = field(default_factory=list)


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
    warning = unequal_budgets(data.plan, data.table, data.score_scales)
    warning += elites_below_range(data.summary)
    shown = [
        (replace(sheet, note=sheet.note.replace(warning, "")) if warning else sheet, files)
        for sheet, files in sheets(data.sweep)
    ]
    names = {sheet.name for sheet, _ in shown if sheet.rows}
    figures = figure_sections(data)
    searched = search_section(data)
    with style(data.plan.figures.column_width):
        interactive = interactive_figures(data)
    pictures = thumbnails(data)
    maps = next((feature.embedded(data) for feature in modules("page")), Maps())
    animated = films(data, maps.played)
    parts = sections(shown, interactive, figures, is_search=searched is not None)
    filled = {
        "results": True,
        "archives": bool(animated.films or maps.html),
        "search": searched is not None,
        "runs": True,
        "methods": True,
    }
    present = {
        name: part
        for name, part in parts.items()
        if filled.get(name) or part.tables or part.plots or part.figures
    }
    environment = Environment(
        loader=PackageLoader("qdsweep.analysis.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        # The page cannot typeset formulas.
        finalize=lambda value: plain(value) if type(value) is str else value,
    )
    views = {
        figure.name: [json.loads(view) for view in figure.views.values()] for figure in interactive
    }
    page = environment.get_template("report.html").render(
        plan=data.plan,
        subject=subject(data),
        origin=origin(data),
        summary=headline(data),
        warning=warning.strip(),
        file=shown_file(data.sweep),
        parts=present,
        plotly_source=packed(plotly_source()) if interactive else "",
        plotly_views=packed(json.dumps(views)),
        search=searched,
        films=animated,
        maps=maps.html,
        runs=trimmed(run_sheet(data)),
        run_files=[download(data.sweep.summary)],
        thumbnails=pictures,
        thumbnails_left_out=data.with_results["id"].nunique() - len(pictures),
        methods=methods(data, names),
        commands=commands(data),
        settings=group_settings(data.median_runs),
    )
    write_text(data.sweep.report, page)


def sections(
    sheets: list[tuple[Sheet, list[Download]]],
    interactive: list[Interactive],
    figures: dict[str, list[ShownFigure]],
    *,
    is_search: bool,
) -> dict[str, PageSection]:
    """Returns all sections of the page, also those that are empty."""
    parts = {section[0]: PageSection(*section) for section in _SECTIONS}
    of_search = SEARCH_TABLES if is_search else ()
    for sheet, files in sheets:
        place = "search" if sheet.name in of_search else _TABLES.get(sheet.name, "results")
        if sheet.rows or sheet.note:
            parts[place].tables.append((trimmed(sheet), files))
    for figure in interactive:
        curves = figure.name.startswith("curves")
        parts["curves" if curves else "search" if is_search else "results"].plots.append(figure)
    for section, every in figures.items():
        place = "results" if section == "Search" and not is_search else section
        part = parts[_FIGURES.get(place, "results")]
        for shown in every:
            (part.figures if shown.is_shown else part.files).append(shown)
    return parts


def trimmed(sheet: Sheet) -> Sheet:
    """Returns a table without columns of dashes, and without columns of a single value.

    The note has the values. A table of one row keeps all its columns but those of dashes.
    """
    columns = [[row[place] for row in sheet.rows] for place in range(len(sheet.columns))]
    kept, alike = [], []
    for place, (heading, cells) in enumerate(zip(sheet.columns, columns, strict=True)):
        texts = {cell.text for cell in cells}
        if texts <= {"", number(math.nan)} and sheet.rows:
            continue
        if len(cells) > 1 and len(texts) == 1 and heading not in _KEPT:
            alike.append(f"{heading} {cells[0].text}")
            continue
        kept.append(place)
    if not any(place < sheet.text for place in kept):  # something must name the rows
        return sheet
    note = f"{sheet.note} In all rows: {listed(alike)}." if alike else sheet.note
    return replace(
        sheet,
        note=note.strip(),
        columns=[sheet.columns[place] for place in kept],
        text=sum(place < sheet.text for place in kept),
        rows=[[row[place] for place in kept] for row in sheet.rows],
    )


def subject(data: SweepData) -> str:
    """Returns the algorithms, the task and the seeds of a sweep, for below its name."""
    plan = data.plan
    algorithms = list(
        dict.fromkeys(
            run.config["algorithm"].get("title") or str(run.config["algorithm"]["name"])
            for run in data.median_runs.values()
        )
    )
    if "algorithm" in plan.columns:  # the labels of the sweep file
        algorithms = list(dict.fromkeys(row.values["algorithm"] for row in plan.computed))
    who = listed(algorithms) if len(algorithms) <= 6 else plural(len(algorithms), "algorithm")
    tasks = list(
        dict.fromkeys(str(run.config["domain"]["name"]) for run in data.median_runs.values())
    )
    tasks = [data.called.value(task) for task in tasks]
    where = listed(tasks) if len(tasks) <= 6 else plural(len(tasks), "task")
    seeds = {row.values["seed"] for row in plan.computed if row.values.get("seed")}
    return f"{who} on {where}" + (f", {plural(len(seeds), 'seed')}" if seeds else "")


def origin(data: SweepData) -> str:
    """Returns the date of the newest run, the hosts, and the version and commit of qdsweep.

    They change only with the runs and with the code, so a page that is rebuilt keeps its bytes.
    """
    summaries = read_summaries(data, data.with_results["id"].unique())
    attempts = [attempt for summary in summaries for attempt in summary.get("attempts", ())]
    ends = [str(attempt["ended"])[:10] for attempt in attempts if attempt.get("ended")]
    hosts = sorted({str(attempt["host"]) for attempt in attempts if attempt.get("host")})
    where = listed(hosts) if len(hosts) <= 3 else plural(len(hosts), "host")
    commit = own_commit()
    parts = [
        f"Last run finished on {max(ends)}" if ends else "",
        f"computed on {where}" if hosts else "",
        f"report by qdsweep {__version__}{f', commit {commit}' if commit else ''}",
    ]
    text = "; ".join(filter(None, parts))
    return f"{text[0].upper()}{text[1:]}."


def sheets(sweep: SweepDir) -> list[tuple[Sheet, list[Download]]]:
    """Returns the tables of a sweep, the main one first, each with its files."""
    others = {path.stem: path for path in sorted(sweep.tables.glob("*.json"))}
    order = dict.fromkeys(name for name in (*_TABLES, *SEARCH_TABLES, *others) if name in others)
    return [
        (read_sheet(path), [download(path.with_suffix(end)) for end in (".csv", ".tex", ".md")])
        for path in (sweep.table, *(others[name] for name in order))
    ]


def commands(data: SweepData) -> list[str]:
    """Returns the commands that rebuild this page from the existing runs."""
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
        and not (metric.name == "obj_max" and LUCKY in plan.noise.values())
    ]
    values = {metric: summary[metric.name].astype(float) * metric.factor for metric in metrics}
    decimals = {m: 0 if m.whole else common_decimals(of, ()) for m, of in values.items()}
    rows = []
    for planned, status, *own in zip(plan.rows, summary["status"], *values.values(), strict=True):
        cells = [text_cell(text) for text in (*planned.values.values(), status)]
        cells += [
            number_cell(number(value, decimals[metric]), value)
            for metric, value in zip(metrics, own, strict=True)
        ]
        rows.append(cells)
    swept = [heading_of(plan, name) for name in plan.columns]
    columns = [*swept, "Status", *(m.heading + as_reported(plan, m) for m in metrics)]
    return Sheet("runs", "Runs", "", columns, len(plan.columns) + 1, rows)


@ornament("the small pictures of the archives on the page", lambda why, data: [])
def thumbnails(data: SweepData) -> list[tuple[str, str, Picture]]:
    """Returns id, swept values and a small picture of the archive of each run that has one."""
    pictures: list[tuple[str, str, Picture]] = []
    for place in largest_budgets(data.summary.reset_index(drop=True)).index:
        row = data.plan.rows[place]
        path = data.sweep.archives / f"{row.run}.png"
        if path.exists() and len(pictures) < MAX_THUMBNAILS:
            label = values_label(row.values, list(row.values), data.plan.names)
            pictures.append((row.run, label or row.group, thumbnail(path)))
    return pictures
