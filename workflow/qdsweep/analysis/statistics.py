"""Statistics over seeds. The unit of replication is the seed: one number per run.

Scores of one algorithm come as strata: an array of runs for each task. With one task that is one
array. Point values are those of Agarwal et al. 2021 ("Deep reinforcement learning at the edge of
the statistical precipice") as their library rliable computes them. Their intervals, percentiles
of a bootstrap over runs, are too narrow for the few seeds of a sweep, so ours differ.

`figures.band` of the sweep file chooses the lines and bands of curves over seeds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsweep.text import plural

Scores = NDArray[np.float64]
Strata = Sequence[Scores]

# With fewer than ENOUGH_SEEDS nothing is tested, with fewer than MIN_SEEDS no mean has an interval.
MIN_SEEDS, ENOUGH_SEEDS = 3, 5
SEEDS_RULE = f"A comparison needs {ENOUGH_SEEDS} seeds per group."
# What a table shows of a mean and its `half_width`.
MEAN_TEXT = "mean ± half the width of its pointwise 95 % interval (Student's t)"
ALPHA = 0.05
_TRIM = 0.25
# In 99 % of groups of n normal scores, the largest gap is below _GAP / sqrt(n) of their range.
_GAP = 1.9

# Powers of two beyond which squares of variances leave the numbers of 64 bits.
_FAR = 200
# Bands that need the curve of each seed; curves_by_seed.csv is written only for these.
OF_SEEDS = ("quartiles", "seeds")
_WORDS = {
    "error": "mean ± standard error over {}",
    "interval": "mean and its pointwise 95 % interval (Student's t) over {}",
    "quartiles": "median and quartiles over {}",
    "seeds": "mean over {}, thin lines: each seed",
}


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval; nan where it is unknown."""

    value: float
    low: float
    high: float

    def times_power(self, exponent: int) -> "Estimate":
        """Returns it times a power of two."""
        return Estimate(
            *(float(np.ldexp(end, exponent)) for end in (self.value, self.low, self.high))
        )

    def columns(self, name: str) -> dict[str, float]:
        """Returns it as columns of a table."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}


def mean_error_count(values: Scores) -> tuple[float, float, int]:
    """Returns mean, standard error and number of the values that are there.

    The standard error of fewer than two values is unknown (nan), not 0.
    """
    values = values[np.isfinite(values)]
    n = len(values)
    if n == 0:
        return math.nan, math.nan, 0
    return float(mean_of(values)), float(standard_error(values)), n


def scaled(samples: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Returns samples times a power of two that keeps squares in range, and its exponent.

    Others than very large and very small ones stay as they are.
    """
    known = np.abs(samples[np.isfinite(samples)])
    _, exponent = math.frexp(known.max(initial=0.0))
    if abs(exponent) < _FAR:
        return samples, 0
    return np.ldexp(samples, -exponent), exponent


def _or_one_value(samples: NDArray[Any], computed: NDArray[Any], constant: Any) -> Any:
    """Returns what was computed over the first axis, and `constant` where samples are all equal.

    A mean of equal numbers is rounded, and then their deviation is not 0.
    """
    return np.where((samples == samples[:1]).all(axis=0), constant, computed)[()]


def mean_of(samples: NDArray[Any]) -> Any:
    """Returns the mean over the first axis, which for equal samples is their value."""
    inner, exponent = scaled(samples)
    return _or_one_value(samples, np.ldexp(inner.mean(axis=0), exponent), samples[0])


def variance_of(samples: NDArray[Any]) -> Any:
    """Returns the variance over the first axis, which for equal samples is 0."""
    return _or_one_value(samples, samples.var(axis=0, ddof=1), 0.0)


def deviation_of(samples: NDArray[Any]) -> Any:
    """Returns the standard deviation over the first axis, which for equal samples is 0."""
    inner, exponent = scaled(samples)
    return _or_one_value(samples, np.ldexp(inner.std(axis=0, ddof=1), exponent), 0.0)


def standard_error(samples: NDArray[Any]) -> Any:
    """Returns the standard error of the mean over the first axis: unknown (nan) of one sample."""
    n = len(samples)
    if n < 2:
        return np.full(samples.shape[1:], math.nan)[()]
    return deviation_of(samples) / math.sqrt(n)


