"""Comparisons of a swept name within one setting of the others, and what few seeds decide."""

import pytest
from given import changed_plan, make_sweep, read
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
    with changed_plan(sweep) as plan:
        plan["columns"] = ["algorithm", "step", "seed"]
        for row in plan["rows"]:
            name, step = row["values"]["algorithm"]
            row["values"] |= {"algorithm": name, "step": int(step)}
        plan["figures"] = {"labels": {"a": "Alpha"}}
    aggregate(sweep, folder / "runs")
    return sweep


def test_pairs_that_differ_in_one_name_are_corrected_for_that_name(tmp_path):
    table = read(two_factors(tmp_path) / "tables", "factors")
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


def test_three_seeds_cannot_decide_and_four_can(tmp_path, snapshot):
    assert (two_factors(tmp_path / "3", 3) / "tables/factors.md").read_text() == snapshot
    for name in ("factors", "comparisons"):
        sheet = read_sheet(two_factors(tmp_path / name, 4) / f"tables/{name}.json")
        assert all(float(row[-1].text) <= 1 for row in sheet.rows)


@pytest.mark.parametrize(("seeds", "tests"), [(4, 1), (5, 6)])
def test_so_many_seeds_decide_so_many_tests(seeds, tests):
    """What notes promise of 4 and 5 seeds: of groups whose scores do not overlap."""
    fewer = seeds - 1
    assert tests * stats.mannwhitneyu(range(seeds), range(seeds, 2 * seeds)).pvalue < 0.05
    assert tests * stats.mannwhitneyu(range(fewer), range(fewer, 2 * fewer)).pvalue > 0.05


def test_one_swept_name_has_no_table_of_factors(tmp_path):
    sweep = two_factors(tmp_path)
    with changed_plan(sweep) as plan:
        plan["rows"] = [row for row in plan["rows"] if row["values"]["step"] == 1]
    aggregate(sweep, tmp_path / "runs")
    assert not list((sweep / "tables").glob("factors.*"))
