"""Groups that their own seeds selected: marked, and tested only on seeds that did not."""

from itertools import combinations

import numpy as np
import pytest
from given import THREE, changed_plan, make_tables, read
from in_process import compute_sweep
from looks import data_of
from refusals import names_all
from searching import halving, population
from support import TINY

from qdsweep.analysis.page.headline import headline
from qdsweep.analysis.sheet import read_sheet
from qdsweep.analysis.tables.comparisons import Runs
from qdsweep.analysis.tables.possible_best import possible_best
from qdsweep.config.search import Search
from qdsweep.features.compare.merged import merge_sweeps
from qdsweep.features.compare.several import compare_sweeps
from qdsweep.features.compare.tuning import TUNED, tuning_of
from qdsweep.records.paths import Results
from qdsweep.records.plan import Plan, write_confirm

EXPERIMENT = {**TINY, "iterations": 3}
TINY_CMA_ME = {**EXPERIMENT, "algorithm": "cma_me"}
SETTINGS = "::: sigma0 0.2 0.5 0.7"
WINNER = "sigma0 0.5, cma_me"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuning") / "results"
    seeds = "::: seed 1 2 3 4 5"
    baseline = compute_sweep(folder, EXPERIMENT, f"::: algorithm map_elites {seeds}", "baseline")
    tuned = compute_sweep(folder, TINY_CMA_ME, f"{SETTINGS} {seeds}", "tuned")
    held_out = "::: sigma0 0.5 ::: seed 101 102 103 104 105"
    compute_sweep(folder, TINY_CMA_ME, held_out, "held_out")
    shared = "::: sigma0 0.5 ::: seed 1 2 3 4 5 6 7"
    compute_sweep(folder, TINY_CMA_ME, shared, "shared")
    with changed_plan(tuned) as plan:
        plan["search"] = Search(samples=3).plain
    assert baseline.exists()
    return Results(folder)


def confirm(results):
    with changed_plan(results.sweep("tuned").path) as tuned:
        like = next(row for row in tuned["rows"] if row["values"]["sigma0"] == 0.5)
    with changed_plan(results.sweep("held_out").path) as held_out:
        rows = [{**row, "like": like["id"], "group": "sigma0 0.5"} for row in held_out["rows"]]
    write_confirm(results.sweep("tuned"), rows)


@pytest.fixture
def confirmed(results):
    confirm(results)
    yield results
    results.sweep("tuned").confirm.unlink()


def in_tables(compared):
    """Returns the groups with a test, and those with a mark in the table of groups."""
    rows = compared.comparisons.rows
    groups = {cell.text for row in rows for cell in row[:2]}
    table = compared.groups
    marks = (any(cell.bold or "†" in cell.text for cell in row) for row in table.rows)
    names = [", ".join(cell.text for cell in row[: table.text]) for row in table.rows]
    return groups, {name for name, marked in zip(names, marks, strict=True) if marked}


def test_settings_that_their_seeds_selected_are_marked_and_not_tested(results):
    merged = merge_sweeps(results, ["tuned", "baseline"])
    plan = Plan.of(merged.plan)
    assert plan.untested == {group: TUNED for group in plan.groups if "cma_me" in group}
    assert len(plan.untested) == 3
    # 15 runs of 3 iterations; the baseline cost nothing.
    names_all(" ".join(merged.notes), "45 iterations for 3 settings (tuned)", "0 (baseline)")
    compared = compare_sweeps(results, ["tuned", "baseline"])
    assert in_tables(compared) == (set(), set())
    for sheet in (compared.groups, compared.comparisons):
        names_all(sheet.note, TUNED, *plan.untested)


