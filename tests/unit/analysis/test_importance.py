"""Which swept value matters: values with an effect are told from those without one."""

import math
import sys

import pytest
from refusals import names_all

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


def observations(settings: int) -> list[Observation]:
    """sigma0 alone has an effect; one setting fails."""
    rows = [random_row(SOURCES, 0, number) for number in range(settings)]
    scores = [-abs(math.log(float(row[0]))) if i else None for i, row in enumerate(rows)]
    return list(map(Observation, rows, scores))


def test_what_has_an_effect_is_above_chance_and_the_rest_is_not():
    settings = observations(40)
    shares = importances(SOURCES, settings)
    assert repr(importances(SOURCES, settings)) == repr(shares)
    effect, *others = shares
    assert effect.name == "sigma0"
    assert {share.name for share in others} == {"batch_size", "kind", "rate"}
    assert sum(share.ped_anova for share in shares) == pytest.approx(1)
    assert effect.ped_anova > effect.ped_anova_chance
    assert effect.fanova > max(effect.fanova_chance, 0.6)
    for share in others:
        assert share.ped_anova <= share.ped_anova_chance
        assert math.isnan(share.fanova) == (share.name == "rate"), "not every setting has it"


def test_why_nothing_can_be_said(monkeypatch, snapshot):
    few, enough = observations(FEWEST - 1), observations(FEWEST)
    equal = [setting._replace(score=None) for setting in enough]
    one_name = [Observation(setting.row[:1], setting.score) for setting in enough]
    reasons = [lacking(SOURCES, few), lacking(SOURCES, equal), lacking(SOURCES[:1], one_name)]
    assert reasons == snapshot
    assert lacking(SOURCES, enough) == ""
    monkeypatch.setitem(sys.modules, "optuna", None)
    names_all(lacking(SOURCES, enough), "optuna", "make extras")


def test_values_that_are_not_drawn_are_choices():
    rows = [{"sample": i, "a": i, "sigma0": 0.5 + i, "seed": 1} for i in range(2)]
    sources = swept_sources("::: a 0 1 :::~ sigma0 log 0.05 5 ::: seed 1 2", rows)
    assert sources == [Drawn("a", "choice", ("0", "1")), SOURCES[0]]
