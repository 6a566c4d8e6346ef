"""Where the time of runs went."""

import json
import shutil

import pandas as pd
import pytest
from given import changed_plan
from in_process import compute_sweep
from looks import data_of
from support import TINY

from qdsweep.analysis.figures.bars import timing_figure
from qdsweep.analysis.figures.style import style
from qdsweep.analysis.selection import read_tables
from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.tables.timing import write_timing
from qdsweep.analysis.timing import group_times, run_times
from qdsweep.records.metrics import PHASES, SECONDS
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import read_plan

COMPILATION = 5.0
IN_ITERATIONS = 12 * 1.8 + 3.75 + 2.0
REST = 100 - IN_ITERATIONS - COMPILATION  # the mean of 90 and 110 s


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two algorithms by two seeds; the times of one group are invented."""
    results = tmp_path_factory.mktemp("results")
    sweep = "::: algorithm cma_mae map_elites_line ::: seed 1 2"
    folder = compute_sweep(results, TINY, sweep)
    for row in read_plan(SweepDir(folder)).rows:
        if row.values["algorithm"] == "cma_mae":
            invent_times(results / "runs" / row.run, int(row.values["seed"]))
    aggregate(folder, results / "runs")
    return results


def invent_times(run, seed):
    """12 iterations of 0.25 + 1 + 0.5 + 0.05 s with 2 workers, and a slower first one, cold."""
    metrics = pd.read_csv(run / "metrics.csv")
    metrics["seconds_ask"], metrics["seconds_evaluate"] = 0.25, 1.0
    metrics["seconds_tell"], metrics["seconds_reload"] = 0.5, 0.05
    metrics.loc[0, ["seconds_ask", "seconds_evaluate"]] = 4.0, 3.0
    metrics["seconds_compile"] = [COMPILATION, *[0.0] * 11]
    for name in ("metrics.csv", "summary.json"):  # other names of files in state/
        (run / name).rename(run / f"{name}.old")
    metrics.to_csv(run / "metrics.csv", index=False)
    summary = json.loads((run / "summary.json.old").read_text())
    summary["workers"] = 2
    total = float(metrics.filter(like="seconds_").to_numpy().sum())
    summary["timings"] = {"compile": COMPILATION, "total": total}
    end = f"2026-01-01T00:01:{[0, 30, 50][seed]}+00:00"  # 90 and 110 s after the start
    summary["attempts"] = [
        {"started": "2026-01-01T00:00:00+00:00", "ended": end, "first_evaluation": 6.0 + seed}
    ]
    (run / "summary.json").write_text(json.dumps(summary))


@pytest.fixture(scope="module")
def runs(results):
    return run_times(read_tables(results / "sweeps/tiny"), results / "runs")


def test_times_are_those_of_the_metrics(results, runs):
    for row in runs.to_dict("records"):
        metrics = pd.read_csv(results / "runs" / row["id"] / "metrics.csv")
        for phase in (*PHASES, "compile"):
            assert row[phase] == pytest.approx(metrics[f"seconds_{phase}"].sum())
        assert row["wall"] == pytest.approx(metrics[list(SECONDS)].sum().sum())
        assert row["core_seconds"] == pytest.approx(row["wall"] * row["workers"])
        assert row["start_up"] > 0


def test_groups_are_means_over_runs_and_the_rest_is_never_negative(runs):
    invented = runs[runs["group"] == "cma_mae"].sort_values("start_up")
    assert list(invented["wall"]) == pytest.approx([IN_ITERATIONS] * 2)
    assert list(invented["rest"]) == pytest.approx([REST - 10, REST + 10])
    table = group_times(runs).set_index("group")
    assert table["rest_mean"].to_dict() == pytest.approx({"cma_mae": REST, "map_elites_line": 0})
    assert table.loc["cma_mae", "rest_se"] == pytest.approx(10)
    assert table.loc["cma_mae", "start_up_mean"] == 7.5
    assert list(table["workers"]) == ["2", "1"]


def test_a_run_that_went_further_counts_to_its_row(results):
    sweep = shutil.copytree(results / "sweeps/tiny", results / "sweeps/shorter")
    with changed_plan(sweep) as plan:
        for row in plan["rows"]:
            row["iterations"] = 6
    aggregate(sweep, results / "runs")
    runs = run_times(read_tables(sweep), results / "runs").query("group == 'cma_mae'")
    wall = 6 * 1.8 + 5.75
    assert list(runs["wall"]) == pytest.approx([wall] * 2)
    assert runs["rest"].sum() == pytest.approx(wall / IN_ITERATIONS * 2 * REST)


def test_the_table_is_for_readers_and_drawn(results):
    sweep = results / "sweeps/tiny"
    old = sweep / "tables/workers.json"  # of an earlier version
    old.write_text("{}")
    write_timing(sweep, results / "runs")
    assert not old.exists()
    timing = read_sheet(sweep / "tables/timing.json")
    texts = [cell.text for cell in timing.rows[0]]
    assert texts[:3] == ["cma_mae", "2", "2"]
    assert texts[timing.columns.index("Rest (s)")] == "67.65"
    assert len(pd.read_csv(sweep / "tables/timing.csv")) == 2
    with style():
        bars = timing_figure(data_of(sweep))
    (ax,) = bars.figure.axes
    drawn = sum(bar.get_width() for bar in ax.patches)
    assert drawn == pytest.approx(bars.data.filter(like="_mean").to_numpy().sum())
