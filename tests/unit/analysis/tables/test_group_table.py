"""The table of groups: means, the best and its ties, medians, QD-AUC."""

import json

import numpy as np
import pandas as pd
import pytest
from given import THREE, make_sweep, read
from scipy import stats

from qdsweep.analysis.sheet import (
    read_sheet,
)
from qdsweep.analysis.tables.aggregate import aggregate
from qdsweep.analysis.tables.groups import first_batches, first_policies


def test_qd_auc_and_seconds(tmp_path):
    sweep = make_sweep(tmp_path, {"a": [1.0, 3.0]})
    aggregate(sweep, tmp_path / "runs")
    summary, curves = read(sweep, "summary"), read(sweep, "curves")
    # From the empty archive: (0 + 20) / 2, (20 + 50) / 2 and (50 + 100) / 2, mean of the three.
    assert summary["qd_auc"].tolist() == pytest.approx([40.0, 120.0])
    assert summary["wall_seconds"].tolist() == [3 * 1.75 + 4.0] * 2
    assert summary["core_seconds"].tolist() == [2 * 9.25] * 2
    assert summary["qd_score_fraction"].tolist() == [0.5, 1.5]
    assert curves["seconds_mean"].tolist() == [1.75, 3.5, 9.25]


def test_the_table_has_medians_and_interquartile_means(tmp_path):
    sweep = make_sweep(tmp_path, THREE)
    aggregate(sweep, tmp_path / "runs")
    table = read(sweep, "table").set_index("algorithm")
    for name, scores in THREE.items():
        row = table.loc[name]
        assert row["norm_qd_score_median"] == pytest.approx(np.median(scores))
        assert row["norm_qd_score_iqm"] == pytest.approx(stats.trim_mean(scores, 0.25))
        assert row["norm_qd_score_iqm_low"] < row["norm_qd_score_iqm"]
        assert row["qd_auc_iqm"] == pytest.approx(40 * row["norm_qd_score_iqm"])
        assert row["qd_auc_iqm_high"] == pytest.approx(40 * row["norm_qd_score_iqm_high"])
        assert row["qd_auc_median"] == pytest.approx(40 * row["norm_qd_score_median"])


def test_the_best_is_bold_and_ties_have_a_dagger(tmp_path):
    sweep = make_sweep(tmp_path, THREE)
    aggregate(sweep, tmp_path / "runs")
    sheet = read_sheet(sweep / "table.json")
    rows = {row[0].text: row for row in sheet.rows}
    for heading in ("Normalised QD score", "Best objective"):
        column = sheet.columns.index(heading)
        best, near, far = (rows[name][column] for name in ("best", "near", "far"))
        assert best.bold and not best.text.endswith("†")
        assert not near.bold and near.text.endswith("†")
        assert not far.bold and not far.text.endswith("†")
    coverage = sheet.columns.index("Coverage (%)")  # the same for all
    assert all(row[coverage].bold for row in sheet.rows)
    assert not any(row[sheet.columns.index("Core-seconds")].bold for row in sheet.rows)
    assert "†: not told from it at 5 %" in sheet.note
    markdown, latex = (sweep / "table.md").read_text(), (sweep / "table.tex").read_text()
    assert re_line(markdown, "best").count("**") == 6
    assert re_line(latex, "near").count(r"$^\dagger$") == 2
    assert r"\toprule" in latex and r"\textbf{" in re_line(latex, "best")


def re_line(text: str, name: str) -> str:
    (line,) = (line for line in text.splitlines() if line.strip("| ").startswith(name))
    return line


def test_without_cells_the_qd_score_is_compared(tmp_path):
    sweep = make_sweep(tmp_path, THREE, cells=False)
    aggregate(sweep, tmp_path / "runs")
    assert set(read(sweep / "tables", "comparisons")["metric"]) == {"qd_score"}
    sheet = read_sheet(sweep / "table.json")
    assert sheet.rows[0][sheet.columns.index("QD score")].bold
    assert "IQM [95 %]" not in sheet.columns


def columns_of(folder, scores, *names):
    sweep = make_sweep(folder, scores)
    plan = json.loads((sweep / "plan.json").read_text())
    plan["tables"] = {"columns": list(names)}
    (sweep / "plan.json").write_text(json.dumps(plan))
    aggregate(sweep, folder / "runs")
    return read_sheet(sweep / "table.json")


def test_the_table_leaves_out_what_says_nothing_of_its_own(tmp_path):
    few = columns_of(tmp_path / "few", {"a": [1.0, 1.1], "b": [2.0, 2.1]})
    assert few.columns == [
        "algorithm", "n", "Normalised QD score", "Coverage (%)", "Best objective", "QD-AUC",
        "Core-seconds",
    ]  # fmt: skip
    assert "Evaluations: 30 in every group." in few.note
    many = columns_of(tmp_path / "many", THREE)  # from five seeds on
    assert many.columns[-2:] == ["IQM [95 %]", "Core-seconds"]
    assert "qd_score_mean" in read(tmp_path / "few" / "sweeps" / "given", "table")


def test_the_sweep_file_chooses_the_columns(tmp_path):
    sheet = columns_of(tmp_path, THREE, "coverage", "iqm", "algorithm", "qd_score")
    assert sheet.columns == ["algorithm", "Coverage (%)", "IQM [95 %]", "QD score"]
    assert sheet.text == 1 and all(len(row) == 4 for row in sheet.rows)
    assert "IQM: interquartile mean" in sheet.note and "QD-AUC" not in sheet.note


def test_a_large_first_batch_is_named_in_the_table():
    curves = pd.DataFrame(
        {
            "group": ["maps", "maps", "me", "me", "long", "long"],
            "evaluations": [500, 650, 150, 300, 500, 650],
        }
    )
    table = pd.DataFrame(
        {"group": ["maps", "me", "long"], "evaluations_mean": [950.0, 600.0, 30_000.0]}
    )
    note = first_batches(curves, table)
    assert note == " The first batch counts towards the budget: 500 of 950 evaluations of maps."
    assert first_batches(curves[2:], table) == ""


def test_a_return_of_first_policies_is_named_in_the_table():
    curves = pd.DataFrame(
        {
            "group": ["ppo", "ppo", "dqn", "dqn", "qd", "qd"],
            "return_mean": [9, 9, 9, 80, None, None],
        }
    )
    note = first_policies(curves)
    assert "The return of ppo is still that of the first iteration" in note
    assert "evaluate_every" in note and "dqn" not in note and "qd" not in note
    assert first_policies(curves[2:]) == first_policies(curves[["group"]]) == ""
