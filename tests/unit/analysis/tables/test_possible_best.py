"""The rule of the best group: what it claims of groups that do not differ, and what of others."""

import numpy as np
import pytest
from given import make_tables, read
from hypothesis import given, settings
from hypothesis import strategies as st
from looks import data_of
from scipy import stats

from qdsweep.analysis import statistics
from qdsweep.analysis.page.headline import headline
from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.statistics import ALPHA, ENOUGH_SEEDS, is_in_clumps, welch
from qdsweep.analysis.tables import comparisons, possible_best
from qdsweep.analysis.tables.comparisons import Runs, compare
from qdsweep.analysis.tables.possible_best import beaten
from qdsweep.analysis.tables.possible_best import possible_best as verdicts_on

SWEEPS = 5000


def normal(rng, shape):
    return rng.normal(size=shape)


def binary(rng, shape):
    return (rng.random(shape) < 0.5).astype(float)


def groups_of(scores):
    """Returns groups without a run in common, of ``(k, n)`` scores."""
    return {
        f"g{i}": Runs(frozenset(f"{i}-{j}" for j in range(len(own))), np.asarray(own, float))
        for i, own in enumerate(scores)
    }


def out_of(scores, tasks=1):
    """Returns which groups are beaten; ``(..., k, n)`` scores -> ``(..., k)``."""
    k, n = scores.shape[-2:]
    spread = np.where((scores == scores[..., :1]).all(-1), 0.0, scores.std(-1, ddof=1))
    summaries = np.stack([scores.mean(-1), spread, np.full(spread.shape, n)], axis=-1)
    return beaten(summaries, possible_best.one_sided_level(k, tasks))


def remove_level(patch):
    patch.setattr(possible_best, "one_sided_level", lambda groups, tasks: ALPHA)


def remove_least(patch):
    patch.setattr(statistics, "least_order", lambda first, second: 0.0)


def remove_enough(patch):
    for module in (possible_best, comparisons):
        patch.setattr(module, "ENOUGH_SEEDS", 3)


def false_best():
    """The share of null sweeps of two groups that name one."""
    rng = np.random.default_rng(1)
    return ((~out_of(normal(rng, (SWEEPS, 2, 5)))).sum(-1) == 1).mean()


def true_best_is_out():
    """The share of null sweeps of five groups where a given one is out."""
    return out_of(normal(np.random.default_rng(2), (SWEEPS, 5, 5)))[:, 0].mean()


def true_best_of_binary_tasks_is_out():
    """The share of null sweeps of 20 tasks with 0/1 scores where a given group is out of one."""
    scores = binary(np.random.default_rng(3), (500, 20, 8, 5))
    return out_of(scores, tasks=20)[..., 0].any(-1).mean()


def claims_on_three_seeds():
    """The share of null sweeps of eight groups of three nearly binary runs with a claim."""
    rng = np.random.default_rng(4)
    scores = binary(rng, (100, 8, 3)) + 0.001 * normal(rng, (100, 8, 3))
    marked = [verdicts_on([(groups_of(of), 1)])[0].marked for of in scores]
    return np.mean([0 < len(of) < 8 for of in marked])


@pytest.mark.parametrize(
    ("share", "guard", "bound"),
    [
        (false_best, remove_level, 0.06),
        (true_best_is_out, remove_level, 0.06),
        (true_best_of_binary_tasks_is_out, remove_least, 0.06),
        (claims_on_three_seeds, remove_enough, 0.0),
    ],
)
def test_equal_groups_are_rarely_told_apart_and_each_guard_is_needed(
    share, guard, bound, monkeypatch
):
    assert share() <= bound
    with monkeypatch.context() as patch:
        guard(patch)
        assert share() > bound


def test_five_equal_groups_of_five_seeds_rarely_have_a_best():
    scores = normal(np.random.default_rng(5), (SWEEPS, 5, 5))
    assert ((~out_of(scores)).sum(-1) == 1).mean() <= 0.06


