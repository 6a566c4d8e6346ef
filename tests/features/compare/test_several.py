"""Several sweeps as one: the same tables as those of one sweep with all rows."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from composing import before_its_renaming
from counting import COUNTING
from counting import EXPERIMENT as TALLY
from given import changed_plan, contents
from in_process import compute_sweep, qdsweep
from opened import opened
from refusals import names_all, refused
from support import TINY

from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.tables.aggregate import write_tables
from qdsweep.config.compose import compose
from qdsweep.config.family import FORMER
from qdsweep.features.compare.commands import _lines
from qdsweep.features.compare.merged import _Group, merge_sweeps
from qdsweep.features.compare.several import compare_sweeps
from qdsweep.files import write_json
from qdsweep.records.paths import Results, SweepDir
from qdsweep.records.plan import Plan, read_plan_data, write_plan
from qdsweep.sweep.runs import table_of_runs

EXPERIMENT = {**TINY, "iterations": 3}
SIGMA = {**EXPERIMENT, "sigma0": 0.7}
HILLS = {**EXPERIMENT, "domain": {"preset": "lp_rastrigin", "solution_dim": 10}}
SEEDS = "::: seed 1 2 3 4 6"
ALL = "::: algorithm map_elites cma_me cma_mae"
TWO = "::: algorithm cma_me cma_mae"
SWEEPS = {
    "all": (EXPERIMENT, f"{ALL} {SEEDS}", "tiny"),
    "first": (EXPERIMENT, f"::: algorithm map_elites cma_me {SEEDS}", "tiny"),
    "last": (EXPERIMENT, f"{TWO} {SEEDS}", "tiny"),
    "few": (EXPERIMENT, f"{ALL} ::: seed 1", "tiny"),
    "more": (EXPERIMENT, f"{ALL} ::: seed 2 3 4 6", "tiny"),
    "sigmas": (SIGMA, f"::: sigma0 0.2 0.5 0.7 {TWO} {SEEDS}", "tiny"),
    "small": (SIGMA, f"::: sigma0 0.2 0.5 {TWO} {SEEDS}", "tiny"),
    "large": (SIGMA, f"{TWO} {SEEDS}", "tiny"),
    "dotted": (SIGMA, f"::: algorithm.emitters.0.sigma0 0.7 {TWO} {SEEDS}", "tiny"),
    "hills": (HILLS, f"{TWO} {SEEDS}", "hills"),
    "whole": (EXPERIMENT, "::: sigma0 1 2 ::: algorithm cma_me ::: seed 1", "tiny"),
    "float": ({**EXPERIMENT, "sigma0": 1.0}, "::: algorithm cma_mae ::: seed 1", "tiny"),
    "patient": (EXPERIMENT, "::: timeout 100 200 ::: seed 1", "tiny"),
    "more_patient": (EXPERIMENT, "::: timeout 100 200 ::: seed 2", "tiny"),
    "alone": ({**EXPERIMENT, "algorithm": "map_elites"}, "", "tiny"),
    "short": ({**EXPERIMENT, "iterations": 2}, f"{TWO} {SEEDS}", "tiny"),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several") / "results"
    for name, (experiment, text, title) in SWEEPS.items():
        with changed_plan(compute_sweep(folder, experiment, text, name=name)) as plan:
            plan["experiment"] = title
    return folder


@pytest.fixture
def results(finished, tmp_path):
    return Results(shutil.copytree(finished, tmp_path / "results"))


def merged_tables(results, *names) -> SweepDir:
    """Writes the tables of several sweeps, as `qdsweep compare` does."""
    merged = merge_sweeps(results, names)
    sweep = results.comparison(merged.plan["name"])
    sweep.path.mkdir(parents=True)
    write_json(sweep.plan, merged.plan)
    write_tables(sweep.path, results.runs)
    return sweep


def groups(results, *names):
    return list(Plan.of(merge_sweeps(results, names).plan).groups)


@pytest.mark.parametrize(
    ("parts", "whole", "shared"),
    [
        pytest.param(("first", "last"), "all", 5, id="algorithms, some shared"),
        pytest.param(("few", "more"), "all", 0, id="seeds"),
        pytest.param(("few", "more", "first", "all"), "all", 15, id="four sweeps"),
        pytest.param(("small", "large"), "sigmas", 0, id="a parameter of only one of them"),
        pytest.param(("small", "dotted"), "sigmas", 0, id="a parameter with another name"),
    ],
)
def test_the_tables_are_those_of_one_sweep_with_all_rows(results, parts, whole, shared):
    tables = contents(merged_tables(results, *parts).path)
    write_tables(results.sweep(whole).path, results.runs)
    alone = contents(results.sweep(whole).path)
    assert tables.keys() == alone.keys()
    assert {name for name in tables if tables[name] != alone[name]} == {"plan.json"}
    assert ("tables/factors.csv" in tables) == (whole == "sigmas")
    notes = merge_sweeps(results, parts).notes
    assert len(notes) == (shared > 0)
    names_all(" ".join(notes), *[f"{shared} run"] * len(notes))


def test_an_argument_that_an_experiment_leaves_out_has_an_empty_cell(plugins):
    plugins("tally", COUNTING)
    experiment = compose(TALLY, {"seed": 1}, source="")
    group = _Group(["s"], "s", experiment, (), [{"values": {}}])
    assert group.value("domain.arguments.slope") == 1.0
    assert group.value("domain.arguments.noise") == ""


def test_the_page_gets_the_same_tables(results):
    sweep, compared = (
        merged_tables(results, "first", "last"),
        compare_sweeps(results, ["first", "last"]),
    )
    assert compared.comparisons == read_sheet(sweep.tables / "comparisons.json")
    written = read_sheet(sweep.table)
    assert compared.groups.rows == written.rows and written.note.startswith(compared.groups.note)


def test_the_printed_table_marks_the_best_where_a_file_has_it_in_bold(results):
    sheet = read_sheet(merged_tables(results, "first", "last").table)
    best = [f"{cell.text}*" for row in sheet.rows for cell in row if cell.bold]
    text = "\n".join(_lines(sheet))
    names_all(text, "*: highest", *best)
    assert best and "Bold" not in text


def test_groups_with_other_settings_are_named_by_their_experiments_or_sweeps(results):
    assert groups(results, "first", "last") == ["map_elites", "cma_me", "cma_mae"]
    assert groups(results, "last", "large") == [
        *("sweep last, cma_me", "sweep last, cma_mae"),
        *("sweep large, cma_me", "sweep large, cma_mae"),
    ]
    assert groups(results, "last", "hills") == [
        *("tiny, cma_me", "tiny, cma_mae", "hills, cma_me", "hills, cma_mae"),
    ]
    assert groups(results, "first", "small") == [
        *("map_elites", "cma_me", "cma_me, sigma0 0.2", "cma_mae, sigma0 0.2"),
        *("cma_me, sigma0 0.5", "cma_mae, sigma0 0.5"),
    ]
    assert groups(results, "first", "last", "short")[:3] == [
        *("sweep first, map_elites", "sweep first + last, cma_me", "sweep last, cma_mae"),
    ]


def test_equal_numbers_are_one_value_of_a_parameter(results):
    rows = Plan.of(merge_sweeps(results, ["whole", "float"]).plan).rows
    assert [row.values["sigma0"] for row in rows] == ["1", "2", "1"]


def test_one_experiment_adds_a_seed(results):
    plan = Plan.of(merge_sweeps(results, ["alone", "first"]).plan)
    assert [row.values["seed"] for row in plan.groups["map_elites"]] == [*"512346"]
    assert plan.groups.keys() == {"map_elites", "cma_me"}


def test_groups_of_one_sweep_with_equal_settings_stay_apart(results):
    merged = Plan.of(merge_sweeps(results, ["patient", "more_patient"]).plan)
    seeds = {group: [row.values["seed"] for row in rows] for group, rows in merged.groups.items()}
    assert seeds == {"timeout 100": ["1", "2"], "timeout 200": ["1", "2"]}


def test_the_same_runs_at_two_budgets_are_two_groups_and_are_not_tested(results):
    sweep = merged_tables(results, "last", "short")
    pairs = [
        [cell.text for cell in row[:2]]
        for row in read_sheet(sweep.tables / "comparisons.json").rows
    ]
    assert not [pair for pair in pairs if pair[0].split(", ")[1] == pair[1].split(", ")[1]]
    assert len(pairs) == 2 * 2


def test_unfinished_runs_are_counted_and_left_out(results):
    with changed_plan(results.sweep("first").path) as plan:  # a larger budget, not computed yet
        plan["rows"][0]["iterations"] = 4
        results.run(plan["rows"][1]["id"]).summary.unlink()
    merged = merge_sweeps(results, ["first", "last"])
    names_all(merged.notes[0], "first", "8 of 10")
    assert [len(runs) for runs in merged.runs.values()] == [8, 10]
    assert len(Plan.of(merged.plan).groups["map_elites"]) == 3


def test_sweeps_that_do_not_compare_are_named(results):
    compared = compare_sweeps(results, ["all", "hills", "first"])
    names_all(compared.notes[-1], "hills")
    assert "all" not in compared.notes[-1].split() and "first" not in compared.notes[-1].split()
    assert {row[0].text for row in compared.comparisons.rows} == {"lp_sphere", "lp_rastrigin"}


def test_unequal_budgets_are_warned_about(results):
    names_all(compare_sweeps(results, ["last", "short"]).groups.note, "from 32 to 48")


def test_labels_and_colors_of_all_sweeps_are_kept_where_they_fit(results):
    looks = {
        "first": {"labels": {"cma_me": "Ours", "map_elites": "Old"}, "colors": {"cma_me": "black"}},
        "last": {
            "labels": {"cma_me": "Theirs", "cma_mae": "Ours"},
            "colors": {"cma_me": "red", "cma_mae": "blue"},
            "order": ["cma_mae"],
        },
    }
    for name, look in looks.items():
        with changed_plan(results.sweep(name).path) as plan:
            plan |= {"figures": look, "rank": "coverage" if name == "last" else "norm_qd_score"}
    merged = merge_sweeps(results, ["first", "last"])
    assert merged.plan["figures"]["labels"] == looks["first"]["labels"]
    assert merged.plan["figures"]["colors"] == {"cma_me": "black", "cma_mae": "blue"}
    assert merged.plan["rank"] == "norm_qd_score"
    names_all(merged.notes[-1], "first")
    names = [row[0].text for row in compare_sweeps(results, ["first", "last"]).groups.rows]
    assert names == ["Old", "Ours", "CMA-MAE"]


def test_wrong_sweeps_are_refused(results):
    for names in (["first"], ["first", "first"]):
        with refused("first"):
            merge_sweeps(results, names)
    with refused("alll", "more_patient"):
        merge_sweeps(results, ["all", "alll"])
    for path in results.runs.glob("lp_rastrigin*/summary.json"):
        path.unlink()
    with refused("hills", "qdsweep status hills"):
        merge_sweeps(results, ["all", "hills"])


def test_different_metrics_of_one_name_are_refused(results):
    for name, function in [("first", "mine:spread"), ("last", "theirs:spread")]:
        with changed_plan(results.sweep(name).path) as plan:
            plan["metrics"] = [{"function": function, "name": "spread"}]
    with refused("spread", "last"):
        merge_sweeps(results, ["first", "last"])


BOWL = """
import numpy as np
from qdsweep.domains.base import Domain, Evaluation


