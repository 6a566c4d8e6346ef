"""The levels of searches, as pure functions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from walk import cost, walk

from qdsweep.config.search import Halving, Search
from qdsweep.errors import BadInput
from qdsweep.records.search import Level
from qdsweep.search.levels import levels, samples_of

SEEDS = ("1", "2", "3")


def shape(found: tuple[Level, ...]) -> list[tuple[str, int, int, int]]:
    return [(one.name, one.places, len(one.seeds), one.budget) for one in found]


def test_halving_of_a_grid_with_growing_seeds():
    found = levels(Search(halving=Halving()), 27, SEEDS, 27_000, drawn=False)
    assert shape(found) == [
        ("rung-0", 27, 1, 3_000), ("rung-1", 9, 2, 9_000), ("rung-2", 3, 3, 27_000),
    ]  # fmt: skip
    assert [one.blocks for one in found] == [0, 1, 1]


def test_rungs_that_are_no_powers():
    halving = Halving(rungs=["1/3", "2/3", 1], seeds=[1, 2, 3])
    found = levels(Search(halving=halving), 27, SEEDS, 900, drawn=False)
    assert [one.budget for one in found] == [300, 600, 900]
    chosen = walk(found, [{}] * 27, lambda setting, *_: -setting)
    assert cost(found, chosen) == pytest.approx(27 * 900 * 0.85, rel=0.01)


def test_batches_of_tpe_each_with_rungs():
    search = Search(samples=18, sampling="tpe", batches=2, halving=Halving(rungs=["1/3", 1]))
    found = levels(search, 9, SEEDS, 90)
    assert [(one.name, one.kind, one.first) for one in found] == [
        ("batch-0-rung-0", "known", 0), ("batch-0-rung-1", "promoted", 0),
        ("batch-1-rung-0", "asked", 9), ("batch-1-rung-1", "promoted", 0),
    ]  # fmt: skip
    assert found[2].below == ("batch-0-rung-0", "batch-0-rung-1")
    assert samples_of(search) == 9


def test_rounds_of_brackets_number_their_settings():
    search = Search(batches=2, halving=Halving(brackets="all"))
    known = [one for one in levels(search, 34, ("",), 900) if one.kind == "known"]
    assert [(one.places, one.first) for one in known] == [
        (9, 0), (5, 9), (3, 14), (9, 17), (5, 26), (3, 31),
    ]  # fmt: skip
    assert samples_of(search) == 34


@pytest.mark.parametrize(
    ("halving", "budget", "said"),
    [
        (Halving(seeds=[1, 2, 4]), 900, "write them into it, such as ::: seed 1 2 3 4"),
        (Halving(), 3, "a larger budget, or fewer rungs"),
    ],
)
def test_what_does_not_suffice_is_refused(halving, budget, said):
    with pytest.raises(BadInput, match=said):
        levels(Search(halving=halving), 27, SEEDS, budget)


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
        found = levels(search, settings, ("",), 100)
        seen = walk(found, [{}] * settings, score)
        assert len({one.setting for one in seen["rung-1"]}) == settings // eta
        return [one.setting for one in seen["rung-1"]]

    before = chosen(first)
    assert chosen(first + more)[: len(before)] == before


def test_a_setting_that_fails_ranks_last():
    found = levels(Search(halving=Halving(rungs=["1/3", 1])), 6, ("",), 90, drawn=False)
    seen = walk(found, [{}] * 6, lambda setting, *_: None if setting < 5 else -1e9)
    assert [one.setting for one in seen["rung-1"]] == [5, 0]
    assert seen["rung-1"][1].score is None
