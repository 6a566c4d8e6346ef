"""The effect of swept parameters: parallel coordinates, slices and heatmaps of pairs."""

import itertools
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.columns import STATISTICS
from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.combinations import (
    MOST_TICKS,
    Axis,
    Combinations,
    combinations,
    log_text,
    nice_numbers,
    parallel_coordinates,
    score_limits,
    seed_count,
)
from qdsweep.analysis.figures.figure import Drawn, Omitted
from qdsweep.analysis.figures.heatmap import color_scale
from qdsweep.analysis.figures.style import EMPTY_CELL, figure_width, line_style
from qdsweep.analysis.legend import COLORMAP, COLORS, Marks
from qdsweep.analysis.search_progress import next_levels
from qdsweep.analysis.selection import others_text, short_names
from qdsweep.analysis.statistics import half_width
from qdsweep.sweep.groups import values_label
from qdsweep.text import apart, listed, plural, short

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_SECTION = "Sweep"
_MAX_SCORE_SCALES = 4
_MAX_LINES = 12
MAX_PAIRS = 6
_MOST_VALUES = 20  # of a name, in a heatmap


def sweep_views(data: SweepData) -> list[Drawn | Omitted]:
    """Returns what the sweep's shape allows, each within one scale.

    Two or more parameters give parallel coordinates and heatmaps of pairs. Every numeric parameter
    gives a slice. A search has none, because its finalists are a biased selection.
    """
    if next_levels(data.plan.levels):
        return []
    views: list[Drawn | Omitted] = []
    every = combinations(data)
    more = others_text(sum(len(combined.table) for combined in every[_MAX_SCORE_SCALES:]))
    every = every[:_MAX_SCORE_SCALES]
    tasks = short_names([combined.scale for combined in every])
    for position, combined in enumerate(every):
        end = f"_{position + 1}" if position else ""
        where = f" {combined.scale}.{more}" if len(data.score_scales) > 1 else ""
        drawn: list[Drawn | Omitted] = []
        if len(combined.axes) > 1:
            name = f"parallel_coordinates{end}"
            drawn.append(parallel_coordinates(combined, name, _SECTION, where))
        for axis in combined.axes:
            if axis.numbers is not None:
                name = re.sub(r"[^A-Za-z0-9_.]+", "-", axis.name)
                drawn.append(one_slice(combined, axis, f"slice_{name}{end}", where, data.marks))
        drawn += pair_heatmaps(combined, f"pairs{end}", where)
        if combined.table["mean"].nunique() == 1:
            why = f"the mean {combined.score.phrase} is the same for all swept values"
            drawn = [Omitted(view.name, view.section, view.title, why) for view in drawn]
        about = f": {tasks[position]}" if len(every) > 1 else ""
        views += [replace(view, title=f"{view.title}{about}") for view in drawn]
    return views


def one_slice(combined: Combinations, axis: Axis, name: str, where: str, marks: Marks) -> Drawn:
    """Draws the score over one swept parameter, a line for each combination of the others."""
    from matplotlib.figure import Figure

    rest = [other for other in combined.axes if other.name != axis.name]
    others, called = [other.name for other in rest], [other.label for other in rest]
    known = combined.table[combined.table[axis.name] != ""]  # where it was drawn
    table = known.assign(**{axis.name: known[axis.name].astype(float)})
    parts = [(_label(part, rest), part) for _, part in _parts(table, others)]
    lines = [(label, part) for label, part in parts if len(part) > 1]
    shown = sorted(lines, key=lambda line: -line[1]["mean"].max())[:_MAX_LINES]
    shown = [line for line in lines if any(line is best for best in shown)]  # in the sweep's order
    longest = max((len(label) for label, _ in shown), default=0)
    width = figure_width(5.0 + 0.065 * longest)
    figure = Figure(figsize=(width, 3.4), layout="constrained")
    ax = figure.subplots()
    bars: dict[str, Any] = {"markersize": 3.5, "capsize": 2.5, "elinewidth": 1}
    drawn: list[Any] = []
    for label, part in shown:
        part = part.sort_values(axis.name)
        look = line_style(marks.along(part["group"].iloc[0], axis.name)) | bars
        look |= {"marker": look["marker"] or "o", "markevery": None}
        errors = np.nan_to_num(half_width(part["se"], part["n"]))
        drawn.append(ax.errorbar(part[axis.name], part["mean"], errors, label=label, **look))
    if not shown:
        ax.scatter(table[axis.name], table["mean"], s=14, color=COLORS[0], alpha=0.7)
    _number_axis(ax, axis)
    ax.set(xlabel=axis.label, ylabel=combined.score.heading)
    ax.grid(True)
    if others and shown:
        place = "right center" if width > 6 else "lower center"
        look = {"loc": f"outside {place}", "fontsize": 8 if len(shown) <= 6 else 7}
        figure.legend(drawn, [label for label, _ in shown], handlelength=3, **look)
    points = known
    if shown:
        points = points.loc[sorted(index for _, part in shown for index in part.index)]
        noun = "value" if len(others) == 1 else f"of {plural(len(shown), 'combination')}"
        several = f", one line for each {noun} of {listed(called)}" if others else ""
        caption = (
            f"Final {combined.score.phrase} over {axis.label}{several}. Points and bars: mean"
            f" and pointwise 95 % interval over {seed_count(points['n'])}."
        )
        if len(lines) > len(shown):
            caption += f" Shown: the best {len(shown)} of {len(lines)}, by their highest mean."
    else:
        caption = (
            f"Final {combined.score.phrase} over {axis.label}. Each dot is one combination of swept"
            f" values, mean over {seed_count(points['n'])}. The other values vary, too."
        )
    data = points[[axis.name, *others, *STATISTICS]]
    title = f"{combined.score.heading} over {axis.label}"
    caption += f"{combined.missing_text}{log_text([axis])}{where}"
    return Drawn(name, _SECTION, title, caption, figure, data)


