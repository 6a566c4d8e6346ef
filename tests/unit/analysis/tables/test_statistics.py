"""Statistics equal those of rliable, scipy and statsmodels, and hold in simulations."""

import importlib.util
import math
import sys
from types import ModuleType

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from qdsweep.analysis.statistics import (
    Estimate,
    band_text,
    half_width,
    holm,
    interquartile_mean,
    least_mann_whitney,
    mann_whitney,
    mean_error_count,
    performance_profile,
    probability_of_improvement,
    spread,
    standard_error,
    summaries_of,
    welch,
)

metrics = pytest.importorskip("rliable.metrics", reason="rliable has no wheel for Python 3.14")
multipletests = pytest.importorskip("statsmodels.stats.multitest").multipletests

SWEEPS = 1000


def bare_package(name):
    """Returns a package without the imports of its __init__."""
    package = ModuleType(name)
    package.__path__ = list(importlib.util.find_spec(name).submodule_search_locations)
    return package


# rliable needs arch < 8, whose models cannot be imported with pandas 3. Its bootstrap can.
sys.modules["arch"] = bare_package("arch")
library = importlib.import_module("rliable.library")


def scores(runs, tasks, seed=0, shift=0.0):
    """Returns a matrix in rliable's form, runs x tasks."""
    return np.random.default_rng(seed).normal(np.arange(tasks) / 2 + shift, 1.0, (runs, tasks))


def strata(matrix):
    return list(matrix.T)


def welch_p(groups, first, second):
    summaries = summaries_of(groups)
    return welch(summaries[first], summaries[second]).apart


def difference_of(first, second, alpha=0.05):
    """Returns the difference with its interval, and its standard error."""
    summaries = summaries_of([first, second])
    differences = welch(summaries[:1], summaries[1:])
    error = np.ldexp(differences.error, differences.exponent)
    return differences.estimate(0, alpha), float(error[0])


def rank_p(first, second):
    return mann_whitney([first], [second])[0]


def iqm(values, axis):
    return stats.trim_mean(values, 0.25, axis=axis)


# Against the libraries


@pytest.mark.parametrize(("runs", "tasks"), [(3, 1), (5, 1), (10, 1), (5, 4), (7, 3)])
def test_point_values_are_rliables(runs, tasks):
    ours, others = scores(runs, tasks, 1), scores(runs, tasks, 2, 0.4)
    assert interquartile_mean(strata(ours)).value == pytest.approx(metrics.aggregate_iqm(ours))
    assert probability_of_improvement(strata(ours), strata(others)).value == pytest.approx(
        metrics.probability_of_improvement(ours, others)
    )
    taus = np.linspace(-2, 4, 25)
    theirs, _ = library.create_performance_profile({"a": ours}, taus, reps=10)
    np.testing.assert_allclose(performance_profile(strata(ours), taus)[0], theirs["a"])


def test_ties_count_half_for_an_improvement():
    first, second = np.array([1.0, 2.0, 2.0]), np.array([2.0, 3.0, 0.0])
    value = probability_of_improvement([first], [second]).value
    assert value == pytest.approx((1 + 0.5 + 1 + 0.5 + 1) / 9)
    assert value == metrics.probability_of_improvement(first[:, None], second[:, None])


def test_the_profiles_interval_is_that_of_clopper_and_pearson():
    runs, taus = scores(6, 4, 4), np.linspace(-3, 6, 19)
    fraction, low, high = performance_profile(strata(runs), taus)
    for place, tau in enumerate(taus):
        above = int((runs > tau).sum())
        ends = stats.binomtest(above, runs.size).proportion_ci(0.95, "exact")
        assert fraction[place] == above / runs.size
        assert (low[place], high[place]) == pytest.approx((ends.low, ends.high))
    assert {fraction[0], fraction[-1]} == {0, 1}