def interquartile_mean(strata: Strata) -> Estimate:
    """Returns the interquartile mean (IQM) of all runs of all tasks, and its interval.

    The interval is Student's t with a winsorised standard error. For one task it is Yuen's, which
    is Tukey and McLaughlin's of 1963. For several, the tasks' winsorised variances are added, with
    Satterthwaite's degrees of freedom.

    It is an interval of the mean of the middle half of all runs that there could be, which is not
    their mean. Its coverage of that was measured on 3,000 synthetic sweeps, with 3 to 20 seeds of
    one task and 5 to 10 seeds of three. It was 94 to 97 % for normal scores and Student's t scores
    of 3 degrees, 92 to 97 % for log-normal and 93 to 94 % for beta(8, 2) scores, and 92 to 96 % for
    uniform ones. Where 30 % of all runs equal the maximum it was 89 to 92 % (one task) and 95 to
    96 % (three). Where 60 % do, it was 77 to 93 % (one task) and 94 % (three): too narrow.

    The percentile bootstrap covered 70 to 90 % with 3 seeds and 82 to 93 % with 5, and BCa was no
    better. Bootstrap-t covered 95 % from 10 seeds on. With 5 it has no bounds, as a tenth of the
    resamples have no spread.

    Returns:
        The 25 % trimmed mean. It has no interval where a task has fewer than `MIN_SEEDS` runs, or
        where the middle half of the runs are equal and others are not: saturated scores.
    """
    every = np.concatenate(strata)
    inner, exponent = scaled(every)
    if exponent:
        parts = np.split(inner, np.cumsum([len(runs) for runs in strata])[:-1])
        return interquartile_mean(parts).times_power(exponent)
    pooled = np.sort(every)
    count = len(pooled)
    if count < MIN_SEEDS:  # nothing is trimmed, and scipy.stats takes a second to import
        return Estimate(float(mean_of(pooled)) if count else math.nan, math.nan, math.nan)
    from scipy import stats

    cut = int(_TRIM * count)
    value = float(
        _or_one_value(pooled[cut : count - cut], stats.trim_mean(pooled, _TRIM), pooled[cut])
    )
    if min(map(len, strata)) < MIN_SEEDS:
        return Estimate(value, math.nan, math.nan)
    low, high, remaining = pooled[cut], pooled[count - 1 - cut], count - 2 * cut
    spread = np.array([len(runs) * variance_of(np.clip(runs, low, high)) for runs in strata])
    if not spread.any():  # the interval is unknown, unless all runs are equal
        return Estimate(value, *([value] * 2 if pooled[0] == pooled[-1] else [math.nan] * 2))
    freedom = np.array([max(((runs >= low) & (runs <= high)).sum() - 1, 1) for runs in strata])
    error = math.sqrt(spread.sum() * (count - 1) / count / (remaining * (remaining - 1)))
    half = error * stats.t.ppf(1 - ALPHA / 2, spread.sum() ** 2 / (spread**2 / freedom).sum())
    return Estimate(value, value - half, value + half)


def probability_of_improvement(first: Strata, second: Strata) -> Estimate:
    """Returns the probability that a run of `first` is better than one of `second`.

    The value is the mean over tasks of the Mann-Whitney statistic U / (m n); ties count half. The
    interval is Newcombe's pseudo-score interval of 2006 ("Confidence intervals for an effect size
    measure based on the Mann-Whitney statistic, part 2", method 5). Several tasks have one shift.

    In 3,000 synthetic sweeps of 1 to 5 normal tasks with 5 to 20 seeds it covered the true value in
    93 to 97 %, and with 3 seeds in 89 to 96 %. It covered 91 to 95 % in 500 sweeps where one group
    has three times the deviation of the other. Percentiles of a bootstrap covered 39 to 91 % with 5
    seeds of one task, as both are 1 where all runs of one group are better.

    Returns:
        The probability; no interval where a task has fewer than `MIN_SEEDS` runs of either.
    """
    from scipy import stats

    sizes = np.array([[len(x), len(y)] for x, y in zip(first, second, strict=True)], float)
    wins = [stats.mannwhitneyu(x, y).statistic for x, y in zip(first, second, strict=True)]
    chances = np.array(wins) / sizes.prod(axis=1)
    value = float(chances.mean())
    if sizes.min() < MIN_SEEDS:
        return Estimate(value, math.nan, math.nan)
    return Estimate(value, _score_limit(chances, sizes, -1), _score_limit(chances, sizes, 1))


