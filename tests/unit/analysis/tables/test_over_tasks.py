"""Results over several tasks."""

from itertools import combinations

import numpy as np
import pytest
from given import again, changed_plan, read

from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.tables.comparisons import SHOWN_GROUPS
from qdsweep.analysis.tables.over_tasks import SHEETS, write_over_tasks

metrics = pytest.importorskip("rliable.metrics", reason="rliable has no wheel for Python 3.14")


def test_results_over_tasks_are_rliables(tasks):
    sweep = tasks / "sweeps" / "tasks"
    summary = read(sweep, "summary")
    scores = {
        name: np.column_stack(
            [runs["qd_score_fraction"] for _, runs in of.groupby("domain", sort=False)]
        )
        for name, of in summary.groupby("algorithm")
    }
    over = read(sweep / "tables", "over_tasks").set_index("algorithm")
    assert set(over.index) == {"map_elites", "cma_me"}
    for name, matrix in scores.items():
        assert matrix.shape == (3, 2) and (matrix > 0).all() and (matrix < 1).all()
        assert over.loc[name, "iqm"] == pytest.approx(metrics.aggregate_iqm(matrix))
        assert over.loc[name, "mean"] == pytest.approx(metrics.aggregate_mean(matrix))
        assert over.loc[name, "iqm_low"] < over.loc[name, "iqm"] < over.loc[name, "iqm_high"]
    (pair,) = read(sweep / "tables", "improvement").to_dict("records")
    assert pair["improvement"] == pytest.approx(
        metrics.probability_of_improvement(scores[pair["algorithm"]], scores[pair["other"]])
    )
    profiles = read(sweep / "tables", "profiles")
    for name, of in profiles.groupby("algorithm"):
        expected = [np.mean(scores[name] > tau) for tau in of["tau"]]
        np.testing.assert_allclose(of["fraction"], expected)
        assert (of["low"] <= of["fraction"]).all() and (of["fraction"] <= of["high"]).all()


def keep_rows(results, name, value):
    """Aggregates the rows of only one value."""
    with changed_plan(results / "sweeps" / "tasks") as plan:
        plan["rows"] = [row for row in plan["rows"] if row["values"][name] == value]
    return again(results) / "tables"


def test_one_seed_on_each_task_has_no_intervals(results, snapshot):
    tables = keep_rows(results, "seed", 1)
    assert read(tables, "over_tasks")[["iqm_low", "iqm_high"]].isna().all(axis=None)
    profiles = read(tables, "profiles")  # of two runs, with the interval of two runs
    assert (profiles["high"] - profiles["low"]).min() > 0.8
    assert read_sheet(tables / "over_tasks.json").note == snapshot


def test_one_task_less_leaves_nothing_over_tasks_behind(results):
    assert (results / "sweeps/tasks/tables/over_tasks.csv").exists()
    names = {path.stem for path in keep_rows(results, "domain", "lp_sphere").iterdir()}
    assert "comparisons" in names
    assert not names & {"over_tasks", "improvement", "profiles"}


def test_many_algorithms_over_tasks_are_left_to_the_best(tmp_path):
    rng = np.random.default_rng(6)
    many = {f"a{i:02d}": [i / 20 + rng.random(3) / 50] * 2 for i in range(SHOWN_GROUPS + 2)}
    (tmp_path / "tables").mkdir()
    write_over_tasks(tmp_path, many)
    tables = {name: read(tmp_path / "tables", name) for name in (*SHEETS, "profiles")}
    best = sorted(many)[2:]
    assert set(tables["over_tasks"]["algorithm"]) == set(many)
    assert set(tables["profiles"]["algorithm"]) == set(best)
    pairs = tables["improvement"]
    assert list(zip(pairs["algorithm"], pairs["other"], strict=True)) == (
        list(combinations(reversed(best), 2))
    )


def test_each_task_has_its_best(tasks):
    sheet = read_sheet(tasks / "sweeps" / "tasks" / "tables" / "comparisons.json")
    assert sheet.columns[0] == "Task"
    table = read_sheet(tasks / "sweeps" / "tasks" / "table.json")
    score = table.columns.index("QD score / cells")
    assert [sum(row[score].bold for row in table.rows[at : at + 2]) for at in (0, 2)] == [1, 1]
