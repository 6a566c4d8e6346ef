"""Differences between groups: which are tested, corrected and shown."""

import json

import numpy as np
import pytest
from given import THREE, make_sweep, read
from scipy import stats

from qdsweep.analysis.selection import short_names
from qdsweep.analysis.sheet import (
    read_sheet,
)
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.tables.comparisons import SHOWN_GROUPS


def test_every_pair_is_tested_and_corrected(tmp_path):
    sweep = make_sweep(tmp_path, THREE)
    aggregate(sweep, tmp_path / "runs")
    pairs = read(sweep / "tables", "comparisons")
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


def test_of_equal_means_none_is_the_higher(tmp_path):
    scores = {"a": [0.1, 0.2, 0.3], "b": [0.3, 0.2, 0.1], "c": [0.0, 0.1, 0.1]}
    sweep = make_sweep(tmp_path, scores)
    aggregate(sweep, tmp_path / "runs")
    sheet = read_sheet(sweep / "tables" / "comparisons.json")
    pairs = {frozenset(cell.text for cell in row[:2]) for row in sheet.rows}
    assert pairs & {frozenset({"a", "b (equal)"}), frozenset({"b", "a (equal)"})}
    assert {frozenset("ac"), frozenset("bc")} <= pairs


def test_two_seeds_are_not_tested(tmp_path):
    sweep = make_sweep(tmp_path, {"a": [1.0, 1.1], "b": [2.0, 2.1]})
    aggregate(sweep, tmp_path / "runs")
    sheet = read_sheet(sweep / "tables" / "comparisons.json")
    assert sheet.rows == []
    assert "Nothing can be tested" in sheet.note and "3 seeds" in sheet.note
    assert read(sweep / "tables", "comparisons").empty
    table = read_sheet(sweep / "table.json")
    assert "Groups of fewer than 3 seeds are not tested." in table.note
    assert not any("†" in cell.text for row in table.rows for cell in row)
    assert read(sweep, "table")["norm_qd_score_iqm_low"].isna().all()


def test_groups_with_the_same_runs_are_not_tested(tmp_path):
    sweep = make_sweep(tmp_path, {"a": [1.0, 1.1, 1.3]})
    plan = json.loads((sweep / "plan.json").read_text())
    plan["columns"] = ["algorithm", "seed", "iterations"]
    plan["rows"] = [
        row | {"iterations": budget, "values": {**row["values"], "iterations": budget}}
        for budget in (2, 3)
        for row in plan["rows"]
    ]
    (sweep / "plan.json").write_text(json.dumps(plan))
    aggregate(sweep, tmp_path / "runs")
    assert read(sweep, "table")["norm_qd_score_mean"].is_monotonic_increasing
    assert read(sweep / "tables", "comparisons").empty


def test_of_many_groups_the_best_are_shown_and_all_are_corrected_for(tmp_path):
    rng = np.random.default_rng(4)
    names = [f"g{i:02d}" for i in range(SHOWN_GROUPS + 3)]
    many = {name: list(i + rng.normal(size=3)) for i, name in enumerate(names)}
    sweep = make_sweep(tmp_path, many)
    aggregate(sweep, tmp_path / "runs")
    pairs = read(sweep / "tables", "comparisons")
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