def test_tests_are_scipys_and_statsmodels():
    groups = [*scores(5, 3, 5).T, scores(8, 1, 6)[:, 0]]
    first, second = np.triu_indices(4, k=1)
    p = welch_p(groups, first, second)
    for i, j, value in zip(first, second, p, strict=True):
        expected = stats.ttest_ind(groups[i], groups[j], equal_var=False).pvalue
        assert value == pytest.approx(expected)
        assert rank_p(groups[i], groups[j]) == pytest.approx(
            stats.mannwhitneyu(groups[i], groups[j], method="exact").pvalue
        )
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03])), [0.03, 0.06, 0.06])
    rng = np.random.default_rng(10)
    unknown = np.array([0.5, np.nan, 0.01, np.nan, 0.01])
    for many in (p, unknown, np.round(rng.random(40), 1) / 20, rng.random(1)):
        np.testing.assert_array_equal(holm(many), multipletests(many, method="holm")[1])
    assert len(holm(np.empty(0))) == 0


def test_one_stratum_is_yuens_interval():
    """scipy's trimmed t test is Yuen's. Against a group without spread it is one-sample."""
    values = scores(11, 1, 7)[:, 0]
    estimate = interquartile_mean([values])
    assert stats.ttest_ind(
        values - estimate.low, np.zeros(11), trim=0.25, equal_var=False
    ).statistic == (pytest.approx(stats.t.ppf(0.975, 11 - 2 * 2 - 1)))
    assert estimate.high - estimate.value == pytest.approx(estimate.value - estimate.low)


def winsorised(runs, low, high):
    """Returns a task's winsorised sum of squares, and the number of runs that are not trimmed."""
    clipped = [min(max(run, low), high) for run in runs]
    mean = sum(clipped) / len(runs)
    squares = sum((value - mean) ** 2 for value in clipped) * len(runs) / (len(runs) - 1)
    return squares, sum(low <= run <= high for run in runs)


@pytest.mark.parametrize("sizes", [(3,), (3, 3), (5, 8, 4), (9,), (12, 6)])
@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_several_strata_add_their_winsorised_variances(sizes, shift):
    rng = np.random.default_rng(len(sizes))
    tasks = [rng.normal(shift * task, 1, size) for task, size in enumerate(sizes)]
    pooled = sorted(np.concatenate(tasks))
    n, cut = len(pooled), len(pooled) // 4
    parts = [winsorised(runs, pooled[cut], pooled[-1 - cut]) for runs in tasks]
    squares, left = sum(part for part, _ in parts), n - 2 * cut
    error = math.sqrt(squares * (n - 1) / n / left / (left - 1))
    freedom = squares**2 / sum(part**2 / max(inside - 1, 1) for part, inside in parts)
    half = error * stats.t.ppf(0.975, freedom)
    value = np.mean(pooled[cut : n - cut])
    estimate = interquartile_mean(tasks)
    assert (estimate.low, estimate.value, estimate.high) == pytest.approx(
        (value - half, value, value + half)
    )


def improvement_error(chances, groups):
    """Returns the standard error of the mean probability of improvement (Hanley and McNeil)."""
    variances = []
    for chance, (x, y) in zip(chances, groups, strict=True):
        others = (len(x) + len(y)) / 2 - 1
        both = (1 - chance) / (2 - chance) + chance / (1 + chance)
        variances.append(chance * (1 - chance) * (1 + others * both) / (len(x) * len(y)))
    return math.sqrt(sum(variances)) / len(variances)


@pytest.mark.parametrize("sizes", [[(3, 3)], [(5, 8)], [(4, 9), (7, 3), (5, 5)]])
def test_limits_of_an_improvement_are_196_of_their_own_standard_errors_away(sizes):
    rng = np.random.default_rng(3)
    groups = [(rng.normal(0.2, 1, m), rng.normal(0, 1, n)) for m, n in sizes]
    first, second = zip(*groups, strict=True)
    chances = [np.mean(x[:, None] > y) for x, y in groups]
    estimate = probability_of_improvement(first, second)
    assert estimate.value == pytest.approx(np.mean(chances))
    for limit in (estimate.low, estimate.high):
        shift = limit - estimate.value
        error = improvement_error([chance + shift for chance in chances], groups)
        assert abs(shift) == pytest.approx(stats.norm.ppf(0.975) * error)
    mirrored = probability_of_improvement(second, first)
    assert [1 - mirrored.high, 1 - mirrored.low] == pytest.approx([estimate.low, estimate.high])


