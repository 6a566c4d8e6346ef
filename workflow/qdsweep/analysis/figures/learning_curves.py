"""QD score, coverage and best objective over evaluations and wall time, by group."""

import math
from typing import TYPE_CHECKING

from qdsweep.analysis.figures.figure import Drawn
from qdsweep.analysis.figures.panels import lay_out
from qdsweep.analysis.figures.style import draw_band, figure_width, level, line_style, short_numbers
from qdsweep.analysis.selection import Tables, band_text, shown_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_LINES = 12
MAX_PANELS = 6
_LABELS = {"qd_score": "QD score", "coverage": "Coverage (%)", "obj_max": "Best objective"}
_EVALUATIONS, _SECONDS = "evaluations", "seconds_mean"
_AXES = [*((metric, _EVALUATIONS) for metric in _LABELS), ("qd_score", _SECONDS)]
_UNITS = ((7200, "h", 3600), (300, "min", 60), (0, "s", 1))


def learning_curves(tables: Tables) -> Drawn:
    """Draws the learning curves: four panels for each facet, and for each scale."""
    shown = tables.shown(MAX_PANELS, MAX_LINES)
    width = figure_width(11)
    columns = len(_AXES) if width > 6 else 2
    rows = math.ceil(len(_AXES) / columns)
    labels = {title: [tables.series[group] for group in groups] for title, groups in shown.items()}
    figure, parts = lay_out(labels, 1, width, rows * (0.72 * width / columns + 0.5))
    every = [group for groups in shown.values() for group in groups]
    band = band_text(tables.counts(every))
    alike: dict[tuple[str, str], list[Axes]] = {}
    for part, groups in zip(parts, shown.values(), strict=True):
        axes = list(part.panel.subplots(rows, columns, squeeze=False).flat)
        for ax, (metric, over) in zip(axes, _AXES, strict=True):
            draw_curves(ax, tables, groups, metric, over)
            alike.setdefault((tables.scale_of[groups[0]], metric), []).append(ax)
        part.add_legend(axes[0], band)
    for same in alike.values():
        level(same)
    caption = (
        "QD score, coverage and best objective over evaluations, and QD score over wall time;"
        f" lines and bands: {band}.{tables.scale_text}"
    )
    if len(shown) > 1:
        caption += (
            " Rows of the same domain, archive and QD-score offset have the same vertical axes;"
            " scores of others do not compare."
        )
    return Drawn(
        "learning_curves",
        "Learning",
        "Learning curves",
        caption + shown_text(tables, shown),
        figure,
        tables.curves[tables.curves["group"].isin(every)],
    )


def draw_curves(
    ax: "Axes", tables: Tables, groups: list[str], metric: str, over: str = _EVALUATIONS
) -> None:
    """Draws a metric's mean over seeds with a band of ± one standard error.

    Args:
        ax: Where to draw.
        tables: The sweep's tables.
        groups: Groups to draw.
        metric: `qd_score`, `coverage` or `obj_max`.
        over: `evaluations`, or `seconds_mean` for the mean wall time.
    """
    factor = 100 if metric == "coverage" else 1
    curves = tables.curves[tables.curves["group"].isin(groups)]
    size, label = 1.0, "Evaluations"
    if over == _SECONDS:
        longest = curves[over].max()
        unit, size = next((unit, size) for least, unit, size in _UNITS if longest >= least)
        label = f"Wall time ({unit})"
    for group, curve in curves.groupby("group", sort=False):
        x = curve[over] / size
        mean, error = (curve[f"{metric}_{part}"] * factor for part in ("mean", "se"))
        look = line_style(tables.position[str(group)])
        ax.plot(x, mean, label=tables.series[str(group)], **look)
        draw_band(ax, x, mean, error, look["color"])
    ax.set_xlabel(label)
    ax.set_ylabel(_LABELS[metric])
    ax.set_xlim(0, None)
    if metric != "obj_max":
        ax.set_ylim(0, None)
    ax.grid(True)
    short_numbers(ax.xaxis, 4)
    short_numbers(ax.yaxis)
    if curves[f"{metric}_mean"].isna().all():
        ax.text(
            0.5, 0.5, "not defined:\nthe archive has no cells",
            transform=ax.transAxes, ha="center", va="center", color="0.4",
        )  # fmt: skip
        ax.set(xticks=[], yticks=[])
