"""The table of groups: means, the best and its ties, medians, mean QD score."""

import json

import numpy as np
import pandas as pd
import pytest
from given import THREE, changed_plan, make_sweep, make_tables, read
from refusals import names_all, refused
from scipy import stats

from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.tables.group_table import first_batch_note, first_policies, unequal_budgets
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import read_plan


def test_qd_auc_and_seconds(tmp_path):
    sweep = make_tables(tmp_path, {"a": [1.0, 3.0]})
    summary, curves = read(sweep, "summary"), read(sweep, "curves")
    # From the empty archive: (0 + 20) / 2, (20 + 50) / 2 and (50 + 100) / 2, mean of the three.
    assert summary["qd_auc"].tolist() == pytest.approx([40.0, 120.0])
    assert summary["wall_seconds"].tolist() == [3 * 1.75 + 4.0] * 2
    assert summary["core_seconds"].tolist() == [2 * 9.25] * 2
    assert summary["qd_score_fraction"].tolist() == [0.5, 1.5]
    assert curves["seconds_mean"].tolist() == [1.75, 3.5, 9.25]


def test_the_table_has_medians_and_interquartile_means(tmp_path):
    table = read(make_tables(tmp_path, THREE), "table").set_index("algorithm")
    for name, scores in THREE.items():
        row = table.loc[name]
        assert row["norm_qd_score_median"] == pytest.approx(np.median(scores))
        assert row["norm_qd_score_iqm"] == pytest.approx(stats.trim_mean(scores, 0.25))
        assert row["norm_qd_score_iqm_low"] < row["norm_qd_score_iqm"]
        assert row["qd_auc_iqm"] == pytest.approx(40 * row["norm_qd_score_iqm"])
        assert row["qd_auc_iqm_high"] == pytest.approx(40 * row["norm_qd_score_iqm_high"])
        assert row["qd_auc_median"] == pytest.approx(40 * row["norm_qd_score_median"])


def test_the_best_is_bold_and_ties_have_a_dagger(tmp_path, snapshot):
    sweep = make_tables(tmp_path, THREE)
    assert (sweep / "table.md").read_text() == snapshot
    assert (sweep / "table.tex").read_text().partition("\\resizebox")[2] == snapshot


def test_elites_below_the_objective_range_are_a_warning(tmp_path):
    results = make_tables(tmp_path, {"a": [1.0, 2.0]}).parents[1]
    before = read_sheet(results / "sweeps/given/table.json").note
    assert read(results / "sweeps/given", "summary")["elites_below_range"].isna().all()
    for seed, below in ((1, 0), (2, 1234)):
        file = results / f"runs/a-s{seed}/summary.json"
        count = {"objectives_outside": {"below": below, "above": 5}}
        file.write_text(json.dumps(json.loads(file.read_text()) | count))
    aggregate(results / "sweeps/given", results / "runs")
    assert read(results / "sweeps/given", "summary")["elites_below_range"].tolist() == [0, 1234]
    note = read_sheet(results / "sweeps/given/table.json").note
    assert note.startswith(before)
    names_all(note.removeprefix(before), "1,234", "1 of 2", "objective_range")


def test_without_cells_the_qd_score_is_compared(tmp_path):
    sweep = make_tables(tmp_path, THREE, cells=False)
    assert set(read(sweep / "tables", "comparisons")["metric"]) == {"qd_score"}
    sheet = read_sheet(sweep / "table.json")
    assert sheet.rows[0][sheet.columns.index("QD score")].bold
    assert not {"IQM [95 %]", "Coverage (%)", "QD score / cells"} & set(sheet.columns)
    unknown = read(sweep, "table")[["coverage_percent_mean", "norm_qd_score_mean"]]
    assert unknown.isna().all(axis=None)