def test_a_chance_does_not_move_beyond_certainty():
    groups = [(np.arange(5.0) + 10, np.arange(5.0)), (np.arange(4.0), np.arange(4.0))]
    first, second = zip(*groups, strict=True)
    for sign, estimate in (
        (1, probability_of_improvement(first, second)),
        (-1, probability_of_improvement(second, first)),
    ):
        limit = estimate.high if sign > 0 else estimate.low
        shift = limit - estimate.value  # the mean of one task that varies and one that cannot
        certain, moved = 0.5 + sign * 0.5, 0.5 + 2 * shift
        error = improvement_error([certain, moved], groups)
        assert abs(shift) == pytest.approx(stats.norm.ppf(0.975) * error)


def test_tasks_of_two_groups_come_in_pairs():
    with pytest.raises(ValueError):
        probability_of_improvement([np.arange(3.0)] * 2, [np.arange(3.0)])


def test_a_rank_test_is_never_below_what_ranks_can_give():
    apart = rank_p(np.arange(4.0), np.arange(4.0) + 100)
    assert apart == least_mann_whitney(4, 4) == 2 / math.comb(8, 4)
    tied = rank_p(np.zeros(3), np.ones(3))
    assert tied == 2 / math.comb(6, 3)
    assert rank_p(np.zeros(1), np.zeros(1)) == 1.0


def test_a_score_equal_to_the_threshold_is_not_above_it():
    runs, taus = np.array([0.1, 0.5, 0.9]), np.array([0.0, 0.5, 0.9])
    fraction, low, high = performance_profile([runs], taus)
    assert fraction.tolist() == [1, 1 / 3, 0]
    assert (low[2], high[0]) == (0, 1)


def test_the_same_runs_give_the_same_profile():
    runs, taus = scores(9, 1, 11)[:, 0], np.linspace(-1, 1, 9)
    first, second = (performance_profile([runs], taus) for _ in range(2))
    np.testing.assert_array_equal(first, second)


# Few seeds, no spread


@pytest.mark.filterwarnings("error")
def test_without_enough_seeds_intervals_are_nan():
    def unknown(estimate):
        assert math.isnan(estimate.low) and math.isnan(estimate.high)
        return estimate.value

    three, four, two = np.arange(3.0), np.arange(4.0), np.array([1.0, 2.0])
    assert math.isnan(unknown(interquartile_mean([np.empty(0)])))
    assert unknown(interquartile_mean([two])) == 1.5
    assert unknown(interquartile_mean([two, four])) == 1.5
    assert unknown(probability_of_improvement([np.ones(2)], [np.zeros(5)])) == 1.0
    assert unknown(probability_of_improvement([three, three], [three, two])) == pytest.approx(
        5 / 12
    )
    fraction, *_ = performance_profile([np.array([0.3]), three], np.array([0.1, 0.5]))
    assert fraction.tolist() == [0.75, 0.5]
    assert interquartile_mean([three]).columns("score").keys() == {
        *("score", "score_low", "score_high")
    }


@pytest.mark.filterwarnings("error")
def test_the_interval_of_a_difference_is_that_of_welchs_test():
    first, second = np.array([3.0, 4.0, 8.0]), np.array([1.0, 1.5, 2.0, 0.5, 1.0])
    test = stats.ttest_ind(first, second, equal_var=False)
    estimate, error = difference_of(first, second)
    expected = test.confidence_interval(0.95)
    assert error == pytest.approx(math.hypot(stats.sem(first), stats.sem(second)))
    assert estimate.value == first.mean() - second.mean()
    assert [estimate.low, estimate.high] == pytest.approx([expected.low, expected.high])
    one_varies, _ = difference_of(np.ones(3), second)
    assert one_varies.high - 1 + second.mean() == pytest.approx(stats.sem(second) * 2.7764451)
    unknown, error = difference_of(np.ones(3), np.zeros(5), 0.03)
    assert unknown.value == 1 and math.isnan(unknown.low) and math.isnan(unknown.high)
    assert error == 0


@pytest.mark.filterwarnings("error")
def test_no_spread_is_no_evidence_of_a_difference():
    same, other = np.ones(5), np.full(5, 2.0)
    p = welch_p([same, same.copy(), other], np.array([0, 0]), np.array([1, 2]))
    assert p.tolist() == [1.0, 2 / 252]
    estimate = interquartile_mean([same])
    assert (estimate.low, estimate.value, estimate.high) == (1.0, 1.0, 1.0)


