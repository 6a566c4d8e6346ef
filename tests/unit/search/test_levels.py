"""The levels of searches, as pure functions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from walk import walk

from qdsweep.config.search import Halving, Search
from qdsweep.records.search_files import Decision, Seen
from qdsweep.search.levels import (
    cost,
    count_candidates,
    levels,
    promote,
    samples_of,
    search_cost,
    share_of_whole,
    whole_budget,
)

SEEDS = ("1", "2", "3")
THIRDS = ["1/3", 1]
SEARCHES = {
    "a grid with growing seeds": (Search(halving=Halving()), 27, False),
    "rungs that are no powers": (Search(halving=Halving(rungs=["1/3", "2/3", 1])), 27, False),
    "draws": (Search(samples=9, halving=Halving(rungs=THIRDS, seeds=[2, 3])), 9, True),
    "a Latin hypercube": (Search(samples=9, sampling="lhs", halving=Halving()), 9, True),
    "blocks of one": (Search(samples=9, halving=Halving(rungs=THIRDS, block=1)), 9, True),
    "whole rungs of draws": (
        Search(samples=9, halving=Halving(rungs=THIRDS, block="all")),
        9,
        True,
    ),
    "few candidates": (Search(samples=2, halving=Halving()), 2, True),
    "tpe": (Search(samples=18, sampling="tpe", batches=2), 11, True),
    "tpe with rungs": (
        Search(samples=18, sampling="tpe", batches=2, halving=Halving(rungs=THIRDS)),
        9,
        True,
    ),
    "brackets": (Search(halving=Halving(brackets=2)), 9, True),
    "rounds of brackets": (
        Search(batches=2, halving=Halving(rungs=THIRDS, brackets=2, block="all")),
        10,
        True,
    ),
    "rounds of brackets by tpe": (
        Search(sampling="tpe", batches=2, halving=Halving(rungs=THIRDS, brackets="all", block=1)),
        6,
        True,
    ),
    "a population": (Search(pbt={"population": 4, "generations": 3}), 4, True),
}


@pytest.mark.parametrize("kind", SEARCHES)
def test_levels_and_costs(kind, snapshot):
    search, candidates, drawn = SEARCHES[kind]
    planned = levels(search, candidates, SEEDS, 900, drawn=drawn)
    lines = [
        f"{level.name or '-'}: {level.kind}, {level.places} from {level.first}, seeds "
        f"{' '.join(level.seeds)}, to {level.budget}, block {level.block}, costs "
        f"{cost(planned, level)}, below: {' '.join(level.below) or '-'}"
        for level in planned
    ]
    share = share_of_whole(planned, candidates)
    lines.append(
        f"{samples_of(search)} samples, {count_candidates(planned)} candidates, costs "
        f"{search_cost(planned)}, {share:.3f} of whole runs to {whole_budget(planned)}"
    )
    assert "\n".join(lines) == snapshot


def test_candidates_are_drawn_by_default():
    halving = Search(samples=9, halving=Halving(rungs=THIRDS))
    assert levels(halving, 9, SEEDS, 900)[1].block == 3
    assert levels(halving, 9, SEEDS, 900, drawn=False)[1].block == 0


@pytest.mark.parametrize(
    ("search", "budget", "names"),
    [
        (
            Search(halving=Halving(seeds=[1, 2, 4])),
            900,
            ["[1, 2, 4]", "3 seeds", "::: seed 1 2 3 4"],
        ),
        (Search(halving=Halving()), 3, ["1/9, 1/3, 1", "1, 1, 3"]),
        (Search(pbt={"population": 4, "generations": 3}), 2, ["pbt.generations = 3", "is 2"]),
    ],
)
def test_what_does_not_suffice_is_refused(search, budget, names):
    with refused("search", *names):
        levels(search, 27, SEEDS, budget)
    assert levels(Search(pbt={"population": 4, "generations": 3}), 4, SEEDS, 3)[0].budget == 1


@given(
    first=st.integers(1, 12),
    more=st.integers(0, 12),
    eta=st.integers(2, 4),
    seed=st.integers(0, 99),
)
def test_more_full_blocks_keep_what_was_decided(first, more, eta, seed):
    each = eta * eta
    search = Search(halving=Halving(eta=eta, rungs=["1/2", 1]), samples=1)

    def score(setting: int, *_: object) -> float:
        return (setting * 2654435761 + seed) % 1000

    def chosen(blocks: int) -> list[int]:
        settings = blocks * each
        planned = levels(search, settings, ("",), 100)
        seen = walk(planned, [{}] * settings, score)
        assert len({candidate.setting for candidate in seen["rung-1"]}) == settings // eta
        return [candidate.setting for candidate in seen["rung-1"]]

    before = chosen(first)
    assert chosen(first + more)[: len(before)] == before


def seen(place: int, score: float | None) -> Seen:
    return Seen(place, 10 + place, {"a": place}, score, None, {"1": f"run{place}"})


def test_the_best_of_all_that_were_seen_are_promoted():
    first = promote([seen(0, 1.0), seen(1, -1e9), seen(2, None)], Decision([], []), 1)
    assert [(c.place, c.setting, c.parent, c.reason) for c in first.chosen] == [
        (0, 10, 0, "1st of 3"),
    ]  # fmt: skip
    second = promote([seen(3, -1.0), seen(4, 0.5), seen(5, 0.0)], first, 4)
    assert second.chosen[0] is first.chosen[0], "decisions stay"
    assert [(c.place, c.setting, c.parent, c.reason) for c in second.chosen[1:]] == [
        (1, 14, 4, "2nd of 6"), (2, 15, 5, "3rd of 6"), (3, 13, 3, "4th of 6"),
    ]  # fmt: skip
    assert [candidate.place for candidate in second.seen] == [0, 1, 2, 3, 4, 5]
    tied = promote([seen(6, 2.0), seen(7, 2.0)], Decision([], []), 1)
    assert tied.chosen[0].reason == "1st of 2, 2 of them with this score"
    third = promote([], second, 6)
    assert [candidate.setting for candidate in third.chosen[4:]] == [11, 12], "failed ones last"
    assert (third.chosen[5].values, third.chosen[5].runs) == ({"a": 2}, {"1": "run2"})