def test_held_out_runs_are_tested_in_place_of_those_that_selected(confirmed):
    merged = merge_sweeps(confirmed, ["tuned", "baseline"])
    plan = Plan.of(merged.plan)
    assert [int(row.values["seed"]) for row in plan.groups[WINNER]] == list(range(101, 106))
    assert plan.untested.keys() == plan.groups.keys() - {WINNER, "map_elites"}
    compared = compare_sweeps(confirmed, ["tuned", "baseline"])
    assert in_tables(compared)[0] == {WINNER, "MAP-Elites"}
    names_all(" ".join(merged.notes), "Left out: 5 runs on seeds by which a search chose.")


def test_other_sweeps_lose_the_seeds_that_a_search_has_seen(results):
    merged = merge_sweeps(results, ["shared", "tuned", "baseline"])
    plan = Plan.of(merged.plan)
    (group,) = (name for name in plan.groups if name.startswith("sigma0 0.5"))
    assert [row.values["seed"] for row in plan.groups[group]] == ["6", "7"]
    assert group not in plan.untested and len(plan.untested) == 2


def test_a_sweep_without_a_search_is_not_tuned(results):
    merged = merge_sweeps(results, ["shared", "baseline"])
    assert not Plan.of(merged.plan).untested and not merged.notes


@pytest.mark.parametrize(
    ("levels", "settings", "cost"),
    [(halving(), 27, "270,000"), (population(), 9, "81,000")],
)
def test_the_budget_of_a_search_is_that_of_all_its_levels(levels, settings, cost):
    data = {
        "name": "a",
        "columns": ["sigma0"],
        "rows": [{"id": "last", "values": {"sigma0": 1}, "iterations": 27}],
        "search": Search(halving={}).plain,
        "levels": [level._asdict() for level in levels],
        "candidates": [{"values": {"sigma0": 2}, "runs": {"1": "first"}}],
        "unit": "evaluations",
    }
    tuning = tuning_of(Plan.of(data), data)
    assert tuning.runs == {"first", "last"}
    assert tuning.text == f"{cost} evaluations for {settings} settings"


@pytest.mark.parametrize("untested", [*combinations(THREE, 1), *combinations(THREE, 2)])
def test_an_untested_group_has_no_test_bold_or_claim(tmp_path, untested):
    sweep = make_tables(tmp_path, THREE, untested=dict.fromkeys(untested, "a reason"))
    pairs = read(sweep, "tables/comparisons")
    assert set(pairs["higher"]) | set(pairs["lower"]) == (
        set(THREE) - set(untested) if len(untested) == 1 else set()
    )
    sheet = read_sheet(sweep / "table.json")
    for row in sheet.rows:
        if row[0].text in untested:
            assert not any(cell.bold or "†" in cell.text for cell in row)
    text = headline(data_of(sweep))
    assert not any(group in text.partition("The best objective")[0] for group in untested)
    names_all(sheet.note, "a reason", *untested)


SWEEPS, NUMBER, SEEDS = 2000, 27, 5


def claims(rng, *, held_out, untested):
    """The share of sweeps in which the winner of equal settings is "higher" than a baseline."""
    false = 0
    for scores in rng.normal(size=(SWEEPS, NUMBER + 2, SEEDS)):
        settings, fresh, baseline = scores[:NUMBER], scores[-2], scores[-1]
        winner = fresh if held_out else settings[settings.mean(axis=1).argmax()]
        groups = {"tuned": winner, "baseline": baseline}
        task = {
            name: Runs(frozenset({f"{name}-{seed}" for seed in range(SEEDS)}), runs)
            for name, runs in groups.items()
            if name not in untested
        }
        (verdict,) = possible_best([(task, 1)])
        false += verdict.alone == "tuned"
    return false / SWEEPS


def test_a_winner_on_its_own_seeds_would_be_better_than_its_equals_far_too_often():
    limit = 0.025 + 3 * np.sqrt(0.025 * 0.975 / SWEEPS)
    assert claims(np.random.default_rng(5), held_out=False, untested=()) > 0.15
    assert claims(np.random.default_rng(5), held_out=True, untested=()) < limit
    assert claims(np.random.default_rng(5), held_out=False, untested={"tuned"}) == 0
