"""Which differences between groups are tested, corrected and shown."""

import json

import numpy as np
import pytest
from given import THREE, changed_plan, make_sweep, make_tables, read
from looks import data_of
from scipy import stats

from qdsweep.analysis.page.headline import headline
from qdsweep.analysis.selection import short_names
from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.statistics import ENOUGH_SEEDS, SEEDS_RULE
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.tables.comparisons import SHOWN_GROUPS


def test_every_pair_is_tested_and_corrected(tmp_path):
    pairs = read(make_tables(tmp_path, THREE) / "tables", "comparisons")
    assert list(zip(pairs["higher"], pairs["lower"], strict=True)) == [
        ("best", "near"), ("best", "far"), ("near", "far"),
    ]  # fmt: skip
    for row in pairs.to_dict("records"):
        first, second = THREE[row["higher"]], THREE[row["lower"]]
        assert row["welch_p"] == pytest.approx(
            stats.ttest_ind(first, second, equal_var=False).pvalue
        )
        assert row["mann_whitney_p"] == pytest.approx(stats.mannwhitneyu(first, second).pvalue)
        assert row["improvement"] == pytest.approx(stats.mannwhitneyu(first, second).statistic / 36)
        assert row["metric"] == "norm_qd_score"
        assert row["difference_low"] < row["difference"] < row["difference_high"]
        zero_is_outside = row["difference_low"] * row["difference_high"] > 0
        assert zero_is_outside == (row["bonferroni_p"] <= 0.05)
        assert row["bonferroni_p"] == pytest.approx(min(3 * row["welch_p"], 1))
    worst = pairs["welch_p"].max()
    assert pairs["holm_p"].max() == worst  # the last one is corrected only for itself
    assert (pairs["holm_p"] >= pairs["welch_p"]).all()
    assert pairs["holm_p"].min() == pytest.approx(3 * pairs["welch_p"].min())


def test_of_equal_means_none_is_the_higher(tmp_path, snapshot):
    scores = {
        **{"a": [0.1, 0.2, 0.3, 0.2, 0.2], "b": [0.3, 0.2, 0.1, 0.2, 0.2]},
        "c": [0.0, 0.1, 0.1, 0.2, 0.1],
    }
    sweep = make_tables(tmp_path, scores)
    assert (sweep / "tables/comparisons.md").read_text() == snapshot


def test_two_seeds_are_not_tested(tmp_path, snapshot):
    sweep = make_tables(tmp_path, {"a": [1.0, 1.1], "b": [2.0, 2.1]})
    assert read(sweep / "tables", "comparisons").empty
    assert (sweep / "tables/comparisons.md").read_text() == snapshot
    assert (sweep / "table.md").read_text() == snapshot
    assert read(sweep, "table")["norm_qd_score_iqm_low"].isna().all()


def test_equal_runs_have_no_interval_where_their_order_is_no_evidence(tmp_path):
    scores = {f"g{i}": [i / 10] * 5 for i in range(5)}
    sheet = read_sheet(make_tables(tmp_path, scores) / "tables/comparisons.json")
    texts = [dict(zip(sheet.columns, (c.text for c in row), strict=True)) for row in sheet.rows]
    assert not any("[" in row["Difference [95 %]"] for row in texts)
    assert {row["p (Bonferroni)"] for row in texts} == {"0.079"}
    assert "No interval" in sheet.note
    del scores["g4"]
    sheet = read_sheet(make_tables(tmp_path / "4", scores) / "tables/comparisons.json")
    assert "[" in sheet.rows[0][3].text and "No interval" not in sheet.note


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
    many = {name: list(i + rng.normal(size=5)) for i, name in enumerate(names)}
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


SCORES = {
    ("a", "1"): [0.1, 0.2, 0.3, 0.35, 0.2],
    ("a", "2"): [0.5, 0.55, 0.6, 0.7, 0.6],
    ("b", "1"): [0.2, 0.4, 0.5, 0.6, 0.5],
    ("b", "2"): [0.3, 0.45, 0.5, 0.56, 0.4],
}


def two_factors(folder, seeds=5):
    """A sweep of algorithm x step x seed with `SCORES`."""
    flat = {f"{name}{step}": scores[:seeds] for (name, step), scores in SCORES.items()}
    sweep = make_sweep(folder, flat)
    with changed_plan(sweep) as plan:
        plan["columns"] = ["algorithm", "step", "seed"]
        for row in plan["rows"]:
            name, step = row["values"]["algorithm"]
            row["values"] |= {"algorithm": name, "step": int(step)}
        plan["figures"] = {"labels": {"a": "Alpha"}}
    aggregate(sweep, folder / "runs")
    return sweep