@pytest.mark.filterwarnings("error")
@given(
    value=st.floats(-1.7e308, 1.7e308),
    sizes=st.lists(st.integers(3, 40), min_size=3, max_size=3),
)
@example(value=0.3, sizes=[10, 5, 26])
@example(value=0.1, sizes=[20, 16, 20])
@example(value=5e-324, sizes=[3, 3, 4])
def test_equal_values_have_no_difference_and_no_spread(value, sizes):
    """Their mean is rounded, so that groups of unequal sizes would differ significantly."""
    groups = [np.full(size, value) for size in sizes]
    first, second = np.triu_indices(3, k=1)
    p = welch_p(groups, first, second)
    assert p.tolist() == holm(p).tolist() == [1.0, 1.0, 1.0]
    for i, j in zip(first, second, strict=True):
        estimate, error = difference_of(groups[i], groups[j])
        assert estimate.value == error == 0
        assert estimate.low == estimate.high == 0 or math.isnan(estimate.low)
        assert rank_p(groups[i], groups[j]) == 1.0
        assert probability_of_improvement([groups[i]], [groups[j]]).value == 0.5
    for group in groups:
        assert mean_error_count(group) == (value, 0.0, len(group))
        assert interquartile_mean([group]) == Estimate(value, value, value)
        for band in ("error", "interval", "quartiles"):
            assert {float(end[0]) for end in spread(group[:, None], band)} == {value}
    assert interquartile_mean(groups) == Estimate(value, value, value)


@pytest.mark.filterwarnings("error")
@given(exponent=st.one_of(st.integers(210, 1018), st.integers(-1010, -210)))
@example(exponent=1018)
@example(exponent=-1010)
def test_statistics_do_not_depend_on_the_size_of_numbers(exponent):
    """Squares of numbers near the ends of 64 bits are infinite, or 0."""
    plain = [np.array([3.0, 4.0, 8.0]), np.array([1.0, 1.5, 2.0, 0.5, 1.0]), np.array([9.0, 7, 5])]
    sized = [np.ldexp(group, exponent) for group in plain]
    pairs = np.triu_indices(3, k=1)

    def grown(numbers):
        return [np.ldexp(number, exponent) for number in numbers]

    np.testing.assert_array_equal(welch_p(sized, *pairs), welch_p(plain, *pairs))
    estimate, error = difference_of(*plain[:2])
    expected = Estimate(*grown([estimate.value, estimate.low, estimate.high])), *grown([error])
    assert difference_of(*sized[:2]) == expected
    for group, large in zip(plain, sized, strict=True):
        *numbers, count = mean_error_count(group)
        assert mean_error_count(large) == (*grown(numbers), count)
        whole = interquartile_mean([group])
        assert interquartile_mean([large]) == Estimate(*grown([whole.value, whole.low, whole.high]))
        for band in ("error", "interval", "quartiles"):
            ends = spread(group[:, None], band)
            np.testing.assert_array_equal(spread(large[:, None], band), grown(ends))


@pytest.mark.parametrize("outlier", [0.0, 2.0])
def test_no_spread_but_in_the_tails_is_unknown(outlier):
    estimate = interquartile_mean([np.array([1.0, 1.0, 1.0, 1.0, outlier])])
    assert estimate.value == 1.0
    assert math.isnan(estimate.low) and math.isnan(estimate.high)


def test_an_improvement_of_all_over_all_is_not_certain():
    estimate = probability_of_improvement([np.arange(5.0) + 10], [np.arange(5.0)])
    assert estimate.value == estimate.high == 1.0
    assert 0.5 < estimate.low < 0.9


# Bands


def test_the_standard_error_of_one_sample_is_unknown():
    assert math.isnan(standard_error(np.ones(1)))
    assert np.isnan(standard_error(np.ones((1, 3)))).tolist() == [True] * 3
    assert standard_error(np.array([1.0, 3.0])) == 1.0


def test_two_runs_have_every_band_but_an_interval():
    values = np.array([[1.0, 5.0], [3.0, 5.0]])
    for band, low, high in (("error", 1, 3), ("quartiles", 1.5, 2.5)):
        np.testing.assert_allclose(spread(values, band), [[2, 5], [low, 5], [high, 5]])
    middle, low, high = spread(values, "interval")
    assert middle.tolist() == [2, 5] and np.isnan([low, high]).all()


