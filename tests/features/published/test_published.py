"""Published values: the verdict and the table."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from given import entry
from refusals import refused
from scipy import stats

from qdsweep.features.published.tables import compare_published, verdict, write_tables
from qdsweep.records.plan import Plan


def make_plan(published):
    rows = [
        {"values": {"algorithm": run[0], "seed": int(run[2])}, "id": run} for run in summary()["id"]
    ]
    columns, values = ["algorithm", "seed"], [value.plain for value in published]
    about = {"name": "n", "experiment": "sphere", "sweep": "", "columns": columns}
    return {**about, "rows": rows, "published": values}


def summary():
    runs = {
        "a-1": ("finished", 0.4), "a-2": ("finished", 0.5), "a-3": ("finished", 0.6),
        "b-1": ("finished", 0.1), "b-2": ("partial", 0.2), "b-3": ("missing", math.nan),
        "c-1": ("missing", math.nan), "c-2": ("missing", math.nan), "c-3": ("missing", math.nan),
    }  # fmt: skip
    data = pd.DataFrame(
        [(run[0], run, *values) for run, values in runs.items()],
        columns=["group", "id", "status", "coverage"],
    )
    return data.assign(norm_qd_score=100 * data["coverage"])


def test_the_mean_of_finished_runs_is_compared_each_once():
    published = [
        entry({"algorithm": "a"}, mean=0.55, tolerance=0.05),
        entry({"algorithm": "a"}, metric="norm_qd_score", mean=60.0, tolerance=9.9),
        entry({"algorithm": "b"}, mean=0.15),
        entry({"algorithm": "c"}),
    ]
    listed_twice = pd.concat([summary()] * 2)
    table = compare_published(Plan.of(make_plan(published)), listed_twice)
    assert list(table["verdict"]) == ["agrees", "differs", "agrees", "no results"]
    assert list(table["n"]) == [3, 3, 1, 0]  # an unfinished run does not count
    first = table.iloc[0]
    assert (first["mean"], first["difference"]) == (pytest.approx(0.5), pytest.approx(-0.05))
    assert first["se"] == pytest.approx(0.1 / math.sqrt(3))
    assert table.loc[2, "mean"] == 0.10 and math.isnan(table.loc[2, "se"])


@pytest.mark.parametrize(
    ("difference", "expected"),
    [
        (0.3 - 0.2, "agrees"),  # 0.09999999999999998
        (0.8 - 0.7, "agrees"),  # 0.10000000000000009
        (-0.1001, "differs"),
        (math.nan, "no results"),
    ],
)
def test_the_tolerance_is_inclusive(difference, expected):
    assert verdict(difference, 0.1) == expected


def test_the_table_is_for_readers_and_goes_with_the_values(tmp_path, snapshot):
    summary().assign(qd_score=1.0, scale="x").to_csv(tmp_path / "summary.csv", index=False)
    for name in ("table", "curves"):
        table = pd.DataFrame({"group": ["a", "b"], "qd_score_mean": 1.0, "qd_score_n": 1})
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    published = [
        entry({"algorithm": "a"}, mean=0.508, tolerance=0.006),
        entry({"algorithm": "a"}, metric="norm_qd_score", mean=41.64, source="another, table 2"),
        entry({"algorithm": "c"}),
    ]
    (tmp_path / "plan.json").write_text(json.dumps(make_plan(published)))
    write_tables(tmp_path)
    assert (tmp_path / "tables/published.md").read_text() == snapshot
    data = pd.read_csv(tmp_path / "tables/published.csv")
    assert data["published"][0] == 0.508  # a fraction, with all its digits
    assert len(list((tmp_path / "tables").glob("published.*"))) == 4
    (tmp_path / "plan.json").write_text(json.dumps(make_plan([])))
    write_tables(tmp_path)
    assert not list((tmp_path / "tables").glob("published.*"))


def with_trials(where, **changes):
    keys = {"tolerance": None, "trials": 20, "metric": "norm_qd_score"} | changes
    return entry({"algorithm": where}, **keys)


def test_a_value_with_a_spread_has_a_corrected_test():
    published = [
        with_trials("a", mean=58.0, spread=4.0),
        with_trials("a", mean=150.0, spread=4.0),
        with_trials("b", mean=90.0, spread=4.0),
        with_trials("c", mean=90.0, spread=4.0),
        entry({"algorithm": "a"}, mean=0.55, tolerance=0.05),
    ]
    table = compare_published(Plan.of(make_plan(published)), summary())
    expected = ["agrees", "differs", "too few seeds", "no results", "agrees"]
    assert list(table["verdict"]) == expected
    runs = stats.ttest_ind_from_stats(50, 10, 3, [58, 150], 4, 20, equal_var=False)
    # Four tests: those without results count.
    assert list(table["p"][:2]) == pytest.approx([3 * runs.pvalue[0], 4 * runs.pvalue[1]])
    # The test without correction, at a quarter of the level, is significant from this difference.
    least = 50 + table["detectable"][1] * np.array([1 - 1e-6, 1 + 1e-6])
    p = stats.ttest_ind_from_stats(50, 10, 3, least, 4, 20, equal_var=False).pvalue
    assert p[0] > 0.05 / 4 > p[1]
    assert table.loc[2:, "detectable"].isna().all()


def test_a_difference_within_the_margin_agrees_however_small_the_spreads():
    data = summary().assign(norm_qd_score=[75.0, 75.001, 75.002] * 3, status="finished")
    published = [
        with_trials("a", mean=75.3, spread=0.0002),
        with_trials("b", mean=75.4, spread=0.0002),
        with_trials("c", mean=75.001, spread=0.0),
    ]
    table = compare_published(Plan.of(make_plan(published)), data)
    assert list(table["verdict"]) == ["agrees", "differs", "agrees"]
    assert (table["p"] < 0.001)[:2].all()
    assert list(table["detectable"]) == pytest.approx([0.005 * v for v in (75.3, 75.4, 75.001)])
    equal = compare_published(Plan.of(make_plan(published[2:])), data.assign(norm_qd_score=75.001))
    assert (equal["verdict"][0], equal["p"][0]) == ("agrees", 1.0)


def test_the_table_of_tests_is_for_readers(tmp_path, snapshot):
    summary().assign(qd_score=1.0, scale="x").to_csv(tmp_path / "summary.csv", index=False)
    for name in ("table", "curves"):
        table = pd.DataFrame({"group": ["a", "b"], "qd_score_mean": 1.0, "qd_score_n": 1})
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    published = [
        with_trials("a", mean=41.64, spread=2.5),
        with_trials("c", metric="coverage", mean=0.508, spread=0.004),
        entry({"algorithm": "b"}, mean=0.11, tolerance=0.02),
    ]
    (tmp_path / "plan.json").write_text(json.dumps(make_plan(published)))
    write_tables(tmp_path)
    assert (tmp_path / "tables/published.md").read_text() == snapshot
    data = pd.read_csv(tmp_path / "tables/published.csv")
    assert data["spread"][1] == 0.004 and data["trials"][1] == 20
    write_tables(tmp_path)


@pytest.mark.parametrize(
    "keys",
    [
        {"tolerance": 0.1, "spread": 0.1, "trials": 20},
        {"tolerance": None, "spread": 0.1},
        {"tolerance": None, "trials": 20},
        {"tolerance": None},
    ],
)
def test_a_value_has_one_rule(keys):
    with refused("tolerance", "spread", "trials", kind=ValueError):
        entry({"algorithm": "a"}, **keys)


def test_a_number_of_trials_that_no_table_can_hold_is_refused():
    with refused("trials", 10**30, kind=ValueError):
        with_trials("a", mean=1.0, spread=1.0, trials=10**30)