def test_pairs_that_differ_in_one_name_are_corrected_for_that_name(tmp_path):
    multitest = pytest.importorskip("statsmodels.stats.multitest")  # no wheel for Python 3.14
    table = read(two_factors(tmp_path) / "tables", "factors")
    assert table[["factor", "within", "higher", "lower"]].to_numpy().tolist() == [
        ["algorithm", "step 1", "b, step 1", "a, step 1"],
        ["algorithm", "step 2", "a, step 2", "b, step 2"],
        ["step", "a", "a, step 2", "a, step 1"],
        ["step", "b", "b, step 2", "b, step 1"],
    ]
    for start in (0, 2):
        rows = table.iloc[start : start + 2]
        corrected = multitest.multipletests(rows["welch_p"], method="holm")[1]
        assert rows["holm_p"].tolist() == pytest.approx(list(corrected))


def test_four_seeds_have_no_table_of_factors(tmp_path, snapshot):
    assert not list((two_factors(tmp_path / "4", 4) / "tables").glob("factors.*"))
    assert (two_factors(tmp_path / "5") / "tables/factors.md").read_text() == snapshot


@pytest.mark.parametrize("seeds", [2, 4, ENOUGH_SEEDS])
def test_one_number_of_seeds_is_enough_for_every_test(tmp_path, seeds):
    """The tables name it only where a group has fewer."""
    scores = {"a": np.arange(seeds) / 10 + 0.3, "b": np.arange(seeds) / 10}
    sweep = make_tables(tmp_path, {name: list(of) for name, of in scores.items()})
    sheet = read_sheet(sweep / "tables/comparisons.json")
    is_enough = seeds == ENOUGH_SEEDS
    assert len(sheet.rows) == is_enough
    assert (f"at least {ENOUGH_SEEDS} seeds" not in sheet.note) == is_enough
    for text in (read_sheet(sweep / "table.json").note, headline(data_of(sweep))):
        assert (SEEDS_RULE not in text) == is_enough or seeds == 2


def test_the_rank_test_is_corrected_and_its_smallest_p_is_named(tmp_path):
    multitest = pytest.importorskip("statsmodels.stats.multitest")  # no wheel for Python 3.14
    scores = {f"g{i}": list(i + np.arange(5) / 10) for i in range(5)}
    sweep = make_tables(tmp_path, scores)
    pairs = read(sweep / "tables", "comparisons")
    assert set(pairs["mann_whitney_p"]) == {2 / 252}
    corrected = multitest.multipletests(pairs["mann_whitney_p"], method="holm")[1]
    assert pairs["mann_whitney_holm_p"].tolist() == pytest.approx(list(corrected))
    note = read_sheet(sweep / "tables/comparisons.json").note
    assert "p (Mann-Whitney, Holm) is at least 0.079" in note
    del scores["g4"]
    note = read_sheet(make_tables(tmp_path / "4", scores) / "tables/comparisons.json").note
    assert "is at least" not in note


def test_several_tasks_share_five_percent(tmp_path, snapshot):
    rng = np.random.default_rng(1)
    means = {"a": 4, "b": 1, "c": 4, "d": 1.4}
    scores = {name: list(at + rng.normal(size=5)) for name, at in means.items()}
    sweep = make_sweep(tmp_path, scores)
    alone = headline(data_of(aggregated(sweep)))
    for name in "cd":
        for file in (tmp_path / "runs").glob(f"{name}-*/summary.json"):
            about = json.loads(file.read_text())
            about["archive"]["qd_score_offset"] = -1.0
            file.write_text(json.dumps(about))
    sheet = read_sheet(aggregated(sweep) / "tables/comparisons.json")
    assert sheet.columns[0] == "Task" and len(sheet.rows) == 2
    assert [alone, headline(data_of(sweep))] == snapshot


def aggregated(sweep):
    aggregate(sweep, sweep.parents[1] / "runs")
    return sweep


def test_a_difference_has_its_interval_and_three_digits(tmp_path):
    scores = {"a": [2.2, 2.5, 3.1, 2.8, 2.4], "b": [0.2, 0.1, 0.4, 0.3, 0.2]}
    sheet = read_sheet(make_tables(tmp_path, scores) / "tables/comparisons.json")
    low, high = stats.ttest_ind(*scores.values(), equal_var=False).confidence_interval(0.95)
    shown = sheet.rows[0][sheet.columns.index("Difference [95 %]")].text
    assert shown == f"2.36 [{low:.2f}, {high:.2f}]"


def test_one_swept_name_has_no_table_of_factors(tmp_path):
    sweep = two_factors(tmp_path)
    with changed_plan(sweep) as plan:
        plan["rows"] = [row for row in plan["rows"] if row["values"]["step"] == 1]
    aggregate(sweep, tmp_path / "runs")
    assert not list((sweep / "tables").glob("factors.*"))
