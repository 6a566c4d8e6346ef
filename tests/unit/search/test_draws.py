"""The values of a drawn sweep: golden values, on which users' results depend."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdsweep.config.search import Search
from qdsweep.search.draws import drawn_by
from qdsweep.sweep.drawn import DrawnSource
from qdsweep.sweep.grammar import expand

TEXT = (
    ":::~ sigma0 log 0.05 5 :::~ batch logint 12 108 :::~ rate uniform 0 1 "
    ":::~ mean normal 10 2 :::~ k int 1 3 :::~ kind choice imp 2imp rd"
)
GOLDEN = {
    "random": ["0 2.4018 17 0.953446 8.40003 2 2imp", "1 0.0599814 69 0.831989 10.7597 1 rd"],
    "sobol": ["0 0.33027 100 0.857655 10.8455 1 2imp", "1 3.43612 16 0.26587 9.57559 3 2imp"],
    "halton": ["0 1.29843 33 0.470644 12.6565 3 rd", "1 0.129843 70 0.670644 10.6227 1 imp"],
    "lhs": ["0 0.570207 76 0.138829 13.0633 1 rd", "1 0.438826 14 0.865652 8.01418 2 2imp"],
}


def rows(samples: int, sampling: str, text: str = TEXT, seed: int = 0) -> list[tuple[str, ...]]:
    return expand(text, draw=drawn_by(Search(samples=samples, sampling=sampling, seed=seed))).rows


@pytest.mark.parametrize("sampling", GOLDEN)
def test_golden_draws(sampling):
    assert [" ".join(row) for row in rows(2, sampling)] == GOLDEN[sampling]
    assert rows(2, sampling, seed=1) != rows(2, sampling)


@pytest.mark.parametrize("sampling", ["random", "sobol", "halton"])
@pytest.mark.parametrize("more", [28, 36, 64])
def test_more_samples_keep_the_first_ones(sampling, more):
    assert rows(more, sampling)[:27] == rows(27, sampling)


def test_a_further_name_does_not_change_the_values_of_others():
    for sampling in ("random", "halton"):
        few = rows(9, sampling, ":::~ a uniform 0 1")
        many = rows(9, sampling, ":::~ a uniform 0 1 :::~ b uniform 0 1")
        assert [row[:2] for row in many] == few


@pytest.mark.parametrize("sampling", GOLDEN)
def test_samples_fill_the_range(sampling):
    values = [float(row[1]) for row in rows(256, sampling, ":::~ a log 0.01 100")]
    assert all(0.01 <= value <= 100 for value in values)
    for low in (0.01, 0.1, 1.0, 10.0):  # a quarter of them in each decade
        assert 40 <= sum(low <= value < 10 * low for value in values) <= 90


@given(
    st.sampled_from(["uniform", "log", "int", "logint"]),
    st.integers(1, 10**6),
    st.integers(1, 10**6),
    st.floats(0, 1),
)
def test_a_value_is_inside_of_its_range(kind, low, width, u):
    source = DrawnSource("a", kind, (str(low), str(low + width)))
    value = source.value(u)
    assert low <= float(value) <= low + width
    assert value.isdigit() == kind.endswith("int")


def test_every_whole_number_is_drawn_as_often():
    counts = [0] * 4
    for number in range(4000):
        counts[int(DrawnSource("k", "int", ("0", "3")).value((number + 0.5) / 4000))] += 1
    assert counts == [1000] * 4


def test_a_drawn_number_has_six_digits():
    assert DrawnSource("a", "uniform", ("0", "1")).value(1 / 3) == "0.333333"
    assert DrawnSource("a", "log", ("1e-9", "1")).value(0.5) == "3.16228e-05"
    at_its_bound = DrawnSource("a", "uniform", ("0", "0.12345678")).value(1.0)
    assert at_its_bound == "0.12345678"


@pytest.mark.parametrize("sampling", ["random", "sobol", "halton"])
def test_brackets_draw_different_settings(sampling):
    """Also if only a value whose condition does not hold differs."""
    text = ":::~ a choice 1 2 3 :::~ b choice x y :::~ c choice 4 5 6 7 if b=y"
    brackets = {"rungs": ["1/3", 1], "brackets": "all"}
    first, both = (
        expand(text, draw=drawn_by(Search(sampling=sampling, batches=n, halving=brackets))).rows
        for n in (1, 2)
    )
    assert len({row[1:] for row in both}) == len(both) == 10
    assert first == both[:5]
