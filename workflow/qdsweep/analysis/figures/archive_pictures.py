"""Figures of archives: of one run, of the groups side by side, and the overview of a sweep."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.analysis.curves import View
from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.archive_profile import (
    EarlierRun,
    beyond_text,
    moment_text,
    objectives_of,
    reported_run,
)
from qdsweep.analysis.figures.figure import Drawn, keep, remove_others, stamp
from qdsweep.analysis.figures.heatmap import (
    Limits,
    add_color_bar,
    color_limits,
    draw_archive,
    elite_table,
    objective_label,
)
from qdsweep.analysis.figures.layout import (
    MAX_LINES,
    add_inside,
    add_legend,
    legend_height,
    needs_legend,
)
from qdsweep.analysis.figures.learning_curves import draw_curves
from qdsweep.analysis.figures.style import (
    NOTE,
    add_heading,
    add_key,
    figure_width,
    save,
    style,
    wrap,
)
from qdsweep.analysis.noise import reported_text
from qdsweep.analysis.selection import SweepTables, largest_budgets, shown_text
from qdsweep.files import write_text
from qdsweep.metrics import RANK, meanings
from qdsweep.ornaments import ornament
from qdsweep.runs.load import Run
from qdsweep.text import number, short

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure, SubFigure


MAX_ARCHIVES = 12
MAX_BLOCKS = 6
_COLUMNS = 4
_EMPTY = "Colour: objective. Grey: no elite."
# Inches: colour bar and labels of the left axis, the smallest map, the space above and below a
# map.
_SIDES, _SMALLEST, _ENDS = 1.0, 1.1, 0.75
_HEADING = 0.3  # inches

_Shown = list[tuple["pd.Series", Run]]

_STEADY = 0.05  # the share of a colour scale by which its ends may be off


def run_figure(run: Run, limits: Limits) -> "Figure":
    """Returns the picture of one run's archive, the final one or that at the sweep's budget."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4), layout="constrained")
    ax = figure.subplots()
    draw_archive(ax, run, limits)
    label = objective_label(run)
    add_color_bar(figure, [ax], [run.arrays["objective"]], limits, label=label)
    moment: Any = run.summary
    if isinstance(run, EarlierRun):
        moment = run.metrics.iloc[run.iteration - 1]
    coverage = moment.get("coverage")
    covered = f", coverage {100 * coverage:.1f} %" if coverage is not None else ""
    score = score_text(moment["qd_score"], run.summary["archive"].get("cells"))
    figure.suptitle(run.summary["id"], fontsize=9)
    ax.set_title(f"{number(moment['evaluations'])} evaluations, {score}{covered}", **NOTE)
    return figure


def score_text(score: float, cells: int | None) -> str:
    """Returns the QD score with its label, divided by the cells where there are some."""
    if not cells:
        return f"QD score {number(score)}"
    score /= cells
    text = number(score) if score >= 1000 else short(score, 4)
    return f"{RANK.label} {text}"


def heatmaps(data: SweepData) -> Drawn:
    """Draws the archives of the groups side by side.

    One run per group, the one with the median final score. Comparable groups share one colour
    scale. Other groups are in a separate block.
    """
    from matplotlib.figure import Figure

    chosen = data.shown(MAX_BLOCKS, MAX_ARCHIVES)
    most = max(map(len, chosen.values()))
    across = min(3, len(chosen)) if most == 1 else 1  # blocks of one archive are side by side
    columns = min(_COLUMNS, most)
    width = figure_width((2.7 * columns + _SIDES) * across)
    across = min(across, max(int(width / (1.3 + _SIDES)), 1))
    columns = min(columns, _fitting(width / across))
    side = (width / across - _SIDES) / columns
    if most == 1:
        rows = [1] * math.ceil(len(chosen) / across)
    else:
        rows = [math.ceil(len(groups) / columns) for groups in chosen.values()]
    heights = [count * (side + _ENDS) + _HEADING * (len(chosen) > 1) for count in rows]
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    parts = figure.subfigures(len(heights), across, height_ratios=heights, squeeze=False)
    blocks = {
        title: [(row, reported_run(data.runs_dir, row)) for row in map(data.median_run, groups)]
        for title, groups in chosen.items()
    }
    score_scale_of = data.score_scale_of
    alike: dict[str, list[Run]] = {}
    for block in blocks.values():
        alike.setdefault(score_scale_of[block[0][0]["group"]], []).extend(run for _, run in block)
    for part, (title, block) in zip(parts.flat, blocks.items(), strict=False):
        same = alike[score_scale_of[block[0][0]["group"]]]
        _draw_block(part, data, block, columns, side, _limits(data, same))
        if len(chosen) > 1:
            add_heading(part, title, width / across)
    shown = [pair for block in blocks.values() for pair in block]
    groups = [row["group"] for row, _ in shown]
    caption = (
        f"The archive of each group's run with {data.median_text(groups)}. {_EMPTY}"
        f"{key_text(data)} Archives of the same domain, cells and QD-score offset have one colour"
        f" scale.{data.scale_text}{reported_text(data.plan)}{beyond_text(shown)}"
        f"{shown_text(data, chosen)}"
    )
    return Drawn("heatmaps", "Archives", "Archives of the groups", caption, figure, _elites(shown))


