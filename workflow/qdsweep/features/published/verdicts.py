"""The verdicts on published means: equivalent within a margin, different, or undecided.

A mean is equivalent to the published one if the 90 % interval of their difference is within the
margin. These are two one-sided tests at 5 % (TOST): Lakens 2017, "Equivalence tests: a practical
primer for t tests, correlations, and meta-analyses", Social Psychological and Personality Science
8(4). It differs if it is not equivalent and a t test finds a difference, with p values that Holm's
method corrects for all values of the sweep file (family-wise level 5 %).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsweep.analysis.statistics import (
    ALPHA,
    MIN_SEEDS,
    holm,
    least_mann_whitney,
    welch_half_width,
)
from qdsweep.config.sweep import MOST_SEEDS

EQUIVALENT, DIFFERS, UNDECIDED = "equivalent", "differs", "undecided"
FEW, NONE = "too few seeds", "no results"

Numbers = NDArray[np.float64]


class Verdicts(NamedTuple):
    """The comparison of ``k`` means with published ones.

    Attributes:
        words: ``(k,)`` the verdicts.
        half: ``(k,)`` half the width of the 90 % interval of the difference, in the metric's unit.
        p: ``(k,)`` Holm's p values of a t test.
        seeds: ``(k,)`` the fewest seeds that would decide an undecided value if its means and
            deviations stayed; nan: no number up to `MOST_SEEDS`, or none is needed.
    """

    words: list[str]
    half: Numbers
    p: Numbers
    seeds: Numbers


def judge(ours: Numbers, published: Numbers, margins: Numbers) -> Verdicts:
    """Compares means with the published ones.

    Args:
        ours: ``(k, 3)`` mean, standard deviation and number of runs; nan where there are none.
        published: ``(k, 3)`` the same of the published trials; a deviation of nan is unknown.
        margins: ``(k,)`` the largest differences that do not matter, in the metric's unit.
    """
    enough = ours[:, 2] >= MIN_SEEDS
    half, p = np.full(len(ours), np.nan), np.ones(len(ours))
    for i in np.flatnonzero(enough):
        half[i], p[i] = _half(ours[i], published[i]), _p(ours[i], published[i])
    p = holm(p)
    differs = p <= ALPHA
    is_equivalent = np.abs(ours[:, 0] - published[:, 0]) + half <= margins
    words = np.select(
        [ours[:, 2] == 0, ~enough, is_equivalent, differs],
        [NONE, FEW, EQUIVALENT, DIFFERS],
        UNDECIDED,
    )
    level = ALPHA / max(int(np.count_nonzero(~differs)), 1)  # Holm's, of the next value
    seeds = np.full(len(p), np.nan)
    for i in np.flatnonzero(words == UNDECIDED):
        seeds[i] = _fewest(ours[i], published[i], margins[i], level)
    return Verdicts(words.tolist(), half, np.where(enough, p, np.nan), seeds)


def _variances(ours: Numbers, published: Numbers) -> Numbers:
    """Returns the ``(2,)`` squared standard errors of two means.

    Where the published deviation is unknown, the first one is that of the difference: our
    deviation has n - 1 degrees of freedom, also where it is taken twice. If all of our runs are
    equal, they have the published deviation.
    """
    (_, deviation, n), (_, spread, trials) = ours, published
    if math.isnan(spread):
        return np.array([deviation**2 * (1 / n + 1 / trials), 0.0])
    return np.array([(deviation or spread) ** 2 / n, spread**2 / trials])


def _half(ours: Numbers, published: Numbers) -> float:
    """Returns half the width of Welch's 90 % interval for the difference."""
    counts = np.array([ours[2], published[2]])
    return welch_half_width(_variances(ours, published), counts, 2 * ALPHA)


def _p(ours: Numbers, published: Numbers) -> float:
    """Returns the p value of the difference.

    Its degrees of freedom are those of the smaller number of runs, which never finds too many
    differences (Mickey and Brown 1966, Annals of Mathematical Statistics 37). With Welch's, files
    of 20 equal means of 5 runs and 20 trials had a false difference in 11 % instead of 5 %. Without
    any deviation it is the smallest p value of ranks.
    """
    from scipy.special import stdtr

    apart, error = abs(ours[0] - published[0]), math.sqrt(_variances(ours, published).sum())
    is_known = not math.isnan(published[1])
    if error:
        freedom = (min(ours[2], published[2]) if is_known else ours[2]) - 1
        return float(2 * stdtr(freedom, -apart / error))
    if apart and is_known:
        return least_mann_whitney(int(ours[2]), int(published[2]))
    return 1.0


def _fewest(ours: Numbers, published: Numbers, margin: float, level: float) -> float:
    """Returns the fewest seeds that would decide a value; nan if no number does."""
    for n in range(int(ours[2]) + 1, MOST_SEEDS + 1):
        more = np.array([*ours[:2], n])
        is_equivalent = abs(ours[0] - published[0]) + _half(more, published) <= margin
        if is_equivalent or _p(more, published) <= level:
            return n
    return math.nan
