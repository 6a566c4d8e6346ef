"""Published values: the verdict and the table."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from given import entry
from refusals import refused
from scipy import stats

from qdsweep.features.published.tables import compare_published, published_sheet, write_tables
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


def test_no_margin_is_a_fraction_of_a_mean_of_zero():
    with pytest.raises(ValueError, match="mean = 0"):
        entry({"algorithm": "c"}, mean=0.0)
    assert entry({"algorithm": "c"}, mean=0.0, tolerance=1.0).mean == 0, "of an earlier sweep file"


def test_the_mean_of_finished_runs_is_compared_each_once():
    published = [
        entry({"algorithm": "a"}, mean=0.55),
        entry({"algorithm": "a"}, metric="norm_qd_score", mean=60.0),
        entry({"algorithm": "b"}, mean=0.15),
        entry({"algorithm": "c"}),
    ]
    listed_twice = pd.concat([summary()] * 2)
    table = compare_published(Plan.of(make_plan(published)), listed_twice)
    assert list(table["verdict"]) == ["undecided", "undecided", "too few seeds", "no results"]
    assert list(table["n"]) == [3, 3, 1, 0]  # an unfinished run does not count
    first = table.iloc[0]
    assert (first["mean"], first["difference"]) == (pytest.approx(0.5), pytest.approx(-0.05))
    assert first["se"] == pytest.approx(0.1 / math.sqrt(3))
    assert table.loc[2, "mean"] == 0.10 and math.isnan(table.loc[2, "se"])


def with_trials(where, **changes):
    keys = {"trials": 20, "metric": "norm_qd_score"} | changes
    return entry({"algorithm": where}, **keys)


def test_the_interval_is_welchs_and_p_is_corrected_for_all_values_of_the_file():
    published = [
        with_trials("a", mean=58.0, spread=4.0),
        with_trials("a", mean=150.0, spread=4.0),
        with_trials("b", mean=90.0, spread=4.0),
        with_trials("c", mean=90.0, spread=4.0),
    ]
    table = compare_published(Plan.of(make_plan(published)), summary())
    assert list(table["verdict"]) == ["undecided", "differs", "too few seeds", "no results"]
    # Two degrees of freedom. Four values: those without results count.
    p = 2 * stats.t.sf(np.abs(table["difference"][:2]) / np.sqrt(100 / 3 + 16 / 20), 2)
    assert list(table["p"][:2]) == pytest.approx([3 * p[0], 4 * p[1]])
    # A difference of half the interval would have p = 10 %.
    half = (table["high"] - table["low"])[0] / 2
    assert stats.ttest_ind_from_stats(half, 10, 3, 0, 4, 20, equal_var=False).pvalue == (
        pytest.approx(0.1)
    )
    assert table["difference"][0] - table["low"][0] == pytest.approx(half)
    assert table.loc[2:, ["low", "high", "p"]].isna().all(axis=None)


def test_an_equivalent_mean_may_differ_within_the_margin(snapshot):
    data = summary().assign(norm_qd_score=[75.0, 75.001, 75.002] * 3, status="finished")
    published = [
        with_trials("a", mean=75.3, spread=0.0002),
        with_trials("b", mean=75.4, spread=0.0002, margin=0.005),
        with_trials("c", mean=75.001, spread=0.0),
    ]
    plan = Plan.of(make_plan(published))
    table = compare_published(plan, data)
    assert list(table["verdict"]) == ["equivalent", "differs", "equivalent"]
    assert (table["p"] < 0.01)[:2].all()
    assert published_sheet(plan, table).note == snapshot
    equal = compare_published(Plan.of(make_plan(published[2:])), data.assign(norm_qd_score=75.001))
    assert (equal["verdict"][0], equal["p"][0]) == ("equivalent", 1.0)


def test_the_table_is_for_readers_and_goes_with_the_values(tmp_path, snapshot):
    summary().assign(qd_score=1.0, scale="x").to_csv(tmp_path / "summary.csv", index=False)
    for name in ("table", "curves"):
        table = pd.DataFrame({"group": ["a", "b"], "qd_score_mean": 1.0, "qd_score_n": 1})
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    published = [
        with_trials("a", mean=41.64, spread=2.5),
        with_trials("a", metric="coverage", mean=0.508, source="another, table 2"),
        with_trials("c", metric="coverage", mean=0.508, spread=0.004),
        entry({"algorithm": "b"}, mean=0.11, margin=0.2),
    ]
    (tmp_path / "plan.json").write_text(json.dumps(make_plan(published)))
    write_tables(tmp_path)
    assert (tmp_path / "tables/published.md").read_text() == snapshot
    data = pd.read_csv(tmp_path / "tables/published.csv")
    assert data["published"][1] == 0.508  # a fraction, with all its digits
    assert data["spread"][2] == 0.004 and data["trials"][2] == 20
    assert len(list((tmp_path / "tables").glob("published.*"))) == 4
    (tmp_path / "plan.json").write_text(json.dumps(make_plan([])))
    write_tables(tmp_path)
    assert not list((tmp_path / "tables").glob("published.*"))


def test_an_old_tolerance_is_read_ignored_and_said():
    old = entry({"algorithm": "a"}, mean=0.55, tolerance=1e-9)
    plan = Plan.of(make_plan([old]))
    assert plan.published == [old] and old.plain["tolerance"] == 1e-9
    table = compare_published(plan, summary())
    now = compare_published(Plan.of(make_plan([entry({"algorithm": "a"}, mean=0.55)])), summary())
    pd.testing.assert_frame_equal(table, now)
    assert "tolerance of the file is ignored" in published_sheet(plan, table).note


def test_a_spread_needs_trials():
    with refused("spread", "trials", kind=ValueError):
        entry({"algorithm": "a"}, spread=0.1)


@pytest.mark.parametrize("margin", [0, -0.05, 1.5])
def test_a_margin_is_a_fraction(margin):
    with refused("margin", margin, kind=ValueError):
        entry({"algorithm": "a"}, margin=margin)


def test_a_number_of_trials_that_no_table_can_hold_is_refused():
    with refused("trials", 10**30, kind=ValueError):
        with_trials("a", mean=1.0, spread=1.0, trials=10**30)
