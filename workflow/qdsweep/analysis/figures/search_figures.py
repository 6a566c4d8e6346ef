"""The figures of a search: the tree of a population, all settings as parallel coordinates."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.combinations import (
    Axis,
    Combinations,
    axis_of,
    log_text,
    parallel_coordinates,
)
from qdsweep.analysis.figures.figure import Drawn, Omitted
from qdsweep.analysis.figures.heatmap import color_scale
from qdsweep.analysis.figures.search_curves import (
    SECTION,
    search_curves,
    search_progress,
    search_ranks,
)
from qdsweep.analysis.figures.style import figure_width, short_numbers
from qdsweep.analysis.legend import COLORMAP, COLORS
from qdsweep.analysis.search_progress import Searched, ancestors, next_levels
from qdsweep.config.model import value_text
from qdsweep.text import listed, plural, short

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


MOST_TRACES = 4
_COPIED: dict[str, Any] = {"color": COLORS[1], "linewidth": 1.0, "alpha": 0.9}
_KEPT: dict[str, Any] = {"color": "0.75", "linewidth": 0.9}
_BEST: dict[str, Any] = {"color": COLORS[0], "linewidth": 2.4, "zorder": 3}
_OTHER: dict[str, Any] = {"color": "0.6", "linewidth": 1.0, "alpha": 0.8}

NAME, TITLE = "search_coordinates", "Parallel coordinates of the search"


def search_tree(search: Searched) -> Drawn:
    """Draws the tree of the population, and below it each key that changes over the budget."""
    from matplotlib.figure import Figure

    table = lineage(search)
    columns = {name: f"value_{search.column(name)}" for name in search.names}
    every = [_axis(name, table[column], search) for name, column in columns.items()]
    every = [axis for axis in every if len(axis.values) > 1]
    axes = every[:MOST_TRACES]
    width = figure_width(8)
    tall = 0.25 * len(table["place"].unique()) + 1.0
    heights = [min(max(tall, 2.2), 5.0), *([1.5] * len(axes))]
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    grid = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)
    panels = grid[:, 0]
    _draw_tree(panels[0], table, search)
    for ax, axis in zip(panels[1:], axes, strict=True):
        _draw_trace(ax, table, axis)
    panels[-1].set_xlabel(f"{search.unit.capitalize()} of a run")
    short_numbers(panels[-1].xaxis)
    count = int(table["took_over"].sum())
    caption = (
        "Population-based training: each row is a member of the population, each dot a generation."
        f" The colour of a dot is the {search.metric.phrase} at the end of the generation. Orange:"
        " a member took over the state of another one and changed its settings"
        f" ({plural(count, 'time')}). Black: the ancestors of the best member at the end."
    )
    if axes:
        names = listed([axis.label for axis in axes])
        caption += f" Below: {names} of every member; blue: of the ancestors of the best."
    if len(every) > MOST_TRACES:
        caption += f" Shown: {MOST_TRACES} of {len(every)} parameters."
    title = "Tree of the population"
    return Drawn("search_tree", SECTION, title, caption, figure, table)


def lineage(search: Searched) -> "pd.DataFrame":
    """Returns a row for each place of each generation.

    Columns: generation, place, budget, parent (a place of the generation before), score, and the
    swept values. took_over: whether the parent is another place. best: whether it is an ancestor
    of the best at the end.
    """
    import pandas as pd

    number = {level.name: place for place, level in enumerate(search.levels)}
    best = {(trial.level.name, trial.place) for trial in ancestors(search)}
    rows = [
        {
            "generation": number[trial.level.name],
            "place": trial.place,
            "budget": trial.level.budget,
            "parent": trial.parent,
            "took_over": trial.parent is not None and trial.parent != trial.place,
            "best": (trial.level.name, trial.place) in best,
            "score": np.nan if trial.score is None else search.shown(trial.score),
            **{
                f"value_{search.column(name)}": value_text(trial.values[name])
                for name in search.names
            },
        }
        for trial in search.placed
    ]
    return pd.DataFrame(rows).astype({"parent": "Int64"})


def _axis(name: str, texts: Iterable[str], search: Searched) -> Axis:
    values = list(dict.fromkeys(texts))
    logged = name in search.drawn and search.drawn[name].kind.startswith("log")
    return axis_of(search.column(name), values, search.called.get(name), logged=logged)


def _draw_tree(ax: "Axes", table: "pd.DataFrame", search: Searched) -> None:
    from matplotlib.ticker import MaxNLocator

    budgets = dict(zip(table["generation"], table["budget"], strict=True))
    for row in table.dropna(subset=["parent"]).itertuples():
        x = budgets[row.generation - 1], row.budget
        look = _COPIED if row.took_over else _KEPT
        ax.plot(x, (row.parent, row.place), zorder=2 if row.took_over else 1, **look)
        if row.best:
            ax.plot(x, (row.parent, row.place), color="black", linewidth=2.2, zorder=3)
    score = table["score"]
    limits = float(score.min()), float(score.max())
    ax.scatter(
        table["budget"], table["place"], c=score, cmap=COLORMAP, vmin=limits[0], vmax=limits[1],
        s=34, edgecolors="white", linewidths=0.6, zorder=4, clip_on=False,
    )  # fmt: skip
    failed = table[score.isna()]
    ax.plot(failed["budget"], failed["place"], "x", color="0.3", zorder=5)
    bar = ax.figure.colorbar(color_scale(limits), ax=ax, pad=0.02, aspect=20)
    bar.set_label(search.metric.heading)
    bar.outline.set_visible(False)
    ax.set_ylabel("member")
    ax.invert_yaxis()
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.tick_params(length=0)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_trace(ax: "Axes", table: "pd.DataFrame", axis: Axis) -> None:
    numeric = axis.numbers is not None
    ends = dict(zip(table["generation"], table["budget"], strict=True))
    for row in table.to_dict("records"):
        text, start = row[f"value_{axis.name}"], ends.get(row["generation"] - 1, 0)
        if text:
            y = float(text) if numeric else axis.values.index(text)
            ax.plot((start, row["budget"]), (y, y), **(_BEST if row["best"] else _OTHER))
    if numeric and axis.log:
        ax.set_yscale("log")
        from matplotlib.ticker import FuncFormatter, NullFormatter

        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        ax.yaxis.set_minor_formatter(NullFormatter())
    elif not numeric:
        ax.set_yticks(range(len(axis.values)), axis.values)
    ax.set_ylabel(axis.label)
    ax.grid(True, axis="y")


def search_combinations(search: Searched) -> Combinations | None:
    """Returns the last trial of all settings with a score; `group`: their numbers.

    None where fewer than two settings differ in fewer than two parameters.
    """
    import pandas as pd

    every = [trial for trial in search.last if trial.score is not None]
    texts = {
        name: [value_text(trial.values[name]) for trial in every]
        for name in search.names
        if len({value_text(trial.values[name]) for trial in every}) > 1
    }
    if len(every) < 2 or len(texts) < 2:
        return None
    axes = [_axis(name, values, search) for name, values in texts.items()]
    swept = {search.column(name): values for name, values in texts.items()}
    about = {
        "mean": [search.shown(trial.score or 0.0) for trial in every],
        "se": math.nan,
        "n": [len(trial.level.seeds) for trial in every],
        "group": [str(trial.setting) for trial in every],
        "budget": [trial.level.budget for trial in every],
        "why": [trial.why for trial in every],
    }
    return Combinations("", axes, search.metric, pd.DataFrame({**swept, **about}))


def stopped_early(search: Searched) -> set[str]:
    """Returns the numbers of the settings that had less than the whole budget."""
    whole = {trial.setting for trial in search.finalists}
    return {str(trial.setting) for trial in search.last if trial.setting not in whole}


def search_coordinates(search: Searched) -> Drawn | Omitted:
    """Draws a line for each setting, which ends at the score of its last trial."""
    combined = search_combinations(search)
    if combined is None:
        why = "fewer than two settings have a score, or fewer than two parameters differ"
        return Omitted(NAME, SECTION, TITLE, why)
    table, pale = combined.table, stopped_early(search)
    drawn = parallel_coordinates(combined, NAME, SECTION, "", pale)
    caption = (
        f"Each line is one of {plural(len(table), 'setting')}. Its end and colour show the"
        f" {search.metric.phrase} of the last trial, mean over the seeds of that trial."
    )
    count = int(table["group"].isin(pale).sum())
    if count:
        caption += f" Pale: the {count} that stopped earlier, with the score at a smaller budget."
    if (table[combined.names] == "").any(axis=None):
        caption += " A gap: the setting does not have that parameter."
    data = table.rename(columns={"group": "setting"})[
        [*combined.names, "mean", "n", "setting", "budget"]
    ]
    return replace(drawn, title=TITLE, caption=caption + log_text(combined.axes), data=data)


def search_figures(data: SweepData) -> list[Drawn | Omitted]:
    """Draws the figures of a search; none without a search."""
    search = data.search
    if search is None or not search.placed:
        return []
    has_rungs = not search.is_pbt and next_levels(search.levels)
    return [
        *([search_tree(search)] if search.is_pbt else []),
        search_curves(search, data.runs_dir),
        *([search_ranks(search)] if has_rungs else []),
        search_progress(search),
        search_coordinates(search),
    ]