def pair_heatmaps(combined: Combinations, name: str, where: str) -> list[Drawn]:
    """Draws the mean score of each pair of values of two parameters, over all other values."""
    import pandas as pd
    from matplotlib.figure import Figure

    axes_of = itertools.combinations(combined.axes, 2)
    pairs = [(a, b, _means(combined.table, a, b)) for a, b in axes_of]
    pairs = [pair for pair in pairs if _fills(pair)]
    if not pairs:
        return []
    # The pairs that differ most come first.
    widest = sorted(pairs, key=lambda pair: -np.ptp(pair[2]["mean"]))[:MAX_PAIRS]
    pairs = [pair for pair in pairs if any(pair is wide for wide in widest)]
    width = figure_width(3.5 * min(3, len(pairs)) + 1.0)
    across = min(3, len(pairs), max(int(width / 2.4), 1))
    down = -(-len(pairs) // across)
    figure = Figure(figsize=(width, 3.0 * down), layout="constrained")
    limits = score_limits(pd.concat([means["mean"] for *_, means in pairs]))
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    for ax, (a, b, means) in zip(axes, pairs, strict=False):
        _draw_pair(ax, a, b, means, limits)
    for ax in axes[len(pairs) :]:
        ax.set_visible(False)
    bar = figure.colorbar(color_scale(limits), ax=axes[: len(pairs)], pad=0.02, aspect=25)
    bar.set_label(f"{combined.score.heading}, mean")
    bar.outline.set_visible(False)
    data = pd.concat(
        [
            pd.DataFrame(
                {"x_name": a.name, "x": means[a.name], "y_name": b.name, "y": means[b.name]}
                | {part: means[part] for part in ("mean", "n")}
            )
            for a, b, means in pairs
        ]
    )
    count = len(combined.axes)
    over = ", over all values of the other parameters" if count > 2 else ""
    caption = (
        f"Mean final {combined.score.phrase} of pairs of swept values{over}. Each mean is over"
        f" {seed_count(data['n'], 'run')}.{combined.missing_text}{where}"
    )
    if any(len(means) < len(a.values) * len(b.values) for a, b, means in pairs):
        caption += " Grey: the pair is not in the sweep."
    possible = count * (count - 1) // 2
    if len(pairs) < possible:
        caption += f" Shown: {len(pairs)} of {possible} pairs."
    return [Drawn(name, _SECTION, "Pairs of parameters", caption, figure, data)]


def _draw_pair(
    ax: "Axes", a: Axis, b: Axis, means: "pd.DataFrame", limits: tuple[float, float]
) -> None:
    grid = np.full((len(b.values), len(a.values)), np.nan)
    for x, y, mean in zip(means[a.name], means[b.name], means["mean"], strict=True):
        grid[b.values.index(y), a.values.index(x)] = mean
    ax.set_facecolor(EMPTY_CELL)
    low, high = limits
    ax.imshow(
        np.ma.masked_invalid(grid), COLORMAP, vmin=low, vmax=high, origin="lower", aspect="auto"
    )
    if max(grid.shape) <= MOST_TICKS:
        for (y, x), mean in np.ndenumerate(grid):
            if np.isfinite(mean):
                color = "black" if (mean - low) / (high - low) > 0.6 else "white"
                size = 8 if len(a.values) <= 5 else 6.5
                ax.text(x, y, short(mean, 3), ha="center", va="center", color=color, fontsize=size)
    long = sum(map(len, a.values)) > 28
    turned: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(range(len(a.values)), a.texts.values(), **(turned if long else {}))
    ax.set_yticks(range(len(b.values)), b.texts.values())
    ax.tick_params(length=0)
    ax.set(xlabel=a.label, ylabel=b.label)
    ax.spines[:].set_visible(False)


def _means(table: "pd.DataFrame", a: Axis, b: Axis) -> "pd.DataFrame":
    """Returns the mean over the other parameters, and the number of runs behind it."""
    table = table[(table[a.name] != "") & (table[b.name] != "")]  # where both were drawn
    groups = table.groupby([a.name, b.name], sort=False)
    return groups.agg(mean=("mean", "mean"), n=("n", "sum")).reset_index()


def _fills(pair: tuple[Axis, Axis, "pd.DataFrame"]) -> bool:
    """Returns whether a heatmap of two parameters is at least half full, and not too fine."""
    a, b, means = pair
    sizes = len(a.values), len(b.values)
    return max(sizes) <= _MOST_VALUES and 2 * len(means) > sizes[0] * sizes[1]


def _parts(table: "pd.DataFrame", names: list[str]) -> list[tuple[Any, "pd.DataFrame"]]:
    return list(table.groupby(names, sort=False)) if names else [((), table)]


def _label(part: "pd.DataFrame", axes: list[Axis]) -> str:
    """Returns the values that the combinations of a line share."""
    values = {axis.name: axis.texts.get(part[axis.name].iloc[0], "") for axis in axes}
    return values_label(values, list(values), {axis.name: axis.label for axis in axes})


def _number_axis(ax: "Axes", axis: Axis) -> None:
    """Labels an axis at the swept values where they are few, else at nice numbers."""
    from matplotlib.ticker import NullLocator

    assert axis.numbers is not None, "categories have no numbers"
    if axis.log:
        ax.set_xscale("log")
        ax.xaxis.set_minor_locator(NullLocator())
    few = len(axis.numbers) <= MOST_TICKS and np.diff(axis.share(axis.numbers)).min() >= 0.08
    places = axis.numbers if few else nice_numbers(axis)
    ax.set_xticks(places, apart(places))
