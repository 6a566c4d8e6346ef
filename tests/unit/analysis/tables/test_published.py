"""Published values: the verdict and the table."""

import json
import math

import pandas as pd
import pytest
from given import entry

from qdsweep.analysis.tables.published import compare, verdict, write_published
from qdsweep.records.plan import Plan


def make_plan(published):
    rows = [
        {"values": {"algorithm": name, "seed": seed}, "id": f"{name}-{seed}"}
        for name in ("a", "b", "c")
        for seed in (1, 2, 3)
    ]
    return {
        "name": "n", "experiment": "sphere", "sweep": "", "columns": ["algorithm", "seed"],
        "rows": rows, "published": [value.model_dump() for value in published],
    }  # fmt: skip


def make_summary():
    coverage = {"a": [0.40, 0.50, 0.60], "b": [0.10, 0.20, math.nan], "c": [math.nan] * 3}
    status = {"a": ["finished"] * 3, "b": ["finished", "partial", "missing"], "c": ["missing"] * 3}
    return pd.DataFrame(
        [
            {
                "group": name, "id": f"{name}-{i + 1}", "status": status[name][i],
                "coverage": coverage[name][i], "norm_qd_score": 100 * coverage[name][i],
            }
            for name in "abc"
            for i in range(3)
        ]
    )  # fmt: skip


def test_the_mean_of_finished_runs_is_compared_each_once():
    published = [
        entry({"algorithm": "a"}, mean=0.55, tolerance=0.05),
        entry({"algorithm": "a"}, metric="norm_qd_score", mean=60.0, tolerance=9.9),
        entry({"algorithm": "b"}, mean=0.15),
        entry({"algorithm": "c"}),
    ]
    listed_twice = pd.concat([make_summary()] * 2)
    table = compare(Plan.of(make_plan(published)), listed_twice)
    assert list(table["verdict"]) == ["agrees", "differs", "agrees", "no results"]
    assert list(table["n"]) == [3, 3, 1, 0]  # an unfinished run is none
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
    make_summary().assign(qd_score=1.0, scale="x").to_csv(tmp_path / "summary.csv", index=False)
    for name in ("table", "curves"):
        table = pd.DataFrame({"group": ["a", "b"], "qd_score_mean": 1.0, "qd_score_n": 1})
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    published = [
        entry({"algorithm": "a"}, mean=0.508, tolerance=0.006),
        entry({"algorithm": "a"}, metric="norm_qd_score", mean=41.64, source="another, table 2"),
        entry({"algorithm": "c"}),
    ]
    (tmp_path / "plan.json").write_text(json.dumps(make_plan(published)))
    write_published(tmp_path)
    assert (tmp_path / "tables/published.md").read_text() == snapshot
    data = pd.read_csv(tmp_path / "tables/published.csv")
    assert data["published"][0] == 0.508  # a fraction, with all its digits
    assert len(list((tmp_path / "tables").glob("published.*"))) == 4
    (tmp_path / "plan.json").write_text(json.dumps(make_plan([])))
    write_published(tmp_path)
    assert not list((tmp_path / "tables").glob("published.*"))
