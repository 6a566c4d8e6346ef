"""Learning curves of a search: each setting's line ends where the setting stopped."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from qdsweep.analysis.figures.figure import Drawn
from qdsweep.analysis.figures.marks import COLORS, Block, Mark
from qdsweep.analysis.figures.panels import lay_out
from qdsweep.analysis.figures.style import NOTE, figure_width, short_numbers
from qdsweep.analysis.search import Placed, Searched
from qdsweep.analysis.text import plural
from qdsweep.metrics import Metric
from qdsweep.records.metrics import column_of, read_metrics, read_rows
from qdsweep.records.run_dir import RunDir

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SECTION = "Search"
MOST_NAMED = 5
_POINTS = 200
_STOPPED, _WHOLE = Mark("#b4b4b4"), Mark("#7a7a7a")


def search_curves(search: Searched, runs_dir: Path) -> Drawn:
    """Draws the curve of each setting as far as the search took it."""
    import pandas as pd

    named = search.finalists[: 1 if search.is_pbt else MOST_NAMED]
    whole = {one.setting for one in search.finalists}
    looks = {one.setting: Mark(color) for one, color in zip(named, COLORS, strict=False)}
    entries = [(search.label(one), looks[one.setting]) for one in named]
    if len(whole) > len(named):
        entries.append(("others with the whole budget", _WHOLE))
    if len(search.last) > len(whole):
        entries.append(("stopped earlier", _STOPPED))
    width = figure_width(8)
    figure, (part,) = lay_out({"": [Block("", entries)]}, 1, width, 0.55 * width)
    ax = part.panel.subplots()
    tables, failed = [], False
    for one in reversed(search.last):  # the best on top
        curve = setting_curve(search, one, runs_dir)
        if curve.empty:
            continue
        tables.append(curve)
        failed = failed or one.failed is not None
        mark = looks.get(one.setting, _WHOLE if one.setting in whole else _STOPPED)
        _draw(ax, curve, mark, one, bold=one.setting in looks)
    _add_rungs(ax, search)
    unit = search.unit.capitalize()
    ax.set(xlabel=f"{unit} of a run", ylabel=search.metric.heading)
    ax.set_xlim(0, None)
    if search.metric.from_zero:
        ax.set_ylim(0, None)
    ax.grid(True, axis="y")
    short_numbers(ax.xaxis)
    short_numbers(ax.yaxis)
    part.add_legend("")
    caption = (
        f"{search.metric.label} of {plural(len(search.last), 'setting')}, the mean over the seeds"
        " that each had in the end. A line ends where its setting stopped"
        f"{'; a cross: it failed' if failed else ''}. Dotted: where the search decided, with how"
        " many settings came so far."
    )
    if len(tables) < len(search.last):
        missing = plural(len(search.last) - len(tables), "setting")
        caption += f" Not drawn: {missing} that failed before a first iteration."
    data = pd.concat(tables[::-1], ignore_index=True)
    return Drawn("search_curves", SECTION, "Learning curves of the search", caption, figure, data)


def setting_curve(search: Searched, one: Placed, runs_dir: Path) -> "pd.DataFrame":
    """Returns setting, what was spent and the mean score over seeds, up to where it stopped.

    Empty where a run has no row: it failed at once.
    """
    import pandas as pd

    axis, seeds = column_of(search.unit), []
    for run in one.runs.values():
        path = RunDir(runs_dir / run).state.metrics
        if read_rows(path):
            table = read_metrics(path)
            # It ends with the first iteration that reaches the budget, as the score is of that.
            seeds.append(table[: int(np.searchsorted(table[axis], one.level.budget)) + 1])
    if len(seeds) < len(one.runs) or any(table.empty for table in seeds):
        return pd.DataFrame()
    first = min(seeds, key=len)
    kept = np.unique(np.linspace(0, len(first) - 1, _POINTS).round().astype(int))
    spent = first[axis].to_numpy(float)[kept]
    scores = [
        np.interp(spent, table[axis].to_numpy(float), _scores(table, search.metric))
        for table in seeds
    ]
    mean = search.metric.factor * np.mean(scores, axis=0)
    return pd.DataFrame({"setting": one.setting, search.unit: spent, "score": mean})


def _scores(table: "pd.DataFrame", metric: Metric) -> np.ndarray:
    """Returns what decides, or what stands for it in an archive without cells."""
    own = table[metric.name]
    return (own if own.notna().any() else table[metric.always.name]).to_numpy(float)


def _draw(ax: "Axes", curve: "pd.DataFrame", mark: Mark, one: Placed, *, bold: bool) -> None:
    x, y = (curve.iloc[:, place].to_numpy() for place in (1, 2))
    ax.plot(x, y, color=mark.color, linewidth=1.9 if bold else 0.8, alpha=1 if bold else 0.75)
    end = "x" if one.failed is not None else "o"
    size = 5 if one.failed is not None else 4 if bold else 2.2
    ax.plot(x[-1:], y[-1:], marker=end, markersize=size, color=mark.color, clip_on=False, zorder=3)


def _add_rungs(ax: "Axes", search: Searched) -> None:
    """Draws where the search decided, and how many settings came so far."""
    budgets = sorted({level.budget for level in search.levels})
    for budget in budgets:
        count = len({one.setting for one in search.placed if one.level.budget == budget})
        ax.axvline(budget, color="0.55", linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
        if len(budgets) <= 8:
            ax.annotate(
                plural(count, "setting") if budget == budgets[0] else str(count),
                (budget, 1),
                (0, 3),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="center",
                **NOTE,
            )