@pytest.mark.parametrize("seeds", [3, 4])
def test_binary_scores_of_few_seeds_are_no_claim(seeds):
    """Without both guards, 43 % of sweeps of three seeds would have one."""
    every = binary(np.random.default_rng(6), (200, 8, seeds))
    for scores in every:
        assert verdicts_on([(groups_of(scores), 1)])[0] == ([], set(), [])
    assert not out_of(every).any()
    with pytest.MonkeyPatch.context() as patch:
        remove_least(patch)
        assert out_of(every).any(-1).mean() > 0.1


@pytest.mark.rest
@pytest.mark.parametrize("seeds", [5, 10])
@pytest.mark.parametrize("groups", [2, 3, 5, 8])
@pytest.mark.parametrize(
    "draw",
    [
        normal,
        binary,
        lambda rng, shape: rng.lognormal(size=shape),
        lambda rng, shape: np.where(rng.random(shape) < 0.2, -5.0, 0) + 0.3 * normal(rng, shape),
        lambda rng, shape: normal(rng, shape).round(),
        lambda rng, shape: np.minimum(normal(rng, shape), 0.0),
    ],
    ids=["normal", "binary", "log-normal", "failing", "ties", "saturated"],
)
def test_the_best_is_marked_and_one_of_two_bests_is_rarely_named(draw, groups, seeds):
    """20,000 sweeps: two tie at the top, the others are far below."""
    rng = np.random.default_rng([groups, seeds])
    scores = draw(rng, (20_000, groups, seeds))
    scores[:, 2:] -= 9
    out = out_of(scores)
    assert ((~out).sum(-1) == 1).mean() <= 0.055
    assert max(out[:, place].mean() for place in (0, 1)) <= 0.055


def test_each_pair_is_tested_one_sided_at_its_share_of_five_percent():
    rng = np.random.default_rng(7)
    for sign in (1, -1):
        for _ in range(50):
            scores = [rng.normal(0.7 * i, 1 + i, 5 + i) for i in range(4)]
            for tasks in (1, 3):
                every = [(groups_of(scores), sign)] * tasks
                side = "greater" if sign > 0 else "less"
                expected = {
                    f"g{j}"
                    for j, own in enumerate(scores)
                    if not any(
                        stats.ttest_ind(of, own, equal_var=False, alternative=side).pvalue
                        <= 0.05 / 4 / tasks
                        for of in scores
                    )
                }
                assert verdicts_on(every)[0].marked == expected


def test_the_order_of_means_alone_never_puts_the_best_out():
    equal = [np.full(5, value) for value in (0.1, 0.5, 0.9)]
    verdict = verdicts_on([(groups_of(equal), 1)])[0]
    assert verdict.tested == ["g2", "g1", "g0"]
    assert verdict.alone == "g2"  # 1 / C(10, 5) is below 0.05 / 3
    assert verdicts_on([(groups_of(equal), -1)])[0].alone == "g0"
    assert verdicts_on([(groups_of(equal), 1)] * 5)[0].marked == {"g0", "g1", "g2"}


def test_groups_that_share_a_run_are_not_out_by_each_other():
    scores = np.array([[1.0, 1.1, 1.2, 1.3, 1.1], [0.1, 0.2, 0.3, 0.1, 0.4], [0.1] * 5])
    groups = groups_of(scores)
    groups["g1"] = Runs(groups["g0"].ids, scores[1])
    assert verdicts_on([(groups, 1)])[0].marked == {"g0", "g1"}
    del groups["g2"]
    assert verdicts_on([(groups, 1)])[0] == ([], set(), [])


FLOATS = st.floats(-1e3, 1e3, allow_nan=False).map(lambda value: round(value, 3))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(FLOATS, min_size=5, max_size=8), min_size=2, max_size=4))
def test_an_interval_excludes_0_if_and_only_if_its_p_is_at_most_five_percent(scores):
    groups = groups_of(scores)
    for sign in (1, -1):
        pairs = compare(groups, sign)
        for record in comparisons.pair_records(groups, pairs, sign):
            low, high = record["difference_low"], record["difference_high"]
            is_apart = low > 0 or high < 0 or low == high != 0
            assert is_apart == (record["bonferroni_p"] <= 0.05)
            assert not low > record["difference"] and not high < record["difference"]
            assert record["holm_p"] <= record["bonferroni_p"]


