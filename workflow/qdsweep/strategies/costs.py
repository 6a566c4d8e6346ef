"""What a search costs by its plan, in the unit of its budgets."""

from collections.abc import Sequence

from qdsweep.records.search import Level

GO_ON = ("promoted", "exploited")
"""Kinds of levels that go on with runs of the level below."""


def cost(levels: Sequence[Level], level: Level) -> int:
    """Returns what a level adds, as its runs go on from where they stood at the level below."""
    below = {one.name: one for one in levels}
    old = 0
    if level.kind in GO_ON:
        before = below[level.below[0]]
        old = before.budget * len(set(level.seeds) & set(before.seeds))
    return level.places * (len(level.seeds) * level.budget - old)


def whole_budget(levels: Sequence[Level]) -> int:
    """Returns the budget of a whole run: the largest of the levels."""
    return max(level.budget for level in levels)


def settings_count(levels: Sequence[Level]) -> int:
    """Returns how many settings a search begins with, those that are asked for on the way too."""
    return sum(level.places for level in levels if level.kind not in GO_ON)


def search_cost(levels: Sequence[Level]) -> int:
    """Returns what a search computes in all, in the unit of its budgets."""
    return sum(cost(levels, level) for level in levels)


def share_of_whole(levels: Sequence[Level], settings: int) -> float:
    """Returns that as a share of running so many settings whole, with one seed."""
    return search_cost(levels) / (settings * whole_budget(levels))
