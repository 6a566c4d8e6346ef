"""Comparisons of a swept name within one setting of the others, and what few seeds decide."""

import json

import pytest
from given import make_sweep, read
from scipy import stats

from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.tables.aggregate import aggregate

multitest = pytest.importorskip(
    "statsmodels.stats.multitest", reason="statsmodels has no wheel for Python 3.14"
)
SCORES = {
    ("a", "1"): [0.1, 0.2, 0.3, 0.35],
    ("a", "2"): [0.5, 0.55, 0.6, 0.7],
    ("b", "1"): [0.2, 0.4, 0.5, 0.6],
    ("b", "2"): [0.3, 0.45, 0.5, 0.56],
}


def two_factors(folder, seeds=4):
    """A sweep of algorithm by step by seed with `SCORES`."""
    flat = {f"{name}{step}": scores[:seeds] for (name, step), scores in SCORES.items()}
    sweep = make_sweep(folder, flat)
    plan = json.loads((sweep / "plan.json").read_text())
    plan["columns"] = ["algorithm", "step", "seed"]
    for row in plan["rows"]:
        name, step = row["values"]["algorithm"]
        row["values"] |= {"algorithm": name, "step": int(step)}
    plan["figures"] = {"labels": {"a": "Alpha"}}
    (sweep / "plan.json").write_text(json.dumps(plan))
    aggregate(sweep, folder / "runs")
    return sweep


def test_pairs_that_differ_in_one_name_are_corrected_for_that_name(tmp_path):
    sweep = two_factors(tmp_path)
    table = read(sweep / "tables", "factors")
    assert table[["factor", "within", "higher", "lower"]].to_numpy().tolist() == [
        ["algorithm", "step 1", "b, step 1", "a, step 1"],
        ["algorithm", "step 2", "a, step 2", "b, step 2"],
        ["step", "a", "a, step 2", "a, step 1"],
        ["step", "b", "b, step 2", "b, step 1"],
    ]
    for start in (0, 2):
        rows = table.iloc[start : start + 2]
        corrected = multitest.multipletests(rows["welch_p"], method="holm")[1]
        assert rows["holm_p"].tolist() == pytest.approx(list(corrected))
    sheet = read_sheet(sweep / "tables" / "factors.json")
    assert [cell.text for cell in sheet.rows[0][:4]] == ["algorithm", "step 1", "b", "Alpha"]
    assert [cell.text for cell in sheet.rows[2][:4]] == ["step", "Alpha", "2", "1"]


def test_three_seeds_cannot_decide_and_four_can(tmp_path):
    for seeds in (3, 4):
        sweep = two_factors(tmp_path / str(seeds), seeds)
        for name in ("factors", "comparisons"):
            sheet = read_sheet(sweep / "tables" / f"{name}.json")
            texts = {row[-1].text for row in sheet.rows}
            if seeds == 3:
                assert texts == {"n = 3 cannot decide"}
                assert "no Mann-Whitney p of so few is below 0.100" in sheet.note
                assert "it takes 4 seeds each, or 5" in sheet.note
            else:
                assert not any("cannot" in text for text in texts)
                assert "cannot decide" not in sheet.note
    # What is said of 4 and 5 seeds: runs of two groups that do not overlap.
    for n, tests in ((4, 1), (5, 6)):
        assert tests * stats.mannwhitneyu(range(n), range(n, 2 * n)).pvalue < 0.05
        assert tests * stats.mannwhitneyu(range(n - 1), range(n, 2 * n - 1)).pvalue > 0.05


def test_one_swept_name_has_no_table_of_factors(tmp_path):
    sweep = two_factors(tmp_path)
    plan = json.loads((sweep / "plan.json").read_text())
    plan["rows"] = [row for row in plan["rows"] if row["values"]["step"] == 1]
    (sweep / "plan.json").write_text(json.dumps(plan))
    aggregate(sweep, tmp_path / "runs")
    assert not list((sweep / "tables").glob("factors.*"))
