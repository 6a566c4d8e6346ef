"""The best score so far over what was spent, beside random search with the same settings."""

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from qdsweep.analysis.figures.figure import Drawn
from qdsweep.analysis.figures.marks import COLORS, NEUTRAL, Block, Mark
from qdsweep.analysis.figures.panels import lay_out
from qdsweep.analysis.figures.search_curves import SECTION
from qdsweep.analysis.figures.style import draw_line, figure_width, short_numbers
from qdsweep.analysis.search import Placed, Searched
from qdsweep.analysis.text import plural
from qdsweep.strategies.costs import cost, whole_budget

if TYPE_CHECKING:
    import pandas as pd

_QUANTILES = (0.5, 0.1, 0.9)


def search_progress(search: Searched) -> Drawn:
    """Draws the best score so far, and a band of random search where the search drew settings."""
    import pandas as pd

    own, rival = progress(search), random_search(search)
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
        " the order of the plan: of the best setting at the largest budget that any had by then,"
        " the mean over its seeds (more seeds may lower it)."
    )
    if len(rival):
        caption += _about_random(search)
    data = pd.concat([own.assign(kind="search"), rival.assign(kind="random")], ignore_index=True)
    return Drawn("search_progress", SECTION, "Best so far", caption, figure, data)


def progress(search: Searched) -> "pd.DataFrame":
    """Returns what was spent after each place, and the leader's score by then.

    The leader is the best setting at the largest budget that any had so far: scores of smaller
    budgets do not compare. With more seeds its score may fall.
    """
    import pandas as pd

    spent, rows = 0, []
    leader = (0, -math.inf)
    for one in search.placed:
        spent += cost(search.levels, one.level) // one.level.places
        if one.score is not None:
            leader = max(leader, (one.level.budget, one.score))
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
        (many * most, *map(search.shown, found))
        for many, found in enumerate(bests(scores, _QUANTILES), start=1)
        if many * most <= total
    ]
    rows = [(spent, *sorted(found)) for spent, *found in rows]
    return pd.DataFrame([(s, mid, low, high) for s, low, mid, high in rows], columns=columns)


def bests(scores: np.ndarray, shares: Sequence[float]) -> Iterator[list[float]]:
    """Yields quantiles of the best of 1, 2, ... of some scores, drawn without replacement.

    Args:
        scores: ``(n,)`` ascending.
        shares: The quantiles.
    """
    n = len(scores)
    places, below = np.arange(1, n + 1), np.ones(n)
    for drawn in range(n):
        # The share of draws whose best is at most the score of each place.
        below = below * np.maximum(places - drawn, 0) / (n - drawn)
        found = np.searchsorted(below, np.array(shares) - 1e-12)
        yield [float(score) for score in scores[found]]


def at_the_end(search: Searched) -> list[float]:
    """Returns the score of each setting that was known beforehand, with the whole budget.

    Of one that stopped it is an estimate: its last score, and for each later budget the median of
    what settings gained there that went on. A setting that failed never is the best.
    """
    first = _known(search)
    gains: dict[tuple[int, int], list[float]] = {}
    for before, one in search.pairs:
        if before.score is not None and one.score is not None:
            key = before.level.budget, one.level.budget
            gains.setdefault(key, []).append(one.score - before.score)
    typical = {key: median(found) for key, found in gains.items()}
    own = [one for one in search.last if one.setting in first]
    known = [_extended(one, one.score, typical) for one in own if one.score is not None]
    return known + [min(known)] * (len(own) - len(known)) if known else []


def _extended(one: Placed, score: float, gains: dict[tuple[int, int], float]) -> float:
    budget = one.level.budget
    while (step := next((key for key in gains if key[0] == budget), None)) is not None:
        score, budget = score + gains[step], step[1]
    return score


def _about_random(search: Searched) -> str:
    count, open_ones = len(_known(search)), _stopped(search)
    text = (
        f" Dashed, with a band from 10 to 90 %: random search, which gives settings the whole"
        f" budget one after another, with one seed: the best of 1, 2, ... of the same"
        f" {plural(count, 'setting')}, over all their orders."
    )
    if open_ones:
        text += (
            f" {plural(open_ones, 'setting')} of these stopped earlier: their score at the end"
            " is an estimate (where they stopped, and the median of what others gained from there"
            " on), so the band is no measurement."
        )
    return text


def _known(search: Searched) -> set[int]:
    """Returns the settings that were known beforehand."""
    return {one.setting for one in search.placed if one.level.kind == "known"}


def _stopped(search: Searched) -> int:
    """Returns how many of them had less than the whole budget."""
    return len(_known(search) - {one.setting for one in search.finalists})
