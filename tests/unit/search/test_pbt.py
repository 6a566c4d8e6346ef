"""How one generation of population-based training follows another."""

import pytest
from refusals import names_all

from qdsweep.config.keys import read_schedule
from qdsweep.config.search import Search
from qdsweep.records.search import Seen
from qdsweep.search.pbt import exploit
from qdsweep.sweep.drawn import Drawn

SIGMA = Drawn("sigma", "log", ("0.01", "10"))
SIZE = Drawn("size", "int", ("2", "40"))
RULE = Drawn("rule", "choice", ("mu", "filter"))


def search(seed: int = 0, **keys: object) -> Search:
    return Search(seed=seed, pbt={"population": 8, "generations": 4, **keys})


def population(*scores: float | None, **values: object) -> list[Seen]:
    values = {"sample": 0, "sigma": 1.0, "size": 10, "rule": "mu", **values}
    return [
        Seen(place, place, {**values, "sigma": 1.0 + place / 10}, score, None, {"1": f"run{place}"})
        for place, score in enumerate(scores)
    ]


def places(decision):
    return {one.place: one for one in decision.chosen}


def test_the_worst_take_over_the_best_and_the_others_stay():
    seen = population(3, 8, 1, 5, 7, 4, 2, 6)
    decision = exploit(search(), [SIGMA, SIZE, RULE], seen, 1, 900)
    assert decision.seen == seen
    chosen = places(decision)
    assert list(chosen) == list(range(8))
    for place in (0, 1, 3, 4, 5, 7):
        one = chosen[place]
        assert (one.parent, one.setting, one.runs) == (place, place, {"1": f"run{place}"})
        assert one.values == seen[place].values
    for place in (2, 6):
        one = chosen[place]
        assert one.parent in (1, 4) and one.setting == 8 + place and not one.runs
        names_all(one.reason, "8th of 8" if place == 2 else "7th of 8", one.parent)
        donor = seen[one.parent].values
        start, change = one.values["changes"].split("; ")
        assert start == f"0 sigma={donor['sigma']} size=10 rule=mu"
        (change,) = read_schedule(change)
        names = ("sigma", "size", "rule")
        assert change == {"at": 900, "set": {name: one.values[name] for name in names}}


def test_a_lineage_is_the_whole_history():
    seen = population(2, 1, changes="0 sigma=2.0 size=5 rule=mu; 900 sigma=1.0 size=10 rule=mu")
    (_, one) = exploit(search(), [SIGMA, SIZE, RULE], seen, 2, 1800).chosen
    *before, last = one.values["changes"].split("; ")
    assert "; ".join(before) == seen[0].values["changes"]
    assert last.startswith("1800 sigma=")


def test_values_are_scaled_or_drawn_anew_and_stay_in_their_bounds():
    sigmas, anew = set(), 0
    for seed in range(200):
        one = exploit(search(seed), [SIGMA, SIZE, RULE], population(2, 1), 1, 9).chosen[1]
        assert 0.01 <= one.values["sigma"] <= 10 and 2 <= one.values["size"] <= 40
        assert isinstance(one.values["size"], int) and one.values["rule"] in ("mu", "filter")
        assert float(f"{one.values['sigma']:.6g}") == one.values["sigma"]
        anew += one.values["sigma"] not in (0.8, 1.25)
        sigmas.add(one.values["sigma"])
    assert {0.8, 1.25} < sigmas
    assert 30 <= anew <= 70, "a quarter"
    top = population(2, 1, sigma=9.9)
    top = [one._replace(values={**one.values, "sigma": 9.9}) for one in top]
    kept = search(3, factors=[1.25], resample=0.0)
    assert exploit(kept, [SIGMA], top, 1, 9).chosen[1].values["sigma"] == 10.0


def test_no_two_are_the_same_experiment():
    seen = [one._replace(values={"rule": "mu"}) for one in population(*range(8, 0, -1))]
    chosen = exploit(search(resample=1.0, exploit=0.5), [RULE], seen, 1, 9).chosen
    new = [(one.parent, one.values["rule"]) for one in chosen if one.setting >= 8]
    assert sorted(new) == [(place, "filter") for place in range(4)]
    only = Drawn("rule", "choice", ("mu",))
    chosen = exploit(search(resample=1.0, exploit=0.5), [only], seen, 1, 9).chosen
    assert [one.setting for one in chosen] == list(range(8)), "there is nothing else to try"


@pytest.mark.parametrize("sources", [[SIGMA, SIZE], [SIZE, SIGMA]])
def test_a_decision_depends_on_nothing_else(sources):
    """Not on the order of sources, nor on places that stay."""
    seen = population(8, 7, 6, 5, 4, 3, 2, 1)
    one = places(exploit(search(1), sources, seen, 1, 9))[7]
    again = places(exploit(search(1), [SIGMA, SIZE], population(8, 7, 5, 6, 4, 3, 2, 1), 1, 9))[7]
    assert {**one.values, "changes": 0} == {**again.values, "changes": 0}
    assert places(exploit(search(1), sources, seen, 2, 9))[7].values != one.values
    assert places(exploit(search(2), sources, seen, 1, 9))[7].values != one.values


def test_what_failed_takes_over_and_where_all_failed_all_stay():
    seen = [one._replace(failed="it died") if one.score is None else one
            for one in population(4, None, 3, None, 2, None, 1, 5)]  # fmt: skip
    chosen = places(exploit(search(), [SIGMA], seen, 1, 9))
    assert {place for place, one in chosen.items() if one.setting >= 8} == {1, 3, 5}
    assert {one.failed for one in chosen.values()} == {None}
    dead = [one._replace(score=None, failed="it died") for one in seen]
    chosen = places(exploit(search(), [SIGMA], dead, 1, 9))
    assert {one.failed for one in chosen.values()} == {"it died"}


def test_a_small_whole_number_changes():
    assert [SIZE.scaled(2, 0.8), SIZE.scaled(3, 1.25), SIZE.scaled(3, 0.8)] == ["2", "4", "2"]
    assert [SIZE.scaled(40, 1.25), SIZE.scaled(39, 1.0), RULE.scaled("mu", 2)] == ["40", "39", "mu"]
    assert Drawn("x", "normal", ("0", "1")).scaled(-2.0, 1.25) == "-2.5"
