"""What stands at each place of a search, and why it stopped there."""

from searching import SEEDS, grid, halving, population, searched, write_search

from qdsweep.analysis.search import (
    leader,
    level_text,
    read_search,
)
from qdsweep.config.search import Search
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import read_plan
from qdsweep.search.levels import cost, count_candidates, levels, search_cost, share_of_whole


def test_each_place_says_why_its_setting_stopped():
    search = searched(halving(), grid())
    assert len(search.placed) == 27 + 9 + 3
    whys = {one.setting: one.why for one in search.placed if one.level.name == "rung-0"}
    assert sum(why.endswith(" of 27, 9 went on") for why in whys.values()) == 17
    assert whys[26] == "rung 0: failed: ValueError: the ranker broke"
    assert sum(not why for why in whys.values()) == 9
    ranks = sorted(one.rank for one in search.placed if one.level.name == "rung-0")
    assert ranks == list(range(1, 28))
    assert next(one for one in search.placed if one.failed).rank == 27, "it ranks last"
    assert all(one.went_on is None for one in search.finalists)
    assert [one.rank for one in search.finalists] == [1, 2, 3]


def test_nobody_has_decided_about_a_search_that_is_half_done():
    search = searched(halving(), grid(), markers=20)
    assert {one.level.name for one in search.placed} == {"rung-0"}
    assert sum(one.is_done for one in search.placed) == 20
    assert {(one.rank, one.went_on, one.why) for one in search.placed} == {(None, None, "")}


def test_a_setting_is_shown_where_it_got_furthest():
    search = searched(halving(), grid())
    assert sorted(one.setting for one in search.last) == list(range(27))
    budgets = [one.level.budget for one in search.last]
    assert budgets == [27_000] * 3 + [9_000] * 6 + [3_000] * 18
    assert search.last[-1].failed is not None
    steps = [after.level.budget / before.level.budget for before, after in search.pairs]
    assert steps == [3.0] * 12
    assert search.label(search.last[0]).startswith("sigma0 0.5, batch_size ")


def test_what_a_search_costs():
    planned = halving()
    assert [cost(planned, level) for level in planned] == [81_000, 54_000, 135_000]
    assert search_cost(planned) == 270_000 and count_candidates(planned) == 27
    assert round(100 * share_of_whole(planned, 27)) == 37


def test_brackets_are_told_apart():
    search = Search(halving={"brackets": "all", "seeds": [1, 1, 2]})
    planned = list(levels(search, 17, SEEDS, 27_000))
    found = searched(planned, grid()[:17])
    assert level_text("bracket-2-rung-0") == "bracket 2, rung 0"
    assert {one.why.partition(":")[0] for one in found.placed if one.why} == {
        *("bracket 2, rung 0", "bracket 2, rung 1", "bracket 1, rung 0")
    }
    assert len(found.finalists) == 5


def test_a_population_takes_over_and_goes_on():
    search = searched(population(), [{"sigma0": 0.1 * n, "batch_size": 12} for n in range(1, 10)])
    assert search.is_pbt
    second = [one for one in search.placed if one.level.name == "generation-1"]
    assert sum(one.parent != one.place for one in second) == 2
    first = [one for one in search.placed if one.level.name == "generation-0"]
    assert sum(bool(one.why) for one in first) == 2, "those whose place was taken over"
    assert search_cost(search.levels) == 81_000, "a child begins where its donor stood"
    assert leader(search, search.levels[-1]) == search.finalists[0]


def test_a_search_is_read_from_its_files(tmp_path):
    sweep = SweepDir(write_search(tmp_path / "results", halving(), grid()))
    assert read_search(sweep, read_plan(sweep)).placed == searched(halving(), grid()).placed
