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
        {"values": {"algorithm": run[0], "seed": int(run[2])}, "id": run} for run in summary()["id"]
    ]
    columns, values = ["algorithm", "seed"], [value.model_dump() for value in published]
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
    table = compare(Plan.of(make_plan(published)), listed_twice)
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
    write_published(tmp_path)
    assert (tmp_path / "tables/published.md").read_text() == snapshot
    data = pd.read_csv(tmp_path / "tables/published.csv")
    assert data["published"][0] == 0.508  # a fraction, with all its digits
    assert len(list((tmp_path / "tables").glob("published.*"))) == 4
    (tmp_path / "plan.json").write_text(json.dumps(make_plan([])))
    write_published(tmp_path)
    assert not list((tmp_path / "tables").glob("published.*"))