def _score_limit(chances: Scores, sizes: Scores, sign: int) -> float:
    """Returns how far all chances can move until their mean is 1.96 standard errors away."""
    from scipy import optimize, stats

    z = stats.norm.ppf(1 - ALPHA / 2)

    def beyond(shift: float) -> float:
        moved = np.clip(chances + sign * shift, 0, 1)
        # Hanley and McNeil's variance, of exponential scores, with Newcombe's mean group size.
        others = (1 - moved) / (2 - moved) + moved / (1 + moved)
        variance = moved * (1 - moved) * (1 + (sizes.mean(axis=1) - 1) * others)
        error = math.sqrt((variance / sizes.prod(axis=1)).sum()) / len(chances)
        return float(abs(moved.mean() - chances.mean()) - z * error)

    least = 1e-9  # at 0 the variance may be 0
    shift = optimize.brentq(beyond, least, 1) if beyond(least) < 0 else 0.0
    return float(np.clip(chances + sign * shift, 0, 1).mean())


def performance_profile(strata: Strata, taus: Scores) -> tuple[Scores, Scores, Scores]:
    """Returns the fraction of runs whose score is above each tau, and its pointwise interval.

    The fraction is rliable's score distribution: runs of all tasks in one. The interval is that of
    Clopper and Pearson (1934) for all runs. It holds for several tasks, too. The number of runs
    above tau has no longer tails than one binomial with the same mean (Hoeffding 1956).

    It covered the fraction in 95.4 to 100 % of 20,000 sweeps, for 1 to 10 tasks with 3 to 20 seeds
    and 20 or 40 sets of probabilities near 0, near 1 and between (mean 98.7 %). Percentiles of a
    bootstrap over runs covered 39 to 43 % near the ends, where all runs are on one side of tau.

    Args:
        strata: The runs of each task.
        taus: ``(t,)`` thresholds.

    Returns:
        ``(t,)`` fractions, lower and upper ends.
    """
    from scipy.special import betaincinv

    runs = np.concatenate(strata)
    count = len(runs)
    above = (runs[None, :] > taus[:, None]).sum(axis=1)
    below = count - above
    # Of 0 runs the function knows no quantile: the end is 0 or 1 there.
    low = np.where(above, betaincinv(np.maximum(above, 1), below + 1, ALPHA / 2), 0.0)
    high = np.where(below, betaincinv(above + 1, np.maximum(below, 1), 1 - ALPHA / 2), 1.0)
    return above / count, low, high


class Differences(NamedTuple):
    """Differences of two means and Student's t test of each, arrays of one shape.

    Intervals and p values are of one test, so an interval without 0 has a p value below its alpha.

    Attributes:
        value: The difference, in units of 2 to the power of `exponent`.
        error: Its standard error, in the same unit.
        freedom: The degrees of freedom.
        least: The smallest one-sided p value that these runs allow; 0 where t needs no such limit.
        exponent: Of the unit.
    """

    value: Scores
    error: Scores
    freedom: Scores
    least: Any
    exponent: Any

    @property
    def above(self) -> Scores:
        """The one-sided p values of "the difference is above 0"."""
        return np.maximum(self._tail(self.value), self.least)

    @property
    def apart(self) -> Scores:
        """The two-sided p values; 1 for two groups of one and the same value."""
        return np.minimum(2 * np.maximum(self._tail(np.abs(self.value)), self.least), 1.0)

    def half_width(self, alpha: float) -> Scores:
        """Returns half the width of intervals of the level 1 - alpha; nan where it is unknown.

        That is where no difference would have a p value below alpha.
        """
        from scipy.special import stdtrit

        half = self.error * stdtrit(self.freedom, 1 - alpha / 2)
        return np.where(2 * np.asarray(self.least) > alpha, np.nan, np.where(self.error, half, 0.0))

    def estimate(self, place: int, alpha: float) -> Estimate:
        """Returns one of the differences with its interval."""
        one = Differences(*(np.asarray(part)[place] for part in self))
        value, half = float(one.value), float(one.half_width(alpha))
        return Estimate(value, value - half, value + half).times_power(int(one.exponent))

    def _tail(self, value: Scores) -> Scores:
        from scipy.special import stdtr

        with np.errstate(divide="ignore", invalid="ignore"):
            tail = stdtr(self.freedom, -value / self.error)
        return np.where(self.error, tail, np.where(value, np.where(value > 0, 0.0, 1.0), 0.5))