def overview(data: SweepData) -> Drawn:
    """Draws archives of up to three groups next to the ranking metric over evaluations.

    They belong to the scale with the most groups; where there are facets, to its best facet.
    """
    from matplotlib.figure import Figure

    (best,) = data.best(max(data.score_scales.values(), key=len), 1)
    panel, groups = next(item for item in data.panels.items() if best in item[1])
    facet = data.facets.get(best, "")
    lines = data.best(groups, MAX_LINES)
    metric = data.drawn
    pictured = data.best_of_algorithms(groups, 3)
    count = len(pictured)
    width = figure_width(2.45 * count + 4.6)
    wide = width > 6
    right = (3.9 if width > 8 else 0.36 * width) if wide else width
    left = width - right if wide else width
    count = min(count, _fitting(left))
    side = (left - _SIDES) / count
    blocks = data.marks.legend(lines)
    longest = max(len(label) for block in blocks for label, _ in block.entries)
    below = needs_legend(blocks)
    inside = below and len(blocks) == 1 and len(lines) <= 4 and longest <= 16
    below = below and not inside
    legend = legend_height(blocks, right) if below else 0.0
    if wide:
        height = max(side + _ENDS, 1.6 + legend)
        figure = Figure(figsize=(width, height), layout="constrained")
        maps, curve = figure.subfigures(1, 2, squeeze=False, width_ratios=[left, right])[0]
    else:
        heights = [side + _ENDS, 0.6 * width + legend]
        figure = Figure(figsize=(width, sum(heights)), layout="constrained")
        maps, curve = figure.subfigures(2, 1, squeeze=False, height_ratios=heights)[:, 0]
    if facet:
        figure.set_figheight(figure.get_figheight() + _HEADING)
        add_heading(figure, panel, width)
    pictured = data.best(pictured, count)
    shown = [(row, reported_run(data.runs_dir, row)) for row in map(data.median_run, pictured)]
    _draw_block(maps, data, shown, count, side, _limits(data, [run for _, run in shown]))
    band = data.band_text(lines)
    ax = curve.subplots()
    draw_curves(ax, data, lines, View(metric))
    if inside:
        add_inside(ax, blocks, band, 0.4 * right)
    elif below:
        add_legend(curve, blocks, band, right)
    title, scale = panel, "" if panel in data.score_scales else data.scale_text
    which = "each group" if count == len(groups) else f"the best {count} of {len(groups)} groups"
    if pictured != data.best(groups, count):
        which = f"the best group of {count} algorithms"
    if facet and len(data.panels) > 1:
        title += f", the facet with the {data.rank.extreme} mean {data.ranked.phrase} of its task"
    caption = (
        f"{title}.{scale} Maps: the archive of {which}, of the run with"
        f" {data.median_text(pictured)}. {_EMPTY}{key_text(data)} Curves: {metric.label} over"
        " evaluations."
        f"{data.lines_text(lines)}{meanings([metric])}"
        f" Budget: {_budgets(data, lines)} evaluations per run."
        f"{reported_text(data.plan)}{beyond_text(shown)}{shown_text(data, {panel: lines})}"
    )
    points = data.drawn_curves(lines)
    columns = ["group", "id", "evaluations", "n"]
    columns += [metric.name, f"{metric.name}_mean", f"{metric.name}_se"]
    points = points[[name for name in columns if name in points]]
    return Drawn("overview", "Overview", f"Archives and {metric.phrase}", caption, figure, points)


def key_text(tables: SweepTables) -> str:
    """Returns a sentence that explains the bar above a map."""
    return (
        " The bar above each map shows the line style of its group."
        if len(tables.series) > 1
        else ""
    )


def _limits(data: SweepData, runs: list[Run]) -> Limits:
    """Returns the objectives at the ends of the colours of archives with one scale."""
    objectives = [objectives_of(run) for run in runs]
    about, chosen = runs[0].summary["archive"], data.plan.figures.color_range
    return color_limits(objectives, about, chosen, objective_label(runs[0]))


