"""Which swept value matters: values with an effect are told from those without one."""

import math
import sys

import pytest

from qdsweep.analysis.tables.importance import FEWEST, importances, lacking
from qdsweep.search.draws import random_row
from qdsweep.search.tpe import Observation, swept_sources
from qdsweep.sweep.drawn import Drawn

SOURCES = [
    Drawn("sigma0", "log", ("0.05", "5")),
    Drawn("batch_size", "logint", ("12", "108")),
    Drawn("kind", "choice", ("a", "b")),
    Drawn("rate", "uniform", ("0", "1"), (("kind", "b"),)),
    Drawn("alone", "choice", ("x",)),
]


def told(settings: int) -> list[Observation]:
    """sigma0 alone has an effect; one setting fails."""
    rows = [random_row(SOURCES, 0, number) for number in range(settings)]
    scores = [-abs(math.log(float(row[0]))) if i else None for i, row in enumerate(rows)]
    return list(map(Observation, rows, scores))


def test_what_has_an_effect_is_above_chance_and_the_rest_is_not():
    settings = told(40)
    every = importances(SOURCES, settings)
    assert repr(importances(SOURCES, settings)) == repr(every)
    found = {one.name: one for one in every}
    assert next(iter(found)) == "sigma0"
    assert set(found) == {"sigma0", "batch_size", "kind", "rate"}
    assert sum(one.ped_anova for one in found.values()) == pytest.approx(1)
    effect = found.pop("sigma0")
    assert effect.ped_anova > effect.ped_anova_chance
    assert effect.fanova > effect.fanova_chance
    assert effect.fanova > 0.6
    assert not any(one.ped_anova > one.ped_anova_chance for one in found.values())
    assert math.isnan(found["rate"].fanova), "not every setting has it"


def test_why_nothing_can_be_said(monkeypatch):
    few, enough = told(FEWEST - 1), told(FEWEST)
    assert lacking(SOURCES, few) == "19 settings are too few (20 are needed)"
    assert lacking(SOURCES, [one._replace(score=None) for one in enough]) == (
        "no two settings have different scores"
    )
    one = [Observation(each.row[:1], each.score) for each in enough]
    assert "fewer than two values vary" in lacking(SOURCES[:1], one)
    assert lacking(SOURCES, enough) == ""
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "make extras" in lacking(SOURCES, enough)


def test_values_that_are_not_drawn_are_choices():
    rows = [{"sample": i, "a": i, "sigma0": 0.5 + i, "seed": 1} for i in range(2)]
    found = swept_sources("::: a 0 1 :::~ sigma0 log 0.05 5 ::: seed 1 2", rows)
    assert found == [Drawn("a", "choice", ("0", "1")), SOURCES[0]]
