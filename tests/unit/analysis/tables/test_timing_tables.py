"""The time of runs in each phase."""

import json

import pandas as pd
import pytest
from given import changed_plan, make_sweep
from looks import data_of

from qdsweep.analysis.figures.bars import timing_figure
from qdsweep.analysis.figures.style import style
from qdsweep.analysis.selection import read_tables
from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.tables.timing_table import write_timing
from qdsweep.analysis.timing import group_times, run_times
from qdsweep.metrics import PHASES, SECONDS

COMPILATION = 5.0
IN_ITERATIONS = 3 * 1.75 + 4.0
REST = 100 - IN_ITERATIONS - COMPILATION  # the mean of 90 and 110 s


@pytest.fixture
def sweep(tmp_path):
    """`slow` compiles and has long pauses between iterations, `fast` ended within a second."""
    sweep = make_sweep(tmp_path, {"slow": [1.0, 1.0], "fast": [1.0, 1.0]})
    for run, end in {"slow-s1": "01:30", "slow-s2": "01:50", "fast-s1": 0, "fast-s2": 0}.items():
        path = tmp_path / "runs" / run
        table = pd.read_csv(path / "metrics.csv")
        summary = json.loads((path / "summary.json").read_text())
        attempt = {"started": "2026-01-01T00:00:00+00:00", "first_evaluation": 6.0}
        if end:
            table["seconds_compile"] = [COMPILATION, 0.0, 0.0]
            attempt["first_evaluation"] += int(run[-1])
            total = COMPILATION + IN_ITERATIONS
            summary["timings"] = {"compile": COMPILATION, "total": total}
        else:
            summary["workers"], end = 1, "00:09"
        attempt["ended"] = f"2026-01-01T00:{end}+00:00"
        table.to_csv(path / "metrics.csv", index=False)
        (path / "summary.json").write_text(json.dumps({**summary, "attempts": [attempt]}))
    aggregate(sweep, tmp_path / "runs")
    return sweep


def times_of(sweep) -> pd.DataFrame:
    return run_times(read_tables(sweep), sweep.parent.parent / "runs")


def test_times_are_those_of_the_metrics(sweep, tmp_path):
    for row in times_of(sweep).to_dict("records"):
        metrics = pd.read_csv(tmp_path / "runs" / row["id"] / "metrics.csv")
        for phase in PHASES:
            assert row[phase] == pytest.approx(metrics[f"seconds_{phase}"].sum())
        assert row["compile"] == (COMPILATION if row["group"] == "slow" else 0)
        assert row["wall"] == pytest.approx(metrics[list(SECONDS)].sum().sum())
        assert row["core_seconds"] == pytest.approx(row["wall"] * row["workers"])


def test_groups_are_means_over_runs_and_the_rest_is_never_negative(sweep):
    runs = times_of(sweep)
    assert list(runs["rest"]) == pytest.approx([REST - 10, REST + 10, 0, 0])
    table = group_times(runs).set_index("group")
    assert table["rest_mean"].to_dict() == pytest.approx({"slow": REST, "fast": 0})
    assert table.loc["slow", "rest_se"] == pytest.approx(10)
    assert table.loc["slow", "start_up_mean"] == 7.5
    assert list(table["workers"]) == ["2", "1"]


def test_a_run_that_went_further_counts_to_its_row(sweep, tmp_path):
    with changed_plan(sweep) as plan:
        for row in plan["rows"]:
            row["iterations"] = 2
    aggregate(sweep, tmp_path / "runs")
    runs = times_of(sweep).query("group == 'slow'")
    assert list(runs["wall"]) == pytest.approx([3.5] * 2)
    assert runs["rest"].sum() == pytest.approx(3.5 / IN_ITERATIONS * 2 * REST)


def test_the_table_is_for_readers_and_drawn(sweep, tmp_path):
    old = sweep / "tables/workers.json"  # a file of an earlier version
    old.write_text("{}")
    write_timing(sweep, tmp_path / "runs")
    assert not old.exists()
    timing = read_sheet(sweep / "tables/timing.json")
    texts = [cell.text for cell in timing.rows[0]]
    assert texts[:3] == ["slow", "2", "2"]
    assert texts[timing.columns.index("Other (s)")] == f"{REST:.2f}"
    assert len(pd.read_csv(sweep / "tables/timing.csv")) == 2
    with style():
        bars = timing_figure(data_of(sweep))
    (ax,) = bars.figure.axes
    drawn = sum(bar.get_width() for bar in ax.patches)
    assert drawn == pytest.approx(bars.data.filter(like="_mean").to_numpy().sum())
