"""Scores of a search: learning curves, the best so far, rank correlations between rungs."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qdsweep.analysis.figures.figure import Drawn, Omitted
from qdsweep.analysis.figures.layout import lay_out
from qdsweep.analysis.figures.style import (
    NOTE,
    draw_line,
    figure_width,
    short_numbers,
    start_at_zero,
)
from qdsweep.analysis.legend import COLORS, NEUTRAL, Block, Mark
from qdsweep.analysis.search_progress import Placed, Searched
from qdsweep.records.metrics_file import read_metrics, read_rows, unit_column
from qdsweep.records.paths import RunDir
from qdsweep.search.levels import cost, whole_budget
from qdsweep.text import number, plural, short_number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


SECTION = "Search"
MOST_NAMED = 5
_POINTS = 200
_STOPPED, _WHOLE = Mark("#b4b4b4"), Mark("#7a7a7a")

_QUANTILES = (0.1, 0.5, 0.9)
_MOST_PANELS = 6
FEWEST = 8  # settings that have a correlation
NEAR_ZERO = 0.2
_FEWEST_WHOLE = 5  # settings with the whole budget that a band needs

NAME, TITLE = "search_ranks", "Rank correlation between rungs"


def search_curves(search: Searched, runs_dir: Path) -> Drawn:
    """Draws the curve of each setting up to its last trial."""
    import pandas as pd

    named, whole = search.finalists[: 1 if search.is_pbt else MOST_NAMED], _whole(search)
    looks = {trial.setting: Mark(color) for trial, color in zip(named, COLORS, strict=False)}
    entries = [(search.label(trial), looks[trial.setting]) for trial in named]
    if len(whole) > len(named):
        entries.append(("others with the whole budget", _WHOLE))
    if len(search.last) > len(whole):
        entries.append(("stopped earlier", _STOPPED))
    width = figure_width(8)
    figure, (part,) = lay_out({"": [Block("", entries)]}, 1, width, 0.55 * width)
    ax = part.panel.subplots()
    tables, failed = [], False
    for trial in reversed(search.last):  # the best on top
        curve = setting_curve(search, trial, runs_dir)
        if curve.empty:
            continue
        tables.append(curve)
        failed = failed or trial.failed is not None
        mark = looks.get(trial.setting, _WHOLE if trial.setting in whole else _STOPPED)
        _draw(ax, curve, mark, trial, bold=trial.setting in looks)
    _add_rungs(ax, search)
    ax.set(xlabel=f"{search.unit.capitalize()} of a run", ylabel=search.metric.heading)
    ax.set_xlim(0, None)
    if search.metric.from_zero:
        start_at_zero(ax)
    ax.grid(True, axis="y")
    short_numbers(ax.xaxis)
    short_numbers(ax.yaxis)
    part.add_legend("")
    caption = (
        f"{search.metric.label} of {plural(len(search.last), 'setting')}, mean over the seeds of"
        " the last trial. A line ends where its setting stopped"
        f"{', with a cross if it failed' if failed else ''}. Dotted lines: budgets at which the"
        " search decided, with the number of settings that reached them."
    )
    if len(tables) < len(search.last):
        missing = plural(len(search.last) - len(tables), "setting")
        caption += f" Not drawn: {missing} that failed before a first iteration."
    data = pd.concat(tables[::-1], ignore_index=True)
    return Drawn("search_curves", SECTION, "Learning curves of the search", caption, figure, data)


def setting_curve(search: Searched, trial: Placed, runs_dir: Path) -> "pd.DataFrame":
    """Returns setting, spent budget and mean score over seeds, up to where the setting stopped.

    Empty where a run has no row because it failed at once.
    """
    import pandas as pd

    axis, seeds = unit_column(search.unit), []
    for run in trial.runs.values():
        path = RunDir(runs_dir / run).state.metrics
        if read_rows(path):
            table = read_metrics(path)
            # It ends with the first iteration that reaches the budget, as the score is of that.
            seeds.append(table[: int(np.searchsorted(table[axis], trial.level.budget)) + 1])
    if len(seeds) < len(trial.runs) or any(table.empty for table in seeds):
        return pd.DataFrame()
    first = min(seeds, key=len)
    points = np.unique(np.linspace(0, len(first) - 1, _POINTS).round().astype(int))
    spent = first[axis].to_numpy(float)[points]
    decider = search.metric
    scores = []
    for table in seeds:  # an archive without cells has another score
        name = decider.name if table[decider.name].notna().any() else decider.always.name
        scores.append(np.interp(spent, *(table[key].to_numpy(float) for key in (axis, name))))
    mean = decider.factor * np.mean(scores, axis=0)
    return pd.DataFrame({"setting": trial.setting, search.unit: spent, "score": mean})


def _draw(ax: "Axes", curve: "pd.DataFrame", mark: Mark, trial: Placed, *, bold: bool) -> None:
    x, y = (curve.iloc[:, place].to_numpy() for place in (1, 2))
    ax.plot(x, y, color=mark.color, linewidth=1.9 if bold else 0.8, alpha=1 if bold else 0.75)
    end = "x" if trial.failed is not None else "o"
    size = 5 if trial.failed is not None else 4 if bold else 2.2
    ax.plot(x[-1:], y[-1:], marker=end, markersize=size, color=mark.color, clip_on=False, zorder=3)


def _add_rungs(ax: "Axes", search: Searched) -> None:
    """Draws the budgets at which the search decided, and how many settings reached them."""
    budgets = sorted({level.budget for level in search.levels})
    for budget in budgets:
        count = len({trial.setting for trial in search.placed if trial.level.budget == budget})
        ax.axvline(budget, color="0.55", linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
        if len(budgets) <= 8:
            text = plural(count, "setting") if budget == budgets[0] else str(count)
            where: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "ha": "center"}
            ax.annotate(text, (budget, 1), (0, 3), textcoords="offset points", **where, **NOTE)


def search_progress(search: Searched) -> Drawn:
    """Draws the best score so far, and a band of random search where the search drew settings."""
    import pandas as pd

    own, rival = progress(search), random_search(search)
    has_band = len(_known(search)) - _stopped(search) >= _FEWEST_WHOLE
    if not has_band:
        rival[["low", "high"]] = math.nan
    entries = [("this search", Mark(COLORS[0]))]
    if len(rival):
        name = "random search, estimated" if _stopped(search) else "random search"
        entries.append((name, Mark(NEUTRAL, dash=1)))
    width = figure_width(6.5)
    figure, (part,) = lay_out({"": [Block("", entries)]}, 1, width, 0.6 * width)
    ax = part.panel.subplots()
    ax.step(own["spent"], own["best"], where="post", color=COLORS[0], linewidth=1.9)
    ax.plot(own["spent"][-1:], own["best"][-1:], "o", color=COLORS[0], clip_on=False)
    if len(rival):
        looks = (rival[name] for name in ("spent", "median", "low", "high"))
        draw_line(ax, "", entries[1][1], *looks)
    ax.set(xlabel=f"{search.unit.capitalize()} in all", ylabel=f"Leader's {search.metric.phrase}")
    ax.set_xlim(0, None)
    ax.grid(True)
    short_numbers(ax.xaxis)
    short_numbers(ax.yaxis)
    part.add_legend("")
    caption = (
        f"The {search.metric.phrase} of the leader so far over the {search.unit} of all runs, in"
        " the order of the plan. The leader is the best setting at the largest budget so far. Its"
        " score is the mean over its seeds, so more seeds may lower it."
    )
    if len(rival):
        caption += _about_random(search, has_band)
    data = pd.concat([own.assign(kind="search"), rival.assign(kind="random")], ignore_index=True)
    return Drawn("search_progress", SECTION, "Best so far", caption, figure, data)


def progress(search: Searched) -> "pd.DataFrame":
    """Returns the budget spent after each trial, and the leader's score at that time.

    The leader is the best setting at the largest budget so far, as scores of smaller budgets are
    not comparable. With more seeds its score may fall.
    """
    import pandas as pd

    spent, rows = 0, []
    leader = (0, -math.inf)
    for trial in search.placed:
        spent += cost(search.levels, trial.level) // trial.level.places
        if trial.score is not None:
            leader = max(leader, (trial.level.budget, trial.score))
        rows.append((spent, search.shown(leader[1]) if leader[0] else math.nan))
    return pd.DataFrame(rows, columns=["spent", "best"])


def random_search(search: Searched) -> "pd.DataFrame":
    """Returns the best of 1, 2, ... settings at random, each with the whole budget and one seed.

    The settings are those that the search began with, in every order: the quantiles are exact,
    no order is drawn. Only some of them had the whole budget; see `at_the_end` for the others.

    Returns:
        spent, median, low and high (10 % and 90 %); empty where nothing was drawn beforehand.
    """
    import pandas as pd

    columns = ["spent", "median", "low", "high"]
    scores = np.sort(at_the_end(search))
    most = whole_budget(search.levels)
    total = progress(search)["spent"].iloc[-1]
    rows = [
        (many * most, *sorted(map(search.shown, quantiles)))  # the smallest may be the best
        for many, quantiles in enumerate(bests(scores, _QUANTILES), start=1)
        if many * most <= total
    ]
    return pd.DataFrame(rows, columns=["spent", "low", "median", "high"])[columns]


def bests(scores: np.ndarray, shares: Sequence[float]) -> Iterator[list[float]]:
    """Yields quantiles of the best of 1, 2, ... of some scores, drawn without replacement.

    Args:
        scores: ``(n,)`` ascending.
        shares: The quantiles.
    """
    n = len(scores)
    places, below = np.arange(1, n + 1), np.ones(n)
    for drawn in range(n):
        # The share of draws whose best is at most the score at each place.
        below = below * np.maximum(places - drawn, 0) / (n - drawn)
        quantiles = np.searchsorted(below, np.array(shares) - 1e-12)
        yield [float(score) for score in scores[quantiles]]


def at_the_end(search: Searched) -> list[float]:
    """Returns the score of each setting that was known beforehand, with the whole budget.

    For one that stopped it is an estimate: its last score, plus the median gain of promoted
    settings at each later budget. A setting that failed is never the best.
    """
    first = _known(search)
    gains: dict[tuple[int, int], list[float]] = {}
    for before, trial in search.pairs:
        key = before.level.budget, trial.level.budget
        gains.setdefault(key, []).append((trial.score or 0.0) - (before.score or 0.0))
    typical = {key: median(gained) for key, gained in gains.items()}
    own = [trial for trial in search.last if trial.setting in first]
    known = [_extended(trial, trial.score, typical) for trial in own if trial.score is not None]
    return known + [min(known)] * (len(own) - len(known)) if known else []


def _extended(trial: Placed, score: float, gains: dict[tuple[int, int], float]) -> float:
    budget = trial.level.budget
    while (step := next((key for key in gains if key[0] == budget), None)) is not None:
        score, budget = score + gains[step], step[1]
    return score


def _about_random(search: Searched, has_band: bool) -> str:
    count, open_ones = len(_known(search)), _stopped(search)
    text = (
        f" Dashed{', with a band from 10 to 90 %' if has_band else ''}: random search (median)"
        " with the whole budget and one seed for each setting. It is the best of 1, 2, ... of the"
        f" same {plural(count, 'setting')}, over all their orders."
    )
    if open_ones:
        text += (
            f" Not a measurement: the end scores of {open_ones} of {plural(count, 'setting')} are"
            " estimated (the last score plus the median gain of promoted settings)."
        )
    return text


def _known(search: Searched) -> set[int]:
    """Returns the settings that were known beforehand."""
    return {trial.setting for trial in search.placed if trial.level.kind == "known"}


def _stopped(search: Searched) -> int:
    """Returns how many of them had less than the whole budget."""
    return len(_known(search) - _whole(search))


def _whole(search: Searched) -> set[int]:
    """Returns the settings that had the whole budget."""
    return {trial.setting for trial in search.finalists}


class Step(NamedTuple):
    """The settings that went from one budget to the next.

    Attributes:
        budgets: The two budgets.
        scores: The scores of each setting at both.
        stopped: The scores at the first of those that stopped there.
        correlation: Spearman's; nan of fewer than `FEWEST` settings, or of equal scores.
    """

    budgets: tuple[int, int]
    scores: list[tuple[float, float]]
    stopped: list[float]
    correlation: float

    @property
    def says_little(self) -> bool:
        """Whether the first budget hardly predicts the best setting at the second."""
        return self.correlation < NEAR_ZERO


def steps(search: Searched) -> list[Step]:
    """Returns the steps of a search from budget to budget, all brackets and batches together."""
    by_budgets: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for before, trial in search.pairs:
        scores = search.shown(before.score or 0.0), search.shown(trial.score or 0.0)
        by_budgets.setdefault((before.level.budget, trial.level.budget), []).append(scores)
    scored = [trial for trial in search.last if trial.score is not None]
    last = [(trial.level.budget, search.shown(trial.score or 0.0)) for trial in scored]
    return [
        Step(
            budgets,
            scores,
            [shown for budget, shown in last if budget == budgets[0]],
            spearman(scores),
        )
        for budgets, scores in sorted(by_budgets.items())
    ]


def spearman(scores: list[tuple[float, float]]) -> float:
    """Returns Spearman's rank correlation of pairs; nan where it is not defined."""
    import pandas as pd

    if len(scores) < FEWEST:
        return math.nan
    first, second = (pd.Series(column).rank() for column in zip(*scores, strict=True))
    if first.nunique() < 2 or second.nunique() < 2:
        return math.nan
    return float(first.corr(second))