def test_the_sweep_file_chooses_the_columns(tmp_path):
    columns = ["coverage", "iqm", "algorithm", "qd_score"]
    sheet = read_sheet(make_tables(tmp_path, THREE, tables={"columns": columns}) / "table.json")
    assert sheet.columns == ["Algorithm", "Coverage (%)", "IQM [95 %]", "QD score"]
    assert sheet.text == 1 and all(len(row) == 4 for row in sheet.rows)
    assert "IQM" in sheet.note and "Mean QD score" not in sheet.note


def test_a_large_first_batch_is_named_in_the_table(snapshot):
    curves = pd.DataFrame(
        {
            "group": ["maps", "maps", "me", "me", "long", "long"],
            "evaluations": [500, 650, 150, 300, 500, 650],
        }
    )
    table = pd.DataFrame(
        {"group": ["maps", "me", "long"], "evaluations_mean": [950.0, 600.0, 30_000.0]}
    )
    assert first_batch_note(curves, table) == snapshot
    assert first_batch_note(curves[2:], table) == ""


def test_a_return_of_first_policies_is_named_in_the_table(snapshot):
    curves = pd.DataFrame(
        {
            "group": ["ppo", "ppo", "dqn", "dqn", "qd", "qd"],
            "return_mean": [9, 9, 9, 80, None, None],
        }
    )
    assert first_policies(curves) == snapshot
    assert first_policies(curves[2:]) == first_policies(curves[["group"]]) == ""


def test_nothing_is_bold_below_three_seeds(tmp_path):
    few = {"a": [50.0, 51.0], "b": [10.0, 11.0]}
    sheet = read_sheet(make_tables(tmp_path / "few", few) / "table.json")
    assert not any(cell.bold for row in sheet.rows for cell in row)
    assert "Bold" not in sheet.note
    uneven = {"a": [50.0, 51.0], "b": [10.0, 11.0, 12.0]}
    sheet = read_sheet(make_tables(tmp_path / "uneven", uneven) / "table.json")
    score = sheet.columns.index("QD score / cells")
    assert not any(row[score].bold for row in sheet.rows), "the best has two seeds"
    enough = {"a": [50.0, 51.0, 52.0], "b": [10.0, 11.0]}
    sheet = read_sheet(make_tables(tmp_path / "enough", enough) / "table.json")
    assert [row[score].bold for row in sheet.rows] == [True, False]


def objectives(folder, scores):
    """The cells of the best objective."""
    sheet = read_sheet(make_tables(folder, scores) / "table.json")
    place = sheet.columns.index("Best objective")
    return [(row[place].text, row[place].bold) for row in sheet.rows], sheet.note


def test_what_rounding_leaves_of_zero_is_no_best_objective(tmp_path):
    noise = {"a": [-1e-15, -2e-15, -1e-15], "b": [-3e-16, -1e-16, -2e-16]}
    cells, note = objectives(tmp_path / "noise", noise)
    assert cells == [("0 ± 0", False)] * 2
    assert "Bold" not in note and "\u2020" not in note
    cells, _ = objectives(tmp_path / "worse", noise | {"c": [-3.0, -3.1, -3.2]})
    assert [bold for _, bold in cells] == [True, True, False]
    assert cells[0][0] == cells[1][0] == "0.000 ± 0.000"


def test_means_that_look_equal_are_all_bold_or_none_is(tmp_path):
    close = {"a": [1.0, 2.0, 3.0], "b": [1.001, 2.0, 3.0]}
    cells, _ = objectives(tmp_path / "two", close)
    assert len(set(cells)) == 1 and not cells[0][1]
    cells, _ = objectives(tmp_path / "three", close | {"c": [0.1, 0.2, 0.3]})
    assert [bold for _, bold in cells] == [True, True, False]


