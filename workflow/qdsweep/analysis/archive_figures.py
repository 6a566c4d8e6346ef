"""Figures of archives: one run's, the groups side by side, and the overview of a sweep."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.analysis.heatmap import Limits, beyond, color_limits, color_scale, draw_archive
from qdsweep.analysis.learning_curves import add_legend, draw_curves
from qdsweep.analysis.load import Run, load
from qdsweep.analysis.partial import results_of
from qdsweep.analysis.selection import Tables, band_text, budget_text, shown_text
from qdsweep.analysis.style import NOTE, add_caption, add_heading, short_numbers
from qdsweep.analysis.text import number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

MAX_PANELS = 12
MAX_SCALES = 6
_COLUMNS = 4
_EMPTY = "Colour: objective; grey: no elite."


def run_figure(run: Run) -> "Figure":
    """Returns the picture of one run's final archive."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4), layout="constrained")
    ax = figure.subplots()
    limits = color_limits([run])
    draw_archive(ax, run, limits)
    _color_bar(figure, [ax], [run], limits)
    summary = run.summary
    coverage = summary.get("coverage")
    covered = f", coverage {100 * coverage:.1f} %" if coverage is not None else ""
    figure.suptitle(summary["id"], fontsize=9)
    ax.set_title(
        f"{number(summary['evaluations'])} evaluations, QD score"
        f" {number(summary['qd_score'])}{covered}",
        **NOTE,
    )
    return figure


def heatmaps(tables: Tables, runs_dir: Path) -> tuple["Figure", str]:
    """Returns the archives of the groups side by side, and the caption.

    One run a group, the one with the median final QD score. Groups that compare share one
    colour scale; others stand in a block of their own.
    """
    from matplotlib.figure import Figure

    blocks = {
        scale: tables.best(groups, MAX_PANELS)
        for scale, groups in list(tables.scales.items())[:MAX_SCALES]
    }
    columns = min(_COLUMNS, max(len(groups) for groups in blocks.values()))
    heights = [-(-len(groups) // columns) for groups in blocks.values()]
    if columns == 1:  # Blocks of one archive each stand side by side.
        across = min(3, len(blocks))
        heights = [1] * -(-len(blocks) // across)
    else:
        across = 1
    width = 2.7 * columns + 1.1
    figure = Figure(figsize=(width * across, 3.0 * sum(heights)), layout="constrained")
    parts = figure.subfigures(len(heights), across, height_ratios=heights, squeeze=False)
    for block, (scale, groups) in zip(parts.flat, blocks.items(), strict=False):
        _heatmap_block(block, tables, groups, runs_dir, columns)
        add_heading(block, scale, inches=width)
    shown = [group for groups in blocks.values() for group in groups]
    caption = (
        f"The final archive of each group's run with the median QD score. {_EMPTY}"
        " One colour scale for all archives of a block."
        f"{_beyond_budget(tables, shown)}{shown_text(tables, blocks)}"
    )
    return figure, caption


def overview(tables: Tables, runs_dir: Path) -> tuple["Figure", str]:
    """Returns archives of up to three groups beside the QD score over evaluations."""
    from matplotlib.figure import Figure

    scale, groups = max(tables.scales.items(), key=lambda item: len(item[1]))
    pictured, lines = tables.best(groups, 3), tables.best(groups, MAX_PANELS)
    count = len(pictured)
    figure = Figure(figsize=(2.45 * count + 4.6, 3.6), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[5.2, 1], squeeze=False)[:, 0]
    left, right = top.subfigures(1, 2, width_ratios=[2.45 * count + 0.7, 3.9], squeeze=False)[0]
    _heatmap_block(left, tables, pictured, runs_dir, count)
    ax = right.subplots()
    draw_curves(ax, tables, lines, "qd_score")
    add_legend(ax if len(lines) <= 4 else right, ax, tables, lines)
    which = "each group" if count == len(groups) else f"the best {count} of {len(groups)} groups"
    caption = (
        f"{scale}. Maps: the final archive of {which}, of the run with the median QD score."
        f" {_EMPTY} Right: QD score over evaluations; lines and bands:"
        f" {band_text(tables.counts(lines))}. Budget: {_budgets(tables, lines)} evaluations a run."
        f"{_beyond_budget(tables, pictured)}{shown_text(tables, {scale: lines})}"
    )
    add_caption(bottom, caption, inches=figure.get_figwidth())
    return figure, caption


def _heatmap_block(
    block: "SubFigure", tables: Tables, groups: list[str], runs_dir: Path, columns: int
) -> None:
    """Draws an archive a group, `columns` in a row, with one colour scale."""
    rows = [tables.median_run(group) for group in groups]
    runs = [load(results_of(runs_dir / row["id"])) for row in rows]
    limits = color_limits(runs)
    grid = block.subplots(-(-len(groups) // columns), columns, squeeze=False)
    axes = list(grid.flat)
    for position, (ax, group, row, run) in enumerate(zip(axes, groups, rows, runs, strict=False)):
        draw_archive(ax, run, limits)
        ax.set_title(f"{group}\n", linespacing=1.1)
        ax.annotate(
            f"seed {run.config['seed']}, {budget_text(row)}",
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
        if position + columns < len(groups):
            ax.set_xlabel("")
            ax.set_xticklabels([])
    for ax in axes[len(groups) :]:
        ax.set_visible(False)
    _color_bar(block, axes[: len(groups)], runs, limits)


def _color_bar(
    figure: "Figure | SubFigure", axes: list["Axes"], runs: list[Run], limits: Limits
) -> None:
    look: dict[str, Any] = {"extend": beyond(runs, limits), "extendfrac": 0.03}
    bar = figure.colorbar(color_scale(limits), ax=axes, pad=0.02, aspect=25, **look)
    bar.set_label("Objective")
    bar.outline.set_visible(False)
    short_numbers(bar.ax.yaxis, 6)


def _beyond_budget(tables: Tables, groups: list[str]) -> str:
    """Returns a warning if an archive shown comes from beyond its row's budget."""
    further = [_is_beyond(tables.median_run(group)) for group in groups]
    if not any(further):
        return ""
    return (
        f" {sum(further)} of these runs went on beyond the budget of the table, for a larger one:"
        " only the final archive is kept, and that is what is shown."
    )


def _is_beyond(run: "pd.Series") -> bool:
    return bool(run["total_evaluations"] > run["evaluations"])


def _budgets(tables: Tables, groups: list[str]) -> str:
    means = tables.table[tables.table["group"].isin(groups)]["evaluations_mean"]
    low, high = number(means.min()), number(means.max())
    return low if low == high else f"{low} to {high}"