def warnings(search: Searched) -> list[str]:
    """Returns a sentence for each budget that hardly predicts the best setting at the next one."""
    if search.is_pbt:  # it has no rungs to choose
        return []
    return [
        f"The scores at {number(step.budgets[0])} {search.unit} hardly predict those at"
        f" {number(step.budgets[1])}: the rank correlation is {number(step.correlation, 2)} over"
        f" the {plural(len(step.scores), 'promoted setting')}. A later first rung (a larger"
        " halving.first) would choose better."
        for step in steps(search)
        if step.says_little
    ]


def search_ranks(search: Searched) -> Drawn | Omitted:
    """Draws the scores at a budget over those at the one before, a panel for each step."""
    import pandas as pd
    from matplotlib.figure import Figure

    every = [step for step in steps(search) if len(step.scores) > 1]
    if not every:
        return Omitted(
            NAME, SECTION, TITLE, "fewer than two settings were promoted to a larger budget"
        )
    shown = every[:_MOST_PANELS]
    across = min(3, len(shown))
    down = math.ceil(len(shown) / across)
    width = figure_width(3.3 * across)
    figure = Figure(figsize=(width, down * (0.95 * width / across)), layout="constrained")
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    for ax in axes[len(shown) :]:
        ax.set_visible(False)
    for ax, step in zip(axes, shown, strict=False):
        _draw_ranks(ax, step, search)
    rows = [(*step.budgets, *scores) for step in every for scores in step.scores]
    data = pd.DataFrame(rows, columns=["budget", "next_budget", "score", "next_score"])
    caption = (
        f"{search.metric.label} of promoted settings, at a budget and at the next one. Ticks below:"
        " settings that stopped there."
    )
    if not all(math.isnan(step.correlation) for step in shown):
        caption += (
            f" ρ: Spearman's rank correlation over {FEWEST} promoted settings or more. Promotion"
            " restricts the range, so ρ does not measure the agreement over all settings."
        )
    if len(shown) < len(every):
        caption += f" Shown: the first {len(shown)} of {len(every)} steps."
    return Drawn(NAME, SECTION, TITLE, caption, figure, data)


def _draw_ranks(ax: "Axes", step: Step, search: Searched) -> None:
    x, y = zip(*step.scores, strict=True)
    ax.scatter(x, y, s=20, color=COLORS[0], alpha=0.85, linewidths=0, zorder=3)
    ax.plot(
        step.stopped, [0] * len(step.stopped), "|", color="0.6", markersize=7, clip_on=False,
        transform=ax.get_xaxis_transform(),
    )  # fmt: skip
    known = "" if math.isnan(step.correlation) else f"ρ = {number(step.correlation, 2)}, "
    note = f"{known}{plural(len(step.scores), 'setting')}"
    color = {"color": COLORS[1]} if step.says_little else {}
    ax.set_title(note, loc="left", **NOTE | color)
    before, after = (f"at {short_number(budget)} {search.unit}" for budget in step.budgets)
    ax.set(xlabel=f"{search.metric.heading}, {before}", ylabel=after)
    ax.grid(True)
    short_numbers(ax.xaxis, 4)
    short_numbers(ax.yaxis, 4)