def test_the_mean_qd_score_has_the_unit_of_the_qd_score(tmp_path):
    sheet = read_sheet(make_tables(tmp_path / "cells", THREE) / "table.json")
    score, mean = (sheet.columns.index(f"{name} / cells") for name in ("QD score", "Mean QD score"))
    for row in sheet.rows:
        assert row[mean].key == pytest.approx(0.4 * row[score].key, rel=0.01)
    sheet = read_sheet(make_tables(tmp_path / "none", THREE, cells=False) / "table.json")
    assert "Mean QD score" in sheet.columns


@pytest.mark.parametrize(("longest", "warned"), [(9_100, False), (9_350, True)])
def test_budgets_that_differ_are_a_warning(tmp_path, longest, warned):
    plan = read_plan(SweepDir(make_sweep(tmp_path, THREE)))
    used = pd.DataFrame({"group": ["a", "b"], "evaluations_mean": [9_000.0, float(longest)]})
    text = unequal_budgets(plan, used, {"sphere": ["a", "b"]})
    assert bool(text) == warned
    names_all(text, *(["9,000", "9,350"] if warned else []))
    assert unequal_budgets(plan, used, {"sphere": ["a"], "arm": ["b"]}) == ""


def test_a_range_of_budgets_that_tasks_share_is_told_once(tmp_path):
    plan = read_plan(SweepDir(make_sweep(tmp_path, THREE)))
    used = pd.DataFrame({"group": [*"abcd"], "evaluations_mean": [100.0, 200.0, 100.0, 200.0]})
    text = unequal_budgets(plan, used, {"sphere; 9": ["a", "b"], "arm; 9": ["c", "d"]})
    assert text.count("from 100 to 200") == 1 and "(sphere, arm)" in text


def test_an_unknown_interval_of_saturated_scores_is_named(tmp_path):
    text = "unknown where the middle half of the runs are equal"
    saturated = {"a": [1.0, 1.0, 1.0, 1.0, 0.9], "b": [0.1, 0.2, 0.3, 0.4, 0.5]}
    sheet = read_sheet(make_tables(tmp_path / "a", saturated) / "table.json")
    place = sheet.columns.index("IQM [95 %]")
    assert [row[place].text.endswith("]") for row in sheet.rows] == [False, True]
    assert text in sheet.note
    assert text not in read_sheet(make_tables(tmp_path / "b", THREE) / "table.json").note


def test_runs_are_compared_at_the_count_that_all_have_reached(tmp_path):
    sweep = make_sweep(tmp_path, {"a": [1.0, 2.0], "b": [3.0, 4.0]})
    for seed in (1, 2):  # 15 evaluations in an iteration instead of 10, and steps
        file = tmp_path / f"runs/a-s{seed}/metrics.csv"
        metrics = pd.read_csv(file)
        metrics["evaluations"] = [15, 20, 25]
        metrics.to_csv(file, index=False)
    aggregate(sweep, tmp_path / "runs")
    whole = read(sweep, "summary")
    assert unequal_budgets(read_plan(SweepDir(sweep)), read(sweep, "table"), {"s": ["a", "b"]})
    with changed_plan(sweep) as plan:
        plan["compare_at"] = "evaluations"
    aggregate(sweep, tmp_path / "runs")
    equal = read(sweep, "summary")
    assert equal["evaluations"].tolist() == [25, 25, 30, 30]  # the first that reaches 25
    assert equal["norm_qd_score"].tolist() == whole["norm_qd_score"].tolist()
    assert "largest number of evaluations that all" in read_sheet(sweep / "table.json").note
    with changed_plan(sweep) as plan:
        plan["rows"][0]["iterations"] = 1
    aggregate(sweep, tmp_path / "runs")
    equal = read(sweep, "summary")
    assert equal["evaluations"].tolist() == [15, 15, 20, 20]
    assert equal["norm_qd_score"].tolist() == [0.2, 0.4, 1.5, 2.0]
    with changed_plan(sweep) as plan:
        plan["compare_at"] = "steps"
    with refused("compare_at = steps", "a-s1", "evaluations"):
        aggregate(sweep, tmp_path / "runs")
