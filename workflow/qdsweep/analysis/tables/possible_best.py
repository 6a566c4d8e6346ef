"""Which groups of a task may be the best one: the one rule of page and tables.

It is Gupta's subset selection of 1965 ("On some multiple decision rules"), in the form of Hsu's
comparisons with the best of 1984, by one-sided t tests with unequal variances.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsweep.analysis.statistics import (
    ALPHA,
    ENOUGH_SEEDS,
    Scores,
    is_in_clumps,
    mean_of,
    summaries_of,
    welch,
)
from qdsweep.analysis.tables.comparisons import WELCH, Runs, independent, paired_runs


class PossibleBest(NamedTuple):
    """The verdict on one task.

    Attributes:
        tested: The groups of at least `ENOUGH_SEEDS` runs, the best mean first; none where no two
            of them can be tested against each other.
        marked: Those that may be the best.
        clumps: Those whose runs are two clumps.
    """

    tested: list[str]
    marked: set[str]
    clumps: list[str]

    @property
    def alone(self) -> str | None:
        """The group that is better than all others; None where more may be the best."""
        return next(iter(self.marked)) if len(self.marked) == 1 else None


def one_sided_level(groups: int, tasks: int) -> float:
    """Returns the level of each one-sided test of a group of a task."""
    return ALPHA / (groups * tasks)


def beaten(
    summaries: Scores, level: float, taken: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """Returns which groups are worse than some other one.

    A given best group is among them with a chance of at most (k - 1) times the level.

    Args:
        summaries: ``(..., k, 3)`` mean, standard deviation and number of runs; larger is better.
        level: Of each test.
        taken: ``(k, k)`` which group may be tested against which; None: each against each.

    Returns:
        ``(..., k)``.
    """
    out = np.zeros(summaries.shape[:-1], bool)
    for place in range(summaries.shape[-2]):
        above = welch(summaries[..., place, None, :], summaries).above
        out |= (above <= level) & (True if taken is None else taken[place])
    return out


def possible_best(
    tasks: Sequence[tuple[Mapping[str, Runs], int]], tests: str = WELCH
) -> list[PossibleBest]:
    """Returns the verdict on each of the tasks that one sentence, or one column, speaks of.

    All verdicts hold together with a chance of 95 %. Groups that have a run in common, at
    different budgets, are not tested against each other.

    Args:
        tasks: The groups of each task, and -1 where the smaller mean is the better one.
        tests: The key of the sweep file.
    """
    tested = [_tested(groups, sign) for groups, sign in tasks]
    taken = [
        independent([groups[name].ids for name in names])
        for (groups, _), names in zip(tasks, tested, strict=True)
    ]
    count = sum(bool(pairs.any()) for pairs in taken)
    verdicts = []
    for (groups, sign), names, pairs in zip(tasks, tested, taken, strict=True):
        if not pairs.any():
            verdicts.append(PossibleBest([], set(), []))
            continue
        runs = [groups[name] for name in names]
        level = one_sided_level(len(names), count)
        out = (_beaten_in_pairs if tests != WELCH else _beaten)(runs, sign, level, pairs)
        marked = {name for name, is_out in zip(names, out, strict=True) if not is_out}
        clumps = [name for name, own in zip(names, runs, strict=True) if is_in_clumps(own.scores)]
        verdicts.append(PossibleBest(names, marked, clumps))
    return verdicts


def _tested(groups: Mapping[str, Runs], sign: int) -> list[str]:
    enough = [name for name, runs in groups.items() if len(runs.scores) >= ENOUGH_SEEDS]
    return sorted(enough, key=lambda name: -sign * mean_of(groups[name].scores))


def _beaten(
    runs: Collection[Runs], sign: int, level: float, taken: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    return beaten(summaries_of([sign * own.scores for own in runs]), level, taken)


def _beaten_in_pairs(
    runs: Sequence[Runs], sign: int, level: float, taken: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    out = np.zeros(len(runs), bool)
    for i, j in zip(*np.nonzero(taken), strict=True):
        differences = paired_runs(runs[i], runs[j], sign)
        out[j] |= differences is not None and differences.above <= level
    return out