def _fitting(inches: float) -> int:
    """Returns how many maps fit side by side."""
    return max(int((inches - _SIDES) / _SMALLEST), 1)


def _draw_block(
    block: "SubFigure",
    tables: SweepTables,
    shown: _Shown,
    columns: int,
    side: float,
    limits: Limits,
) -> None:
    """Draws archives, `columns` in a row and `side` inches wide, with one colour bar."""
    columns = min(columns, len(shown))
    rows = math.ceil(len(shown) / columns)
    grid = block.subplots(rows, columns, squeeze=False)
    axes = list(grid.flat)
    for position, (ax, (row, run)) in enumerate(zip(axes, shown, strict=False)):
        draw_archive(ax, run, limits)
        if len(tables.series) > 1:
            add_key(ax, tables.marks[row["group"]])
        note = wrap(f"seed {run.config['seed']}, {moment_text(row, run)}", side, 7)
        lines = note.count("\n") + 1
        ax.set_title(wrap(tables.series[row["group"]], side, 9.5), pad=5.5 + 8.6 * lines)
        ax.annotate(
            note,
            (0.5, 1.0),
            (0, 3),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="center",
            **(NOTE | {"fontsize": 7}),
        )
        if position % columns:
            ax.set_ylabel("")
            ax.set_yticklabels([])
        if position + columns < len(shown):
            ax.set_xlabel("")
            ax.set_xticklabels([])
    for ax in axes[len(shown) :]:
        ax.set_visible(False)
    objectives = [run.arrays["objective"] for _, run in shown]
    label = objective_label(shown[0][1])
    add_color_bar(block, axes[: len(shown)], objectives, limits, aspect=25 * rows, label=label)


def _elites(shown: _Shown) -> "pd.DataFrame":
    """Returns the elites of the archives shown."""
    import pandas as pd

    parts = [elite_table(run, group=row["group"], run=row["id"]) for row, run in shown]
    return pd.concat(parts, ignore_index=True)


def _budgets(tables: SweepTables, groups: list[str]) -> str:
    means = tables.table[tables.table["group"].isin(groups)]["evaluations_mean"]
    low, high = number(means.min()), number(means.max())
    return low if low == high else f"{low} to {high}"


@ornament("the pictures of the archives")
def run_pictures(data: SweepData) -> None:
    """Draws `plots/archives/ID.png` of each run at its largest budget in the sweep.

    Only those are drawn whose archive or colour scale has changed.
    """
    before, limits = _read(data.sweep.color_limits), {}
    shown: dict[str, tuple[Run, Limits]] = {}
    for scale, groups in data.score_scales.items():
        rows = data.with_results[data.with_results["group"].isin(groups)]
        rows = largest_budgets(rows)
        runs = {str(row["id"]): reported_run(data.runs_dir, row) for _, row in rows.iterrows()}
        if not runs:
            continue
        now = _limits(data, list(runs.values()))
        chosen = data.plan.figures.color_range is not None
        limits[scale] = now if chosen else _steady(before.get(scale), now)
        for run_id, run in runs.items():
            shown[f"{run_id}.png"] = run, limits[scale]
    made_of = {
        name: f"{stamp(run.files.archive)} {ends}{_cut_text(run)}"
        for name, (run, ends) in shown.items()
    }
    folder = data.sweep.archives
    keep(folder, data.sweep, made_of, lambda name: _draw(*shown[name], folder / name))
    remove_others(folder, shown)
    write_text(data.sweep.color_limits, json.dumps(limits) + "\n")


def _cut_text(run: Run) -> str:
    return f" at {run.iteration}" if isinstance(run, EarlierRun) else ""


def _read(path: Path) -> dict[str, Limits]:
    """Reads the colour scales of the existing pictures; none if the file cannot be read."""
    try:
        limits = json.loads(path.read_text(encoding="utf-8"))
        return {scale: (float(low), float(high)) for scale, (low, high) in limits.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _steady(before: Limits | None, now: Limits) -> Limits:
    """Returns the old limits while they nearly fit, so that thousands of pictures are kept."""
    if before is None:
        return now
    most = _STEADY * (now[1] - now[0])
    near = all(abs(old - new) <= most for old, new in zip(before, now, strict=True))
    return before if near else now


def _draw(run: Run, limits: Limits, picture: Path) -> None:
    with style():
        figure = run_figure(run, limits)
        figure.set_dpi(100)
        save(figure, picture.with_suffix(""), (picture.suffix,))
