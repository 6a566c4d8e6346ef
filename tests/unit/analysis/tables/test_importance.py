"""The importance of swept parameters in settings, in a search and in a plain sweep."""

import csv
import math
import sys

import pytest
from refusals import names_all
from searching import grid, halving, write_search

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures import figure as figures
from qdsweep.analysis.figures.bars import importance_figure
from qdsweep.analysis.sheet import Sheet, read_sheet, remove_sheet
from qdsweep.analysis.tables.importance import (
    FEWEST,
    importances,
    why_no_importance,
    write_importance,
)
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import read_plan
from qdsweep.search.draws import random_row
from qdsweep.search.tpe import Observation, swept_sources
from qdsweep.sweep.drawn import DrawnSource

SOURCES = [
    DrawnSource("sigma0", "log", ("0.05", "5")),
    DrawnSource("batch_size", "logint", ("12", "108")),
    DrawnSource("kind", "choice", ("a", "b")),
    DrawnSource("rate", "uniform", ("0", "1"), (("kind", "b"),)),
    DrawnSource("alone", "choice", ("x",)),
]


def observations(settings: int) -> list[Observation]:
    """Only sigma0 has an effect, and one setting fails."""
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
    reasons = [
        why_no_importance(SOURCES, few),
        why_no_importance(SOURCES, equal),
        why_no_importance(SOURCES[:1], one_name),
    ]
    assert reasons == snapshot
    assert why_no_importance(SOURCES, enough) == ""
    monkeypatch.setitem(sys.modules, "optuna", None)
    names_all(why_no_importance(SOURCES, enough), "optuna", "make extras")


def test_values_that_are_not_drawn_are_choices():
    rows = [{"sample": i, "a": i, "sigma0": 0.5 + i, "seed": 1} for i in range(2)]
    sources = swept_sources("::: a 0 1 :::~ sigma0 log 0.05 5 ::: seed 1 2", rows)
    assert sources == [DrawnSource("a", "choice", ("0", "1")), SOURCES[0]]


GRID = "::: sigma0 0.05 0.5 5 ::: batch_size 12 36 108 ::: ranker imp 2imp 2rd"


def importance_of(sweep: SweepDir) -> tuple[Sheet, list[dict], figures.Drawn | figures.Omitted]:
    """The table for readers, the data and the figure."""
    write_importance(sweep.path, sweep.results.runs)
    rows = [*csv.DictReader((sweep.tables / "importance.csv").read_text().splitlines())]
    data = object.__new__(SweepData)
    vars(data).update(sweep=sweep, plan=read_plan(sweep))  # the figure needs nothing else
    (figure,) = importance_figure(data)
    return read_sheet(sweep.tables / "importance.json"), rows, figure


def test_of_a_halving_it_is_of_the_first_rung_and_says_why_not_of_the_last(tmp_path, snapshot):
    """The last setting of the grid fails."""
    sweep = SweepDir(write_search(tmp_path / "results", halving(), grid(), sweep=GRID))
    sheet, rows, figure = importance_of(sweep)
    assert {row["settings"] for row in rows} == {"27"}
    assert {row["name"] for row in rows} == {"sigma0", "batch_size", "ranker"}
    assert rows[0]["name"] == "batch_size", "small batches are the best early"
    assert sheet.rows[0][2].bold
    assert sheet.note == snapshot
    (heading,) = {row["of"] for row in rows}
    names_all(heading, "3,000")
    assert isinstance(figure, figures.Drawn)
    (legend,) = figure.figure.legends
    assert len(legend.get_texts()) == 3


def test_of_whole_runs_it_is_of_their_groups(main, snapshot):
    sheet, rows, figure = importance_of(SweepDir(main))
    assert rows == [] and sheet.rows == []
    assert sheet.note == snapshot
    assert isinstance(figure, figures.Omitted) and figure.why == sheet.note.rstrip(".")
    assert (main / "tables/importance.tex").exists()
    remove_sheet(main / "tables", "importance")
