"""Whether a rung says who leads at the next one: scores at two successive budgets."""

import math
from typing import TYPE_CHECKING, NamedTuple

from qdsweep.analysis.figures.figure import Drawn, Omitted
from qdsweep.analysis.figures.marks import COLORS
from qdsweep.analysis.figures.search_curves import SECTION
from qdsweep.analysis.figures.style import NOTE, figure_width, short_number, short_numbers
from qdsweep.analysis.search import Searched
from qdsweep.analysis.text import number, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME, TITLE = "search_ranks", "Rank correlation between rungs"
MOST_PANELS = 6
FEWEST = 5  # settings that a correlation is judged by
NEAR_ZERO = 0.2


class Step(NamedTuple):
    """The settings that went from one budget to the next.

    Attributes:
        budgets: The two budgets.
        scores: The scores of each setting at both.
        stopped: The scores at the first of those that stopped there.
        correlation: Spearman's; nan of fewer than three settings, or of equal scores.
    """

    budgets: tuple[int, int]
    scores: list[tuple[float, float]]
    stopped: list[float]
    correlation: float

    @property
    def says_little(self) -> bool:
        """Whether the first budget hardly says who leads at the second."""
        return len(self.scores) >= FEWEST and self.correlation < NEAR_ZERO


def steps(search: Searched) -> list[Step]:
    """Returns the steps of a search from budget to budget, all brackets and batches together."""
    found: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for before, one in search.pairs:
        if before.score is not None and one.score is not None:
            scores = search.shown(before.score), search.shown(one.score)
            found.setdefault((before.level.budget, one.level.budget), []).append(scores)
    last = [one for one in search.last if one.score is not None]
    return [
        Step(
            budgets,
            scores,
            [search.shown(one.score or 0.0) for one in last if one.level.budget == budgets[0]],
            spearman(scores),
        )
        for budgets, scores in sorted(found.items())
    ]


def spearman(scores: list[tuple[float, float]]) -> float:
    """Returns Spearman's rank correlation of pairs; nan where it is not defined."""
    import pandas as pd

    if len(scores) < 3:
        return math.nan
    first, second = (pd.Series(column).rank() for column in zip(*scores, strict=True))
    if first.nunique() < 2 or second.nunique() < 2:
        return math.nan
    return float(first.corr(second))


def warnings(search: Searched) -> list[str]:
    """Returns a sentence for each budget that hardly says who leads at the next one."""
    return [
        f"What leads at {number(step.budgets[0])} {search.unit} says little of who leads at"
        f" {number(step.budgets[1])}: the rank correlation is {number(step.correlation, 2)} over"
        f" the {plural(len(step.scores), 'setting')} that went on. A later first rung (a larger"
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
        why = "fewer than two settings went on to a larger budget"
        return Omitted(NAME, SECTION, TITLE, why)
    shown = every[:MOST_PANELS]
    across = min(3, len(shown))
    down = math.ceil(len(shown) / across)
    width = figure_width(3.3 * across)
    figure = Figure(figsize=(width, down * (0.95 * width / across)), layout="constrained")
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    for ax in axes[len(shown) :]:
        ax.set_visible(False)
    for ax, step in zip(axes, shown, strict=False):
        _draw(ax, step, search)
    data = pd.DataFrame(
        [
            {"budget": step.budgets[0], "next_budget": step.budgets[1], "score": a, "next_score": b}
            for step in every
            for a, b in step.scores
        ]
    )
    caption = (
        f"{search.metric.label} of the settings that went on, at a budget and at the next one. ρ:"
        " Spearman's rank correlation; it is over settings that were chosen, and would be higher"
        " over all. Near 0 the decision was a lot drawn. Ticks below: settings that stopped there."
    )
    if len(shown) < len(every):
        caption += f" Shown: the first {len(shown)} of {len(every)} steps."
    return Drawn(NAME, SECTION, TITLE, caption, figure, data)


def _draw(ax: "Axes", step: Step, search: Searched) -> None:
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
