"""What a search computes of a sweep, and what is refused before anything starts."""

import pytest
from support import TINY

from qdsweep.errors import BadInput
from qdsweep.planning.start import read_sweep, sweep_of
from qdsweep.records.paths import Results
from qdsweep.search.plan import search_plan

GRID = "::: batch_size 4 8 ::: sigma0 0.1 0.5 1 ::: seed 1 2"
DRAWN = ":::~ sigma0 log 0.05 5 :::~ batch_size logint 2 40 ::: seed 1 2"
SIZED = {**TINY, "iterations": None, "evaluations": 900}


def planned(tmp_path, search, sweep=GRID, experiment=SIZED, **keys):
    data = {"name": "s", "experiment": experiment, "sweep": sweep, "search": search, **keys}
    settings = read_sweep(data)
    return search_plan(settings, sweep_of(settings, Results(tmp_path)))


def test_a_plain_sweep_has_no_search_plan(tmp_path):
    assert planned(tmp_path, {"samples": 3}, DRAWN) is None
    assert planned(tmp_path, None) is None


def test_the_settings_of_a_grid_are_mixed_and_those_of_draws_are_not(tmp_path):
    grid = planned(tmp_path, {"halving": {"rungs": ["1/3", 1]}})
    assert len(grid.candidates) == 6
    batches = [candidate.values["batch_size"] for candidate in grid.candidates]
    assert batches != sorted(batches)
    other = planned(tmp_path, {"seed": 1, "halving": {"rungs": ["1/3", 1]}})
    assert other.candidates != grid.candidates
    assert sorted(map(repr, other.candidates)) == sorted(map(repr, grid.candidates))
    assert list(grid.candidates[0].runs) == ["1", "2"]
    crossed = "::: algorithm cma_me cma_mae " + DRAWN
    drawn = planned(tmp_path, {"samples": 4, "halving": {"rungs": ["1/3", 1]}}, crossed)
    samples = [candidate.values["sample"] for candidate in drawn.candidates]
    assert samples == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_setting_that_is_drawn_twice_is_one(tmp_path):
    twice = ":::~ batch_size choice 4 8 ::: seed 1 2"
    found = planned(tmp_path, {"samples": 9, "halving": {"rungs": ["1/3", 1]}}, twice)
    assert len(found.candidates) == 2


@pytest.mark.parametrize(
    ("search", "sweep", "said"),
    [
        ({"halving": {"brackets": "all"}}, GRID, "the sweep has none"),
        ({"halving": {"first": "1/9"}}, GRID + " ::: evaluations 100 900", "need one budget"),
        ({"halving": {"brackets": "all"}}, ":::~ batch_size choice 4 8", "only 2 of 17 draws"),
        (
            {"halving": {"brackets": "all"}},
            "::: algorithm cma_me cma_mae " + DRAWN,
            "halving.brackets takes drawn sources and seeds alone",
        ),
        ({"halving": {}}, DRAWN, "search: {samples: N}"),
        ({"halving": {}}, "::: sigma0 1 2 3 :::+ seed 1 2 1", "needs the same seeds"),
        ({"halving": {"first": 2}}, GRID, "no share of the budget"),
        ({"halving": {"first": "1/0"}}, GRID, "no share of the budget"),
        ({"halving": {"rungs": [1, "1/3"]}}, GRID, "they must rise"),
        ({"halving": {"eta": 1}}, GRID, "search.halving.eta = 1"),
        ({"halving": {"seeds": [1, 2]}}, GRID, "a number for each of the 3 rungs"),
        ({"halving": {"brackets": 4}, "samples": 9}, DRAWN, "brackets"),
        ({"halving": {}, "pbt": {"population": 4, "generations": 2}}, DRAWN, "stands alone"),
        ({"sampling": "tpe", "samples": 9}, DRAWN, "batches: 2 or more"),
        (
            {"sampling": "tpe", "samples": 12, "batches": 2},
            ":::~ batch_size int 4 6 :::~ sigma0 choice 1 2 3",
            "tpe asks for 12 different settings, and the drawn sources have 9",
        ),
        ({"sampling": "tpe", "samples": 9, "batches": 2}, DRAWN, "a whole number"),
    ],
)
def test_what_cannot_be_searched_is_refused(tmp_path, search, sweep, said):
    with pytest.raises(BadInput, match=said.replace("{", r"\{").replace("(", r"\(")):
        planned(tmp_path, search, sweep)


@pytest.mark.parametrize(("key", "value"), [("reevaluate", {"times": 2}), ("partial", True)])
def test_what_does_not_go_with_a_search_is_refused(tmp_path, key, value):
    with pytest.raises(BadInput, match=f"^{key}: "):
        planned(tmp_path, {"halving": {}}, **{key: value})


def test_early_rungs_and_few_settings_are_warned_of(tmp_path):
    (early,) = planned(tmp_path, {"halving": {"first": "1/27", "eta": 3}}).warnings
    assert "the first rung has 1/27 of the budget" in early
    (few,) = planned(tmp_path, {"halving": {}}, "::: sigma0 0.1 0.5 ::: seed 1").warnings
    assert "2 settings and eta = 3" in few
    assert not planned(tmp_path, {"halving": {}}).warnings
