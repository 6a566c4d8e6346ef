"""Tests between the groups of a scale, corrected for the number of pairs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from qdsweep.analysis.tables.statistics import ALPHA, MIN_SEEDS, Scores, holm, welch

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Runs:
    """The results of a group's runs in one metric.

    Attributes:
        ids: The runs, each once.
        scores: ``(n,)`` their results, one per seed.
    """

    ids: frozenset[str]
    scores: Scores


@dataclass(frozen=True)
class Pairs:
    """The tests between the groups of one scale.

    Attributes:
        groups: Those of at least `MIN_SEEDS` runs, the best mean first.
        first: ``(p,)`` position of each pair's group with the better mean.
        second: ``(p,)`` position of the other.
        welch: ``(p,)`` p values of Welch's t test.
        holm: ``(p,)`` the same, corrected for the p pairs.
    """

    groups: list[str]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    welch: Scores
    holm: Scores

    def keep(self, wanted: NDArray[np.bool_]) -> "Pairs":
        """Returns those of its pairs that are wanted, ``(p,)``; they stay corrected for all."""
        first, second = self.first[wanted], self.second[wanted]
        return Pairs(self.groups, first, second, self.welch[wanted], self.holm[wanted])

    def tied_with(self, best: str) -> set[str]:
        """Returns the groups that the corrected test does not tell from the best one."""
        if not self.groups or self.groups[0] != best:
            return set()
        open_ones = self.second[(self.first == 0) & (self.holm > ALPHA)]
        return {self.groups[position] for position in open_ones}


def runs_of(summary: "pd.DataFrame", metric: str) -> dict[str, Runs]:
    """Returns the results of each group that has any. A run that stands there twice counts once."""
    there = summary[np.isfinite(summary[metric].to_numpy(float))]
    return {
        str(group): Runs(frozenset(runs["id"]), runs[metric].to_numpy(float))
        for group, runs in there.drop_duplicates(["group", "id"]).groupby("group", sort=False)
    }


def compare(
    groups: Mapping[str, Runs],
    sign: int = 1,
    chosen: Callable[[str, str], bool] = lambda first, second: True,
) -> Pairs:
    """Tests pairs of groups by Welch's t, corrected by Holm's method for all of them.

    Groups of fewer than `MIN_SEEDS` runs are left out, and pairs that have a run in common, at
    another budget: their results are not independent.

    Args:
        groups: Their results.
        sign: -1 where the smaller mean is the better one.
        chosen: Whether two groups are to be compared.
    """
    tested = [name for name, runs in groups.items() if len(runs.scores) >= MIN_SEEDS]
    tested.sort(key=lambda name: -sign * groups[name].scores.mean())
    first, second = np.triu_indices(len(tested), k=1)
    ids = [groups[name].ids for name in tested]
    taken = [
        ids[i].isdisjoint(ids[j]) and chosen(tested[i], tested[j])
        for i, j in zip(first, second, strict=True)
    ]
    first, second = first[taken], second[taken]
    if not len(first):
        return Pairs(tested, first, second, np.empty(0), np.empty(0))
    p = welch([groups[name].scores for name in tested], first, second)
    return Pairs(tested, first, second, p, holm(p))
