"""Searches replayed on curves of real runs (benchmarks/search_table.npz): docs/searches.md.

A short form of the problem on which BOHB was published; benchmarks/ has the full form.
"""

import statistics

import pytest
from counting_ones import searches
from replay import CMA_ME, EXAMPLE, STRATEGIES, halving, many, tables

DRAWS = 200
ARM, PLATEAU = "CMA-MAE on the arm", "MAP-Elites on a plateau"
GROWING = STRATEGIES["rungs 1/3, 2/3, 1, seeds 1-2-3"]
EARLY = STRATEGIES["halving from 1/9, seeds 1-1-2"]
LATER = STRATEGIES["rungs 1/6, 1/2, 1, seeds 1-1-1"]


@pytest.fixture(scope="module")
def curves():
    return tables()


@pytest.mark.parametrize(
    ("strategy", "least_score", "most_cost", "tasks"),
    [
        pytest.param(EARLY, 0.98, 0.40, [CMA_ME, ARM, EXAMPLE], id="halving from a ninth"),
        pytest.param(LATER, 0.98, 0.40, [CMA_ME, ARM, PLATEAU, EXAMPLE], id="and from a sixth"),
        pytest.param(GROWING, 0.99, 0.30 * 3, [CMA_ME, ARM, EXAMPLE], id="growing seeds"),
    ],
)
def test_the_best_is_found_for_less_than_a_grid(curves, strategy, least_score, most_cost, tasks):
    for task in tasks:
        search, _ = many(curves[task], strategy, DRAWS)
        assert search.score >= least_score, task
        assert search.cost <= most_cost, task


def test_where_a_grid_of_three_seeds_finds_less_growing_seeds_lose_nothing(curves):
    search, _ = many(curves[PLATEAU], GROWING, DRAWS)
    grid, _ = many(curves[PLATEAU], STRATEGIES["grid, 3 seeds"], DRAWS)
    assert grid.score < 0.99
    assert search.score > grid.score - 0.002


def test_a_first_rung_that_is_too_early_loses_the_best(curves):
    """The reason for the warning below 1/9, and for a later rung in docs/searches.md."""
    task = next(name for name in curves if "basic" in name)
    early, _ = many(curves[task], halving(1, 1, 1, 1, first="1/27"), DRAWS)
    assert early.score < 0.9
    assert many(curves[task], LATER, DRAWS)[0].score > 0.99


def test_the_table_has_all_runs(curves):
    for task in (CMA_ME, ARM, PLATEAU):
        assert curves[task].shape == (81, 10, 54)
        assert (curves[task][:, :, -1].max(axis=1) > 0).all()


def test_hyperband_is_before_random_search_and_with_tpe_before_itself():
    results = [searches(seed, rounds=2) for seed in range(5)]
    regret = {name: statistics.fmean(each[name].regret for each in results) for name in results[0]}
    assert regret["Hyperband"] < 0.8 * regret["random search"]
    assert regret["TPE + Hyperband"] < 0.6 * regret["Hyperband"]
    for each in results:  # at equal cost
        costs = [result.wholes for result in each.values()]
        assert max(costs) - min(costs) < 0.5
