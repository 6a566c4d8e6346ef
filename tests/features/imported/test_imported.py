"""External runs in the tables, figures and texts of a sweep."""

import math
import shutil

import numpy as np
import pandas as pd
import pytest
import yaml
from given import changed_plan, without_decimals
from inventing import BATCH, ITERATIONS, make_run, write_plan
from looks import data_of
from refusals import names_all
from results import forget_sums

from qdsweep.analysis.curves import View, curve_lines
from qdsweep.analysis.figures.combinations import combinations
from qdsweep.analysis.page.headline import headline
from qdsweep.analysis.page.methods import imported
from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.tables.aggregate import write_tables
from qdsweep.analysis.tables.confirmed import winners
from qdsweep.features.imported.description import read_all
from qdsweep.features.imported.foreign_results import read_foreign, write_run
from qdsweep.metrics import BY_NAME, WALL_TIME
from qdsweep.records.leftovers import orphans
from qdsweep.records.paths import Results

GROUP = "their CMA-ME (imported)"
SEEDS = (1, 2, 3, 4, 5)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Two groups of five runs, and five external runs with the highest scores."""
    folder = tmp_path_factory.mktemp("study")
    results, rows = Results(folder / "results"), []
    for name, sigma in (("wide", 0.8), ("narrow", 0.3)):
        for seed in SEEDS:
            run, archive = make_run(results.runs, name, seed, sigma=sigma)
            rows.append(({"algorithm": name, "seed": seed}, run, ITERATIONS, None))
            if name == "wide":
                elites = archive.data()
                np.savez(folder / f"{seed}.npz", **elites | {"objective": elites["objective"] + 9})
    about = {
        "algorithm": "their CMA-ME",
        "domain": "sphere",
        "seeds": [*SEEDS],
        "objective_range": [-600, 100],
        "archive": {"file": "{seed}.npz", "dims": [12, 12], "ranges": [[-16, 16], [-16, 16]]},
        "evaluations": ITERATIONS * BATCH,
        "source": "a repository",
    }
    (folder / "theirs.yaml").write_text(yaml.safe_dump(about))
    sweep = write_plan(results.path, "beside", ["algorithm", "seed"], rows)
    with changed_plan(sweep) as plan:
        for run in read_all([str(folder / "theirs.yaml")]):
            write_run(run, read_foreign(run), results.runs)
            plan["rows"].append(run.row(("algorithm", "seed")))
    forget_sums(results.path)
    write_tables(sweep, results.runs)
    return sweep


def test_tables_show_them_as_a_group_that_is_marked_and_tested(sweep):
    table = pd.read_csv(sweep / "table.csv").set_index("group")
    assert list(table.index) == ["wide", "narrow", GROUP]
    gain = table["norm_qd_score_mean"] - table.loc["wide", "norm_qd_score_mean"]
    assert gain[GROUP] == pytest.approx(9 * table.loc["wide", "coverage_percent_mean"] / 100)
    assert table.loc[GROUP, "core_seconds_n"] == 0, "their cost is unknown"
    names_all(read_sheet(sweep / "table.json").note, "Imported", f"{ITERATIONS * BATCH}")
    tested = pd.read_csv(sweep / "tables/comparisons.csv")
    assert GROUP in set(tested["higher"]) and len(tested) == 3
    assert GROUP not in set(pd.read_csv(sweep / "tables/timing.csv")["group"])
    summary = pd.read_csv(sweep / "summary.csv")
    others = summary[summary["engine"] == "imported"]
    assert len(others) == len(SEEDS)
    assert others["qd_auc"].isna().all(), "a mean over the way is unknown where only its end is"
    assert summary["qd_auc"].notna().sum() == 2 * len(SEEDS)


@pytest.mark.parametrize("swept", [["seed"], ["seed", "sigma0"], ["seed", "algorithm"]])
@pytest.mark.parametrize("constant", ["iterations", "evaluations", "experiment"])
def test_a_swept_value_that_all_our_runs_share_is_no_fault(sweep, tmp_path, swept, constant):
    results = tmp_path / "results"
    shutil.copytree(sweep.parent.parent, results)
    forget_sums(results)
    with changed_plan(results / "sweeps" / sweep.name) as plan:
        plan["columns"] = [*swept, constant]
        plan["rows"] = [row for row in plan["rows"] if row["values"]["algorithm"] != "narrow"]
        for row in plan["rows"]:
            given = {} if "imported" in row else {"sigma0": "0.8", constant: "8"}
            row["values"] = {
                name: (row["values"] | given).get(name, "") for name in plan["columns"]
            }
    write_tables(results / "sweeps" / sweep.name, results / "runs")
    assert len(read_sheet(results / "sweeps" / sweep.name / "table.json").rows) == 2


def test_figures_and_words_mark_them_and_keep_the_colours_of_ours(sweep, snapshot):
    data = data_of(sweep)
    marks = [data.marks[group] for group in ("wide", "narrow", GROUP)]
    assert len({mark.color for mark in marks}) == 3 and marks[2].marker
    (groups,) = data.score_scales.values()
    assert GROUP in groups, "on the same axes"
    assert len(curve_lines(data, groups, View(BY_NAME["qd_score"]))) == 3
    over_time = curve_lines(data, groups, View(BY_NAME["qd_score"], WALL_TIME))
    assert [line.group for line in over_time] == ["wide", "narrow"]
    (combined,) = combinations(data)
    assert list(combined.table["algorithm"]) == ["wide", "narrow"]
    rows = [row for row in data.plan.rows if row.imported]
    assert without_decimals(f"{headline(data)}\n{imported(rows, data)}") == snapshot


def test_they_are_never_confirmed_asked_for_or_cleaned_away(sweep):
    data = data_of(sweep)
    assert winners(data, 1) == [GROUP]
    assert winners(data, 1, data.plan.imported_groups) == ["wide"]
    assert len(data.plan.runs()) == 10 and not any(run.group == GROUP for run in data.plan.runs())
    results = Results(sweep.parent.parent)
    (sweep / "plan.json").rename(sweep / "aside")
    assert len(list(orphans(results))) == 10 and len(list(results.known_runs())) == 15
    (sweep / "aside").rename(sweep / "plan.json")


def test_the_smallest_is_the_best_where_the_user_says_so(sweep, snapshot):
    """A user's metric that only the external runs have, and that ranks."""
    with changed_plan(sweep) as plan:
        plan["metrics"] = [{"function": "x:waste", "smaller_is_better": True}]
        plan["rank"] = "waste"
    runs = sweep.parent.parent / "runs"
    for kind, waste in {"imported": 0, "sphere-narrow": 1, "sphere-wide": 2}.items():
        for number, path in enumerate(sorted(runs.glob(f"{kind}-*"))):
            metrics = pd.read_csv(path / "metrics.csv").assign(waste=waste + 0.01 * number)
            (path / "metrics.csv").unlink()
            metrics.to_csv(path / "metrics.csv", index=False)
    write_tables(sweep, runs)
    data = data_of(sweep)
    assert winners(data, 3) == [GROUP, "narrow", "wide"]
    sheet = read_sheet(sweep / "table.json")
    assert without_decimals(headline(data)) == snapshot
    names_all(sheet.note, "Waste")
    place = sheet.columns.index("Waste")
    assert [cells[place].bold for cells in sheet.rows] == [False, False, True]
    tested = pd.read_csv(sweep / "tables/comparisons.csv")
    assert (tested["mean_higher"] > tested["mean_lower"]).all()
    assert tested["lower"].iloc[0] == GROUP and math.isclose(tested["improvement"].iloc[0], 1)