def summaries_of(groups: Strata) -> Scores:
    """Returns mean, standard deviation and number of the runs of each group, ``(k, 3)``."""
    return np.array([(mean_of(group), deviation_of(group), len(group)) for group in groups])


def welch(first: Scores, second: Scores) -> Differences:
    """Returns the means of `first` minus those of `second`, with Welch's t test of 1947.

    Where all runs of a group are equal, their spread is unknown, and no p value can be below that
    of the two groups' order: `least_order`.

    Args:
        first: ``(..., 3)`` mean, standard deviation and number of runs, at least two.
        second: ``(..., 3)`` the same of the other group.
    """
    differences = welch_of_spreads(first, second)
    equal = (first[..., 1] == 0) | (second[..., 1] == 0)
    return differences._replace(
        least=np.where(equal, least_order(first[..., 2], second[..., 2]), 0.0)
    )


def welch_of_spreads(first: Scores, second: Scores) -> Differences:
    """Returns the same for standard deviations that are known to be those of a group."""
    first, second = np.broadcast_arrays(first, second)
    numbers = np.stack([first[..., :2], second[..., :2]])  # means and deviations, in one unit
    _, exponents = np.frexp(
        np.abs(numbers).max(axis=(0, -1), initial=0.0, where=np.isfinite(numbers))
    )
    exponents = np.where(np.abs(exponents) < _FAR, 0, exponents)
    numbers = np.ldexp(numbers, -exponents[..., None])
    counts = np.stack([first[..., 2], second[..., 2]])
    errors = numbers[..., 1] / np.sqrt(counts)
    largest = errors.max(axis=0)
    shares = (errors / np.where(largest, largest, 1.0)) ** 2
    total = shares.sum(axis=0)
    squares = (shares**2 / np.maximum(counts - 1, 1)).sum(axis=0)
    freedom = np.where(largest, total**2 / np.where(squares, squares, 1.0), 1.0)
    value = numbers[0, ..., 0] - numbers[1, ..., 0]
    return Differences(value, largest * np.sqrt(total), freedom, 0.0, exponents)


def paired(first: Scores, second: Scores) -> Differences:
    """Returns the mean of `first` minus `second`, ``(n,)`` runs of the same seeds, with its t test.

    Where all differences are equal, no p value is below that of their signs, 1 / 2^n.
    """
    inner, exponent = scaled(np.stack([first, second]))
    each = inner[0] - inner[1]
    error = standard_error(each)
    least = 0.0 if error else 0.5 ** len(each)
    freedom = np.array(len(each) - 1.0)
    return Differences(mean_of(each), error, freedom, least, exponent)


def least_order(first: Any, second: Any) -> Any:
    """Returns the chance of one order of all runs where two groups do not differ: 1 / C(m + n, m).

    It is the smallest one-sided p value that ranks can give.
    """
    from scipy.special import comb

    return 1 / comb(first + second, first)


def welch_half_width(variances: Scores, counts: NDArray[Any], alpha: float) -> float:
    """Returns half the width of the interval of Welch's t test for a difference of two means.

    Args:
        variances: ``(2,)`` squared standard errors of the means.
        counts: ``(2,)`` numbers of runs, at least two.
        alpha: One minus the confidence level.
    """
    parts = np.stack([np.zeros(2), np.sqrt(variances * counts), counts], axis=1)
    return float(welch_of_spreads(parts[0], parts[1]).half_width(alpha))


