"""The tables of a sweep: rows, groups, budgets and missing runs."""

import math
import shutil

import numpy as np
import pandas as pd
import pytest
import yaml
from inventing import BATCH, SEEDS, metrics, write_plan
from refusals import refused

from qdsweep.analysis.selection import domain_name
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.tables.run_table import POINTS, Curve, common_grid
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import read_plan


def test_runs_tsv_maps_swept_values_to_ids(invented, main):
    header, first, *others = (main / "runs.tsv").read_text().splitlines()
    assert header.split("\t") == ["algorithm", "seed", "id", "iterations", "evaluations"]
    assert first.split("\t") == ["wide", "1", invented.ids["wide", 1], "30", ""]
    assert len(others) == 5


def test_summary_is_the_metrics_at_the_budget(invented, main):
    summary = pd.read_csv(main / "summary.csv")
    assert list(summary["status"].unique()) == ["finished"]
    for _, row in summary.iterrows():
        at = metrics(invented, row["algorithm"], row["seed"]).iloc[29]
        for column in ("iteration", "evaluations", "qd_score", "coverage", "obj_max", "obj_mean"):
            assert row[column] == at[column]
        assert row["seconds_evaluate"] == 30.0
        assert row["core_seconds"] == 30 * 1.75 * 2


def test_table_is_mean_and_standard_error_over_seeds(invented, main):
    table = pd.read_csv(main / "table.csv").set_index("algorithm")
    for name in ("wide", "narrow"):
        at = pd.DataFrame([metrics(invented, name, seed).iloc[29] for seed in SEEDS])
        at["coverage_percent"] = at["coverage"] * 100
        for metric in ("norm_qd_score", "coverage_percent", "obj_max", "qd_score", "evaluations"):
            assert table.loc[name, f"{metric}_mean"] == pytest.approx(at[metric].mean())
            assert table.loc[name, f"{metric}_se"] == pytest.approx(at[metric].sem())
            assert table.loc[name, f"{metric}_n"] == 3
    assert list(table.index) == ["wide", "narrow"]  # in the order of the sweep


def test_curves_are_means_on_the_runs_own_evaluations(invented, main):
    curves = pd.read_csv(main / "curves.csv")
    wide = curves[curves["algorithm"] == "wide"]
    runs = [metrics(invented, "wide", seed).iloc[:30] for seed in SEEDS]
    assert list(wide["evaluations"]) == list(runs[0]["evaluations"])
    assert set(wide["n"]) == {3}
    for metric in ("qd_score", "norm_qd_score", "coverage", "obj_max"):
        values = pd.concat([run[metric].reset_index(drop=True) for run in runs], axis=1)
        np.testing.assert_allclose(wide[f"{metric}_mean"], values.mean(axis=1))
        np.testing.assert_allclose(wide[f"{metric}_se"], values.sem(axis=1))


def test_budgets_cut_one_run_at_two_places(invented):
    rows = [
        ({"evaluations": budget, "seed": seed}, invented.ids["wide", seed], None, budget)
        for budget in (205, 800)
        for seed in SEEDS
    ]
    sweep = write_plan(invented.results, "budgets", ["evaluations", "seed"], rows)
    aggregate(sweep, invented.runs)
    summary = pd.read_csv(sweep / "summary.csv")
    assert list(summary["swept_evaluations"]) == [205] * 3 + [800] * 3
    assert list(summary["evaluations"]) == [220] * 3 + [800] * 3  # the first row with enough
    assert summary["qd_score"][0] == metrics(invented, "wide", 1)["qd_score"][10]
    assert list(pd.read_csv(sweep / "table.csv")["group"]) == ["evaluations 205", "evaluations 800"]
    curves = pd.read_csv(sweep / "curves.csv")
    assert curves.groupby("group")["evaluations"].max().to_dict() == {
        "evaluations 205": 220,
        "evaluations 800": 800,
    }


def test_constant_budget_is_no_group(invented):
    rows = [
        ({"iterations": 40, "seed": seed}, invented.ids["wide", seed], 40, None) for seed in SEEDS
    ]
    plan = read_plan(SweepDir(write_plan(invented.results, "same", ["iterations", "seed"], rows)))
    assert plan.group_columns == []
    assert list(plan.groups) == ["sphere"]


