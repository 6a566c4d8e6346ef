"""Published values: the verdict and the table."""

import json
import math

import pandas as pd
import pytest
from given import entry

from qdsweep.analysis.sheet import read_sheet
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
        "rows": rows, "published": [one.model_dump() for one in published],
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


def test_the_mean_of_finished_runs_is_compared():
    published = [
        entry({"algorithm": "a"}, mean=0.55, tolerance=0.05),
        entry({"algorithm": "a"}, metric="norm_qd_score", mean=60.0, tolerance=9.9),
        entry({"algorithm": "b"}, mean=0.15),
        entry({"algorithm": "c"}),
    ]
    table = compare(Plan.of(make_plan(published)), make_summary())
    assert list(table["verdict"]) == ["agrees", "differs", "agrees", "no results"]
    assert list(table["n"]) == [3, 3, 1, 0]  # an unfinished run is none
    first = table.iloc[0]
    assert (first["mean"], first["difference"]) == (pytest.approx(0.5), pytest.approx(-0.05))
    assert first["se"] == pytest.approx(0.1 / math.sqrt(3))
    assert table.loc[2, "mean"] == 0.10 and math.isnan(table.loc[2, "se"])


def test_a_run_that_stands_twice_counts_once():
    summary = make_summary()
    plan = Plan.of(make_plan([entry({"algorithm": "a"})]))
    assert compare(plan, pd.concat([summary, summary]))["n"][0] == 3


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


@pytest.fixture
def sweep(tmp_path):
    """A sweep's folder with tables, as `aggregate` leaves them."""
    make_summary().assign(qd_score=1.0, scale="one").to_csv(tmp_path / "summary.csv", index=False)
    for name in ("table", "curves"):
        table = pd.DataFrame({"group": ["a", "b"], "qd_score_mean": 1.0, "qd_score_n": 1})
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


def test_the_table_is_for_readers(sweep):
    published = [
        entry({"algorithm": "a"}, mean=0.508, tolerance=0.006),
        entry({"algorithm": "a"}, metric="norm_qd_score", mean=41.64, source="another, table 2"),
        entry({"algorithm": "c"}),
    ]
    (sweep / "plan.json").write_text(json.dumps(make_plan(published)))
    write_published(sweep)
    sheet = read_sheet(sweep / "tables/published.json")
    texts = [[cell.text for cell in row] for row in sheet.rows]
    assert texts[0] == [
        "a", "Coverage (%)", "differs", "[1]", "50.0 ± 5.8", "3", "50.8", "0.6", "\u22120.8",
    ]  # fmt: skip
    assert texts[1][1:5] == ["Normalised QD score", "differs", "[2]", "50.00 ± 5.77"]
    assert texts[2][2:6] == ["no results", "[1]", "\u2013", "0"]
    assert sheet.note.startswith("Differs: 2, no results: 1.")
    assert sheet.note.endswith("Sources: [1] a paper, table 1. [2] another, table 2.")
    data = pd.read_csv(sweep / "tables/published.csv")
    assert data["published"][0] == 0.508  # a fraction, with all its digits
    assert r"$\pm$" in (sweep / "tables/published.tex").read_text()


def test_without_published_values_there_is_no_table(sweep):
    (sweep / "plan.json").write_text(json.dumps(make_plan([entry({"algorithm": "a"})])))
    write_published(sweep)
    assert len(list((sweep / "tables").glob("published.*"))) == 4
    (sweep / "plan.json").write_text(json.dumps(make_plan([])))
    write_published(sweep)
    assert not list((sweep / "tables").glob("published.*"))