def mann_whitney(first: Strata, second: Strata) -> Scores:
    """Returns the two-sided p value of the Mann-Whitney U test of each pair, exact for few runs.

    With ties scipy takes the normal approximation, which for few runs falls below any p value that
    ranks can give. The smallest possible p value is returned then.

    Args:
        first: ``(p,)`` groups.
        second: ``(p,)`` those that they are compared with.
    """
    from scipy import stats

    alike: dict[tuple[int, int, bool], list[int]] = {}
    for place, (x, y) in enumerate(zip(first, second, strict=True)):
        both = np.concatenate([x, y])
        alike.setdefault((len(x), len(y), len(np.unique(both)) < len(both)), []).append(place)
    p = np.empty(len(first))
    for (m, n, _), places in alike.items():  # scipy chooses one method for all pairs of a call
        x, y = (np.stack([groups[place] for place in places]) for groups in (first, second))
        found = stats.mannwhitneyu(x, y, axis=1).pvalue
        p[places] = np.maximum(found, least_mann_whitney(m, n))
    return p


def least_mann_whitney(first: int, second: int) -> float:
    """Returns the smallest two-sided p value of these numbers of runs: without any overlap."""
    return min(2 * float(least_order(first, second)), 1.0)


def holm(p: Scores) -> Scores:
    """Returns p values corrected for their number by Holm's method (Holm 1979).

    statsmodels gives the same bits, and collects the garbage of the whole process in each call:
    that was four fifths of a small sweep's aggregation.
    """
    order = np.argsort(p)
    corrected = np.empty(len(p))
    corrected[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(corrected, 1.0)


def is_in_clumps(scores: Scores) -> bool:
    """Returns whether runs are two clumps, so that no test of means holds.

    A gap is then more than half of their range, and more than in 99 % of groups of normal scores
    of the same size. Of five normal scores, 46 % have a gap of half of their range. Where one run
    in five fails, it finds 67 % of groups of five, 89 % of ten and 99 % of twenty runs.
    """
    inner, _ = scaled(np.sort(scores))
    gaps = np.diff(inner)
    return bool(gaps.max(initial=0.0) > max(0.5, _GAP / math.sqrt(len(inner))) * gaps.sum())


class Band(NamedTuple):
    """A line and the ends of its band (nan: unknown), ``(k,)`` each."""

    middle: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def half_width(error: Any, n: Any) -> Any:
    """Returns half the width of Student's 95 % interval of means of `n` runs, pointwise.

    It is unknown (nan) with fewer than `MIN_SEEDS` runs: with two, it would be nine standard
    deviations of a run.

    Args:
        error: ``(...)`` standard errors.
        n: ``(...)`` numbers of runs.
    """
    from scipy.special import stdtrit

    n = np.asarray(n)
    quantile = stdtrit(np.maximum(n - 1, 1), 1 - ALPHA / 2)
    return (np.where(n >= MIN_SEEDS, quantile, math.nan) * np.asarray(error))[()]


def around(mean: NDArray[np.float64], error: NDArray[np.float64], n: int, band: str) -> Band:
    """Returns the band of means with standard errors over `n` runs; not for `OF_SEEDS`."""
    half = half_width(error, n) if band == "interval" else error
    return Band(mean, mean - half, mean + half)


def spread(values: NDArray[np.float64], band: str) -> Band:
    """Returns the band of ``(n, k)`` values of n runs."""
    unknown = np.full(values.shape[1], np.nan)
    if band == "seeds":
        return Band(mean_of(values), unknown, unknown)
    if band == "quartiles":
        inner, exponent = scaled(values)
        low, middle, high = np.ldexp(np.quantile(inner, (0.25, 0.5, 0.75), axis=0), exponent)
        return Band(middle, low, high) if len(values) > 1 else Band(middle, unknown, unknown)
    return around(mean_of(values), standard_error(values), len(values), band)


def fewest_of_band(band: str) -> int:
    """Returns the number of seeds from which a line has a band."""
    return MIN_SEEDS if band == "interval" else 2


def band_text(counts: list[int], band: str = "interval") -> str:
    """Returns what a figure's lines and bands are, from the number of seeds of each group."""
    few, many = min(counts), max(counts)
    if many == 1:
        return "one seed" if len(counts) == 1 else "one seed per group"
    seeds = plural(many, "seed") if few == many else f"{few} to {many} seeds"
    least = fewest_of_band(band)
    if many < least:
        return f"mean over {seeds}"
    words = "one" if least == 2 else "fewer than three"
    without = few < least and band != "seeds"
    return _WORDS[band].format(seeds) + (f", no band for {words}" if without else "")