def test_a_run_that_is_listed_twice_counts_once(invented):
    run = invented.ids["wide", 1]
    sweep = write_plan(invented.results, "twice", ["seed"], [({"seed": 1}, run, 40, None)] * 2)
    aggregate(sweep, invented.runs)
    (row,) = pd.read_csv(sweep / "table.csv").to_dict("records")
    assert row["runs"] == row["qd_score_n"] == 1
    assert math.isnan(row["qd_score_se"])  # unknown, not 0
    assert len(pd.read_csv(sweep / "summary.csv")) == 2
    assert ",,1," in (sweep / "table.csv").read_text()


def test_missing_and_unfinished_rows_stay_without_results(invented):
    rows = [
        ({"seed": 1}, invented.ids["wide", 1], 40, None),
        ({"seed": 2}, invented.ids["wide", 2], 41, None),
        ({"seed": 3}, "sphere-wide-s3-gone", 40, None),
    ]
    sweep = write_plan(invented.results, "holes", ["seed"], rows)
    aggregate(sweep, invented.runs)
    summary = pd.read_csv(sweep / "summary.csv")
    assert list(summary["status"]) == ["finished", "unfinished", "missing"]
    assert summary["qd_score"].notna().tolist() == [True, False, False]
    assert ",40,800," in (sweep / "summary.csv").read_text()  # integers stay integers
    assert pd.read_csv(sweep / "table.csv")["qd_score_n"][0] == 1


def test_no_results_at_all_are_refused(invented, tmp_path):
    sweep = write_plan(invented.results, "nothing", ["seed"], [({"seed": 1}, "gone", 40, None)])
    with refused(sweep / "plan.json", invented.runs, "snakemake"):
        aggregate(sweep, invented.runs)
    with refused(tmp_path / "plan.json"):
        aggregate(tmp_path, invented.runs)


def test_long_runs_are_thinned_to_their_ends(invented, tmp_path):
    folder = tmp_path / "runs/long"
    shutil.copytree(invented.runs / invented.ids["wide", 1], folder)
    long = pd.concat([metrics(invented, "wide", 1).iloc[[0]]] * 5000, ignore_index=True)
    long["iteration"], long["qd_score"] = range(1, 5001), np.arange(5000.0)
    long["evaluations"] = long["iteration"] * BATCH
    long.to_csv(folder / "metrics.csv", index=False)
    sweep = write_plan(tmp_path, "long", ["seed"], [({"seed": 1}, "long", 5000, None)])
    aggregate(sweep, tmp_path / "runs")
    curves = pd.read_csv(sweep / "curves.csv")
    assert len(curves) == POINTS
    assert list(curves["evaluations"].iloc[[0, -1]]) == [BATCH, 5000 * BATCH]
    assert np.array_equal(curves["qd_score_mean"], curves["evaluations"] / BATCH - 1)


def test_runs_with_other_evaluations_meet_where_both_have_values():
    slow = Curve(np.array([10, 20, 30]), {"qd_score": np.array([1.0, 2.0, 3.0])})
    fast = Curve(np.array([15, 25]), {"qd_score": np.array([5.0, 6.0])})
    grid = common_grid([slow, fast])
    assert list(grid) == [20, 25]  # from the later start to the earlier end
    scores = [curve.at(grid, "evaluations", ["qd_score"])["qd_score"] for curve in (slow, fast)]
    assert [list(score) for score in scores] == [[2.0, 2.0], [5.0, 6.0]]  # never a later value


@pytest.mark.parametrize(
    ("domain", "name"),
    [
        ({"name": "lp_sphere", "function": "sphere"}, "lp_sphere"),
        ({"name": "lp_sphere", "function": "rastrigin"}, "lp_sphere (rastrigin)"),
        ({"name": "qd_ant", "env": "Ant-v5"}, "qd_ant"),
        ({"name": "pole", "env": "CartPole-v1"}, "pole"),
        ({"name": "qd_ant", "env": "Hopper-v5"}, "qd_ant (Hopper-v5)"),
        ({"name": "maze"}, "maze"),
    ],
)
def test_another_function_or_environment_is_another_task(tmp_path, domain, name):
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"domain": domain}))
    assert domain_name(tmp_path) == name