def test_an_interval_of_equal_runs_is_as_unsure_as_their_order():
    few, many = (welch(*(np.array([m, 0.0, n]) for m in (1.0, 0.0))) for n in (5, 20))
    assert few.apart == pytest.approx(2 / 252)
    assert np.isnan(few.half_width(0.005)) and few.half_width(0.05) == 0
    assert many.half_width(0.005) == 0


# Runs of one seed


def seeded(scores):
    return {
        name: Runs(frozenset(f"{name}{seed}" for seed in range(len(own))), np.array(own),
                   [str(seed) for seed in range(len(own))])
        for name, own in scores.items()
    }  # fmt: skip


def test_runs_of_one_seed_are_compared_by_their_differences():
    rng = np.random.default_rng(8)
    terrain = 5 * rng.normal(size=8)
    scores = {name: terrain + at + 0.3 * rng.normal(size=8) for name, at in (("a", 0), ("b", 1))}
    groups = seeded(scores)
    assert verdicts_on([(groups, 1)])[0].alone is None
    assert verdicts_on([(groups, 1)], "paired")[0].alone == "b"
    assert verdicts_on([(groups, -1)], "paired")[0].alone == "a"
    groups["b"] = Runs(groups["b"].ids, groups["b"].scores[::-1], groups["b"].seeds[::-1])
    pairs = compare(groups, tests="paired")
    test = stats.ttest_rel(scores["b"], scores["a"])
    assert pairs.differences.apart[0] == pytest.approx(test.pvalue)
    (record,) = comparisons.pair_records(groups, pairs, 1)
    ends = test.confidence_interval(0.95)
    assert (record["difference_low"], record["difference_high"]) == pytest.approx(tuple(ends))


def test_pairs_need_five_seeds_in_common_and_differences_that_vary():
    groups = seeded({"a": [1.0, 2, 3, 4, 5], "b": [2.0, 3, 4, 5, 6]})
    (p,) = compare(groups, tests="paired").differences.apart
    assert p == 2 / 2**5
    groups["b"] = Runs(groups["b"].ids, groups["b"].scores, ["0", "1", "2", "3", "9"])
    assert compare(groups, tests="paired").count == 0
    assert verdicts_on([(groups, 1)], "paired")[0].alone is None


def test_the_sweep_file_chooses_the_tests_of_page_and_tables(tmp_path, snapshot):
    rng = np.random.default_rng(9)
    terrain = rng.normal(size=6)
    scores = {n: list(9 + terrain + at + rng.normal(size=6) / 9) for n, at in (("a", 0), ("b", 1))}
    sweep = make_tables(tmp_path, scores, tests="paired")
    sheet = read_sheet(sweep / "tables/comparisons.json")
    assert sheet.note == snapshot
    assert read_sheet(sweep / "table.json").note == snapshot
    assert sheet.rows[0][-1].text == "\u2013"
    assert " significantly higher than that of a (" in headline(data_of(sweep))
    assert read(sweep / "tables", "comparisons")["holm_p"][0] == pytest.approx(
        stats.ttest_rel(scores["a"], scores["b"]).pvalue
    )


# Clumps


def test_clumps_are_found_in_one_percent_of_normal_groups_and_in_most_that_fail():
    rng = np.random.default_rng(10)
    for n, least in ((5, 0.6), (10, 0.85), (20, 0.97)):
        drawn = rng.normal(size=(2000, n))
        assert np.mean([is_in_clumps(scores) for scores in drawn]) <= 0.015
        failing = np.where(rng.random((1000, n)) < 0.2, 0.0, 1.0) + 0.03 * drawn[:1000]
        assert np.mean([is_in_clumps(scores) for scores in failing]) >= least
    assert not is_in_clumps(np.full(5, 0.3))
    assert ENOUGH_SEEDS == 5
