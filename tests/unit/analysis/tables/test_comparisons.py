"""Differences between groups: which are tested, corrected and shown."""

import numpy as np
import pytest
from given import THREE, changed_plan, make_sweep, make_tables, read
from scipy import stats

from qdsweep.analysis.selection import short_names
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.tables.comparisons import SHOWN_GROUPS


def test_every_pair_is_tested_and_corrected(tmp_path):
    pairs = read(make_tables(tmp_path, THREE) / "tables", "comparisons")
    assert list(zip(pairs["higher"], pairs["lower"], strict=True)) == [
        ("best", "near"), ("best", "far"), ("near", "far"),
    ]  # fmt: skip
    for row in pairs.to_dict("records"):
        one, other = THREE[row["higher"]], THREE[row["lower"]]
        assert row["welch_p"] == pytest.approx(stats.ttest_ind(one, other, equal_var=False).pvalue)
        assert row["mann_whitney_p"] == pytest.approx(stats.mannwhitneyu(one, other).pvalue)
        assert row["improvement"] == pytest.approx(stats.mannwhitneyu(one, other).statistic / 36)
        assert row["metric"] == "norm_qd_score"
    worst = pairs["welch_p"].max()
    assert pairs["holm_p"].max() == worst  # the last one is corrected for itself alone
    assert (pairs["holm_p"] >= pairs["welch_p"]).all()
    assert pairs["holm_p"].min() == pytest.approx(3 * pairs["welch_p"].min())


def test_of_equal_means_none_is_the_higher(tmp_path, snapshot):
    scores = {"a": [0.1, 0.2, 0.3], "b": [0.3, 0.2, 0.1], "c": [0.0, 0.1, 0.1]}
    sweep = make_tables(tmp_path, scores)
    assert (sweep / "tables/comparisons.md").read_text() == snapshot


def test_two_seeds_are_not_tested(tmp_path, snapshot):
    sweep = make_tables(tmp_path, {"a": [1.0, 1.1], "b": [2.0, 2.1]})
    assert read(sweep / "tables", "comparisons").empty
    assert (sweep / "tables/comparisons.md").read_text() == snapshot
    assert (sweep / "table.md").read_text() == snapshot
    assert read(sweep, "table")["norm_qd_score_iqm_low"].isna().all()


def test_groups_with_the_same_runs_are_not_tested(tmp_path):
    sweep = make_sweep(tmp_path, {"a": [1.0, 1.1, 1.3]})
    with changed_plan(sweep) as plan:
        plan["columns"] = ["algorithm", "seed", "iterations"]
        plan["rows"] = [
            row | {"iterations": budget, "values": {**row["values"], "iterations": budget}}
            for budget in (2, 3)
            for row in plan["rows"]
        ]
    aggregate(sweep, tmp_path / "runs")
    assert read(sweep, "table")["norm_qd_score_mean"].is_monotonic_increasing
    assert read(sweep / "tables", "comparisons").empty


def test_of_many_groups_the_best_are_shown_and_all_are_corrected_for(tmp_path):
    rng = np.random.default_rng(4)
    names = [f"g{i:02d}" for i in range(SHOWN_GROUPS + 3)]
    many = {name: list(i + rng.normal(size=3)) for i, name in enumerate(names)}
    pairs = read(make_tables(tmp_path, many) / "tables", "comparisons")
    assert len(pairs) == SHOWN_GROUPS * (SHOWN_GROUPS - 1) // 2
    means = {name: np.mean(scores) for name, scores in many.items()}
    shown = sorted(names, key=lambda name: -means[name])[:SHOWN_GROUPS]
    assert set(pairs["higher"]) | set(pairs["lower"]) == set(shown)
    every = [
        stats.ttest_ind(many[a], many[b], equal_var=False).pvalue
        for i, a in enumerate(names)
        for b in names[i + 1 :]
    ]
    smallest = pairs.loc[pairs["welch_p"].idxmin()]
    rank = sum(p < smallest["welch_p"] * (1 - 1e-9) for p in every)
    assert smallest["holm_p"] >= min((len(every) - rank) * smallest["welch_p"], 1) * (1 - 1e-9)


def test_short_names_are_as_long_as_they_must_be():
    assert short_names(["a; grid; x", "b; grid; x"]) == ["a", "b"]
    assert short_names(["a; grid; x", "a; cvt; x"]) == ["a; grid", "a; cvt"]
