"""Drawn sources in a sweep: their positions, and when they have a value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdsweep.config.search import Search
from qdsweep.search.draws import drawn_by
from qdsweep.sweep.drawn import SAMPLE, DrawnSource
from qdsweep.sweep.grammar import expand
from qdsweep.sweep.runs import table_of_runs

TWO = drawn_by(Search(samples=2))
SMALL = {"domain": "lp_sphere", "archive": {"dims": [20, 20]}, "evaluations": 600}


def test_drawn_sources_are_one_source_that_others_cross():
    table = expand("::: a x y :::~ b int 1 9 ::: c 5 6 :::~ d int 1 9", draw=TWO)
    assert table.names == ("a", SAMPLE, "b", "d", "c")
    assert len(table.rows) == 8
    x, y = table.rows[:4], table.rows[4:]
    assert [row[1:] for row in x] == [row[1:] for row in y], "both have the same draws"
    assert [row[1] for row in x] == ["0", "0", "1", "1"]


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
    "source",
    [
        DrawnSource("a", "uniform", ("-3", "5")),
        DrawnSource("a", "log", ("1e-4", "1")),
        DrawnSource("a", "int", ("-2", "7")),
        DrawnSource("a", "logint", ("1", "256")),
        DrawnSource("a", "normal", ("10", "2")),
    ],
)
@given(u=st.floats(1e-3, 1 - 1e-3))
def test_a_quantile_is_where_its_value_lies(source, u):
    text = source.value(u)
    assert 0 <= source.quantile(text) <= 1
    assert source.value(source.quantile(text)) == text
    if "int" not in source.kind:
        assert source.quantile(text) == pytest.approx(u, abs=1e-5)