class Bowl(Domain):
    solution_dim, ranges = 2, ((-1.0, 1.0), (-1.0, 1.0))

    def evaluate(self, solutions, seeds):
        return Evaluation(-np.sum(solutions**2, axis=1), solutions)
"""


def plan_runs(results: Results, name: str, seed: int, **changes: Any) -> None:
    """Writes the plan of one run, and what is read of a finished run."""
    made = table_of_runs({**EXPERIMENT, **changes}, f"::: seed {seed}")
    write_plan(made.plan(name=name, experiment="tiny", sweep=""), made.runs, results)
    for run in map(results.run, made.runs):
        write_json(run.summary, {"iterations": 3})
        run.publish()


def test_runs_of_changed_code_are_another_group(tmp_path):
    results, file = Results(tmp_path / "results"), Path("config/plugins/bowl.py")
    file.parent.mkdir(parents=True)
    for number, text in enumerate([BOWL, f"# a comment\n{BOWL}", BOWL.replace("**2", "**4")]):
        file.write_text(text)
        plan_runs(results, "abc"[number], seed=number, domain="bowl:Bowl")
    assert groups(results, "a", "b") == ["tiny"]
    assert groups(results, "a", "b", "c") == ["sweep a + b", "sweep c"]


def test_runs_under_both_names_of_a_renamed_preset_are_one_group(tmp_path):
    results, name = Results(tmp_path / "results"), "cma_me_one_stage"
    taken, title = FORMER[name]
    for number, algorithm in enumerate([before_its_renaming(name), name, taken]):
        plan_runs(results, "abc"[number], seed=number, algorithm=algorithm)
    assert groups(results, "a", "b") == ["tiny"]
    assert groups(results, "a", "b", "c") == ["sweep a + b", "sweep c"]
    own = before_its_renaming(name) | {"title": ""}  # of the user, without a title
    plan_runs(results, "own", seed=0, algorithm=own, batch_size=3)
    for sweep, known in (("a", title), ("c", "Theirs"), ("own", "Own")):
        plan = read_plan_data(results.sweep(sweep))
        plan |= {"columns": ["algorithm", "seed"], "titles": {taken: known}}
        plan["rows"][0]["values"]["algorithm"] = taken
        write_plan(plan, {}, results)
    merged = merge_sweeps(results, ["a", "c"]).plan
    assert list(Plan.of(merged).groups) == [name, taken]
    assert merged["titles"] == {name: title, taken: "Theirs"}
    assert list(Plan.of(merge_sweeps(results, ["a", "own"]).plan).groups) == [name, taken]


def test_imported_runs_of_one_name_are_one_group_only_if_they_are_the_same(results):
    row = {"values": {"algorithm": "theirs"}, "imported": "theirs"}
    for name, run in [
        ("first", "imported-x-s1-0"),
        ("last", "imported-y-s1-0"),
        ("few", "imported-x-s1-0"),
    ]:
        shutil.copytree(
            next(results.runs.glob("lp_sphere-*")), results.run(run).path, dirs_exist_ok=True
        )
        with changed_plan(results.sweep(name).path) as plan:
            plan["rows"].append({**row, "id": run, "values": {"algorithm": "theirs", "seed": 1}})
    assert "theirs" in groups(results, "first", "few")
    assert groups(results, "first", "last")[-1] == "sweep last, theirs"


def test_each_plan_is_read_once(results):
    with opened() as files:
        merge_sweeps(results, ["first", "last"])
    assert sorted(path.parent.name for path in files if path.name == "plan.json") == [
        "first",
        "last",
    ]


def test_many_names_fit_into_the_name_of_a_folder(results):
    names = [f"{'a' * 90}{number}" for number in range(3)]
    for name in names:
        shutil.copytree(results.sweep("few").path, results.sweep(name).path)
        with changed_plan(results.sweep(name).path) as plan:
            plan["name"] = name
    assert len(merge_sweeps(results, names).plan["name"]) <= 200


def test_clean_and_status_do_not_take_a_comparison_for_a_sweep(results, tmp_path):
    sweep = merged_tables(results, "few", "more")
    half = sweep.tables / ".table.csv.1.tmp"
    half.write_text("half")
    os.utime(half, (0, 0))
    assert "few+more" not in [known.name for known in results.known_sweeps()]
    names_all(qdsweep("clean", "--orphans", cwd=tmp_path), half.name, "1 ")
    assert not half.exists() and sweep.table.exists()