@pytest.mark.parametrize("n", [3, 5, 20])
def test_the_interval_of_a_mean_is_students(n):
    values = scores(n, 1, n)[:, 0]
    mean, error, _ = mean_error_count(values)
    low, high = stats.t.interval(0.95, n - 1, mean, error)
    assert half_width(error, n) == pytest.approx((high - low) / 2)
    band = spread(values[:, None], "interval")
    assert (band.low[0], band.high[0]) == pytest.approx((low, high))
    assert np.isnan(half_width(np.ones(2), np.array([1, 2]))).all()


def test_a_caption_tells_the_number_of_seeds(snapshot):
    counts = ([3, 3], [3, 5], [2, 5], [1, 4], [2, 2], [1, 1])
    texts = [band_text(seeds, band) for band in ("interval", "seeds") for seeds in counts]
    assert "\n".join([*texts, band_text([2])]) == snapshot


# By simulation


def covered(estimates, true):
    return np.mean([estimate.low <= true <= estimate.high for estimate in estimates])


@pytest.mark.parametrize("seeds", [5, 10, 20])
@pytest.mark.parametrize("tasks", [1, 3])
def test_the_interval_of_the_iqm_covers_it_in_93_to_97_percent(seeds, tasks):
    rng = np.random.default_rng([seeds, tasks])
    sweeps = rng.normal(size=(SWEEPS, tasks, seeds))
    assert 0.93 <= covered([interquartile_mean(list(s)) for s in sweeps], 0.0) <= 0.97


@pytest.mark.parametrize("seeds", [5, 10, 20])
def test_the_interval_of_an_improvement_covers_it_in_93_to_97_percent(seeds):
    rng = np.random.default_rng(seeds)
    shift = 0.7
    true = stats.norm.cdf(shift / math.sqrt(2))
    first, second = rng.normal(shift, 1, (SWEEPS, seeds)), rng.normal(0, 1, (SWEEPS, seeds))
    estimates = [probability_of_improvement([x], [y]) for x, y in zip(first, second, strict=True)]
    assert 0.93 <= covered(estimates, true) <= 0.97


def test_a_percentile_bootstrap_is_too_narrow_for_few_seeds():
    sweeps = np.random.default_rng(8).normal(size=(SWEEPS, 3))
    how = {"axis": -1, "vectorized": True, "method": "percentile", "n_resamples": 999}
    interval = stats.bootstrap((sweeps,), iqm, rng=np.random.default_rng(0), **how)
    low, high = interval.confidence_interval
    assert np.mean((low <= 0) & (high >= 0)) < 0.80
    ours = [interquartile_mean([runs]) for runs in sweeps]
    assert 0.93 <= covered(ours, 0.0) <= 0.97


@pytest.mark.parametrize(("tasks", "seeds"), [(1, 3), (1, 5), (3, 5), (10, 3)])
def test_the_interval_of_a_profile_holds_near_its_ends_too(tasks, seeds):
    """A score is a probability, and a run is above it with that chance; tasks differ."""
    rng = np.random.default_rng([tasks, seeds])
    for centre in (0.02, 0.1, 0.5, 0.9, 0.98):
        chances = np.clip(centre + 0.4 * rng.uniform(-1, 1, tasks) * (tasks > 1), 0, 1)
        above = rng.random((2000, tasks, seeds)) < chances[:, None]
        known: dict[int, tuple[float, float]] = {}
        hits = 0
        for sweep in above.astype(float):
            count = int(sweep.sum())
            if count not in known:
                _, low, high = performance_profile(list(sweep), np.array([0.5]))
                known[count] = low[0], high[0]
            hits += known[count][0] <= chances.mean() <= known[count][1]
        assert hits / 2000 >= 0.945


def test_holm_keeps_the_family_wise_error():
    """At most 5 %, and three standard errors of 1,000 sweeps."""
    rng = np.random.default_rng(9)
    first, second = np.triu_indices(4, k=1)
    plain = wrong = 0
    for _ in range(SWEEPS):
        p = welch_p(list(rng.normal(size=(4, 5))), first, second)
        plain += bool((p < 0.05).any())
        wrong += bool((holm(p) < 0.05).any())
    assert wrong / SWEEPS <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / SWEEPS)
    assert plain / SWEEPS > 0.10  # the reason for the correction
