"""Learning curves in print: metrics over evaluations and wall time, a line per group."""

import math
from typing import TYPE_CHECKING

from qdsweep.analysis.curves import (
    View,
    curve_lines,
    is_defined,
    printed_views,
    telling,
    time_text,
)
from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.figure import Drawn
from qdsweep.analysis.figures.layout import MAX_LINES, MAX_PANELS, lay_out, level
from qdsweep.analysis.figures.style import (
    DRAW_STYLES,
    THIN,
    draw_line,
    figure_width,
    short_numbers,
    start_at_zero,
)
from qdsweep.analysis.legend import DASHES
from qdsweep.analysis.noise import reported_text
from qdsweep.analysis.selection import SweepTables, shown_text
from qdsweep.metrics import EVALUATIONS, STEPS, meanings
from qdsweep.text import listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_COLUMNS = 4


def learning_curves(data: SweepData) -> Drawn:
    """Draws the learning curves: a row of panels for each facet, and for each scale."""
    shown = data.shown(MAX_PANELS, MAX_LINES)
    every = [group for groups in shown.values() for group in groups]
    views, left_out = telling(data, printed_views(data), every)
    width = figure_width(11)
    rows = math.ceil(len(views) / (MOST_COLUMNS if width > 6 else 2))
    columns = math.ceil(len(views) / rows)
    height = rows * (0.72 * width / columns + 0.5)
    figure, parts = lay_out(data.legends(shown), 1, width, height)
    band = data.band_text(every)
    drawn = []
    for part, groups in zip(parts, shown.values(), strict=True):
        axes = list(part.panel.subplots(rows, columns, squeeze=False).flat)
        for ax in axes[len(views) :]:
            ax.set_visible(False)
        for ax, view in zip(axes, views, strict=False):
            draw_curves(ax, data, groups, view)
            drawn.append(((data.score_scale_of[groups[0]], view.metric), ax))
        part.add_legend(band)
    level(drawn)
    caption = (
        f"{_shown(views)}.{data.lines_text(every)}{time_text(data, every)}{data.scale_text}"
        f"{meanings(view.metric for view in views)}{reported_text(data.plan)}"
    )
    if len(shown) > 1:
        caption += (
            " Rows of the same domain, archive and QD-score offset have the same vertical axes."
            " Other rows are not comparable."
        )
    return Drawn(
        "learning_curves",
        "Learning",
        "Learning curves",
        caption + left_out + shown_text(data, shown),
        figure,
        data.drawn_curves(every),
    )


def _shown(views: list[View]) -> str:
    """Returns the curves of a figure in words; the last view is over wall time."""
    parts: list[str] = []
    for name, axis in (("evaluations", EVALUATIONS), ("environment steps", STEPS)):
        metrics = [view.metric for view in views if view.over is axis]
        words = [metric.phrase if parts else metric.label for metric in metrics[:1]]
        if metrics:
            parts.append(f"{listed([*words, *(m.phrase for m in metrics[1:])])} over {name}")
    return f"{', '.join(parts)}, and {views[-1].metric.phrase} over wall time"


def draw_curves(ax: "Axes", tables: SweepTables, groups: list[str], view: View) -> None:
    """Draws the curve of a metric of each group, with the bands of the sweep."""
    lines, metric = curve_lines(tables, groups, view), view.metric
    longest = max((float(line.x[-1]) for line in lines), default=0.0)
    unit, size = view.over.unit_for(longest)
    for line in lines:
        mark = tables.marks[line.group]
        name, stairs = tables.series[line.group], metric.stairs
        draw_line(ax, name, mark, line.x / size, *line.band, stairs=stairs)
        look = {
            "color": mark.color,
            "linestyle": DASHES[mark.dash],
            "drawstyle": DRAW_STYLES[stairs],
        }
        for x, y in line.seeds:
            ax.plot(x / size, y, **look, **THIN)
    ax.set_xlabel(view.over.title(unit))
    ax.set_ylabel(metric.heading)
    ax.set_xlim(0, None)
    if metric.from_zero:
        start_at_zero(ax)
    ax.grid(True)
    short_numbers(ax.xaxis, 4)
    short_numbers(ax.yaxis)
    if not is_defined(lines):
        why = "defined:\nthe archive has no cells" if metric.needs_cells else "measured"
        ax.text(
            0.5, 0.5, f"not {why}",
            transform=ax.transAxes, ha="center", va="center", color="0.4",
        )  # fmt: skip
        ax.set(xticks=[], yticks=[])
