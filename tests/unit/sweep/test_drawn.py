"""Drawn sources in a sweep: where they stand, when they have a value, what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdsweep.config.search import Search
from qdsweep.errors import BadInput
from qdsweep.search.draws import drawn_by
from qdsweep.sweep.drawn import SAMPLE, Drawn
from qdsweep.sweep.grammar import expand
from qdsweep.sweep.runs import table_of_runs

TWO = drawn_by(Search(samples=2))
SMALL = {"domain": "lp_sphere", "archive": {"dims": [20, 20]}, "evaluations": 600}


def test_drawn_sources_are_one_source_that_others_cross():
    table = expand("::: a x y :::~ b int 1 9 ::: c 5 6 :::~ d int 1 9", draw=TWO)
    assert table.names == ("a", SAMPLE, "b", "d", "c")
    assert len(table.rows) == 8
    one, other = table.rows[:4], table.rows[4:]
    assert [row[1:] for row in one] == [row[1:] for row in other], "both meet the same draws"
    assert [row[1] for row in one] == ["0", "0", "1", "1"]


def test_a_value_whose_condition_does_not_hold_is_empty():
    text = "::: a x y :::~ b choice p q if a=x :::~ c int 1 9 if a=x,b=p :::~ d int 1 9"
    for a, _, b, c, d in expand(text, draw=drawn_by(Search(samples=20))).rows:
        assert (b != "") == (a == "x")
        assert (c != "") == (b == "p")
        assert d != ""


def test_a_key_without_a_value_is_not_set_and_the_run_is_that_of_a_grid():
    text = "::: algorithm cma_me cma_mae :::~ learning_rate log 1e-4 1 if algorithm=cma_mae"
    sweep = table_of_runs({**SMALL, "algorithm": "cma_me"}, text, draw=TWO)
    assert len(sweep.rows) == 4
    assert len(sweep.runs) == 3, "both samples of cma_me are one run"
    assert sweep.duplicates == 1
    rate = sweep.rows[2].values["learning_rate"]
    grid = f"::: algorithm cma_mae :::+ learning_rate {rate}"
    assert [*table_of_runs(SMALL | {"algorithm": "cma_me"}, grid).runs] == [*sweep.runs][1:2]


def test_more_samples_keep_the_runs():
    text = ":::~ sigma0 log 0.05 5 ::: seed 1 2"
    draws = (drawn_by(Search(samples=samples, sampling="sobol")) for samples in (3, 5))
    few, more = (table_of_runs({**SMALL, "algorithm": "cma_me"}, text, draw=draw) for draw in draws)
    assert [*more.runs][:6] == [*few.runs]
    assert len(more.runs) == 10


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (":::~ a", "lacks a name, or how it is drawn"),
        (":::~ a gauss 0 1", "'gauss' is no way to draw 'a'"),
        (":::~ a uniform 1", "two numbers, and not '1'"),
        (":::~ a uniform 1 nan", "two numbers, and not '1 nan'"),
        (":::~ a uniform 1 1e999", "two numbers, and not '1 1e999'"),
        (":::~ a uniform 2 1", "its lower end 2 is not below its upper end 1"),
        (":::~ a log -1 1", "-1 has no logarithm"),
        (":::~ a log 1e-320 1e308", "too far apart"),
        (":::~ a uniform -1e308 1e308", "too far apart"),
        (":::~ a int 1 2.5", "two whole numbers"),
        (":::~ a int 1 99999999999999999999", r"larger than 2\^53"),
        (":::~ a normal 1 0", "standard deviation 0 is not above 0"),
        (":::~ a choice", "a value to choose is missing"),
        (":::~ a choice x ''", "a value to choose is empty"),
        (":::~ a choice x x", "'x' stands twice"),
        (":::~ a int 1 2 if b=1", "no condition on a source before this one"),
        (":::~ a int 1 2 if a=1", "no condition on a source before this one"),
        ("::: b 1 2 :::~ a int 1 2 if b", "no condition on a source before this one"),
        ("::: b 1 2 :::~ a int 1 2 if b=3", "'b=3' never holds"),
        ("::: b 1 2 :::~ a int 1 2 if b=1,b=2", "names 'b' twice"),
        (":::~ a int 1 2 :::+ b 1 2", "cannot link to a drawn source"),
        ("::: a 1 :::~ a int 1 2", "'a' is used twice"),
        ("::: sample 1 :::~ a int 1 2", "no source can have this name"),
        (":::~ sample int 1 2", "'sample' is used twice"),
        ("::~ a int 1 2", "'::~' is not an operator"),
        ("::: a 1", "the sweep has none"),
    ],
)
def test_what_is_refused(text, said):
    with pytest.raises(BadInput, match=said):
        expand(text, draw=TWO)


def test_without_a_number_of_samples_nothing_is_drawn():
    with pytest.raises(BadInput, match=r"write search: \{samples: N\}"):
        expand(":::~ a int 1 2")


@pytest.mark.parametrize(
    "source",
    [
        Drawn("a", "uniform", ("-3", "5")),
        Drawn("a", "log", ("1e-4", "1")),
        Drawn("a", "int", ("-2", "7")),
        Drawn("a", "logint", ("1", "256")),
        Drawn("a", "normal", ("10", "2")),
    ],
)
@given(u=st.floats(1e-3, 1 - 1e-3))
def test_a_quantile_is_where_its_value_lies(source, u):
    text = source.value(u)
    assert 0 <= source.quantile(text) <= 1
    assert source.value(source.quantile(text)) == text
    if "int" not in source.kind:
        assert source.quantile(text) == pytest.approx(u, abs=1e-5)
