"""The table and the figure of importances, of a search and of a sweep whose runs are all whole."""

import csv
import json

import pytest
from searching import computed, grid, halving

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.bars import importance_figure
from qdsweep.analysis.figures.figure import Drawn, Omitted
from qdsweep.analysis.sheet import Sheet, read_sheet, remove_sheet
from qdsweep.analysis.tables.importance import write_importance
from qdsweep.records.paths import Results, SweepDir
from qdsweep.records.plan import read_plan
from qdsweep.records.search import marker_path, write_decision, write_sealed

GRID = "::: sigma0 0.05 0.5 5 ::: batch_size 12 36 108 ::: ranker imp 2imp 2rd"


@pytest.fixture
def searched(tmp_path) -> SweepDir:
    """Halving over a grid, of whose settings the last one fails."""
    sweep = Results(tmp_path).sweep("mine")
    levels = halving()
    known, markers, decisions = computed(levels, grid())
    for marker in markers:
        path = marker_path(sweep, marker["level"], marker["place"], marker["seed"])
        write_sealed(path, marker)
    for level in levels:
        if level.name in decisions:
            write_decision(sweep, level, level.blocks - 1, decisions[level.name])
    plan = {
        "name": "mine",
        "sweep": GRID,
        "columns": ["sigma0", "batch_size", "ranker", "seed"],
        "rows": [],
        "unit": "evaluations",
        "levels": [level._asdict() for level in levels],
        "candidates": known,
        "search": {"halving": {"seeds": [1, 1, 2]}},
    }
    sweep.plan.write_text(json.dumps(plan))
    return sweep


def made(sweep: SweepDir) -> tuple[Sheet, list[dict], list[Drawn | Omitted]]:
    write_importance(sweep.path, sweep.results.runs)
    rows = [*csv.DictReader((sweep.tables / "importance.csv").read_text().splitlines())]
    data = object.__new__(SweepData)
    vars(data).update(sweep=sweep, plan=read_plan(sweep))  # the figure needs nothing else
    figures = importance_figure(data)
    return read_sheet(sweep.tables / "importance.json"), rows, figures


def test_of_a_halving_it_is_of_the_first_rung_and_says_why_not_of_the_last(searched):
    sheet, rows, (figure,) = made(searched)
    assert {row["of"] for row in rows} == {"after 3,000 evaluations"}
    assert {row["settings"] for row in rows} == {"27"}
    assert {row["name"] for row in rows} == {"sigma0", "batch_size", "ranker"}
    assert rows[0]["name"] == "batch_size", "small batches lead early"
    assert "after 27,000 evaluations: 3 settings are too few (20 are needed)." in sheet.note
    assert "after 3,000 evaluations: the 1 that failed count as the worst." in sheet.note
    assert sheet.rows[0][2].bold
    assert "Bold" in sheet.note
    assert isinstance(figure, Drawn) and "Bold" not in figure.caption
    assert [text.get_text() for text in figure.figure.legends[0].get_texts()] == [
        "PED-ANOVA", "fANOVA", "by chance",
    ]  # fmt: skip


def test_of_whole_runs_it_is_of_their_groups(main):
    sheet, rows, (figure,) = made(SweepDir(main))
    assert rows == [] and sheet.rows == []
    why = "at the end: fewer than two values vary, so that nothing is to be compared"
    assert sheet.note == f"{why}."
    assert isinstance(figure, Omitted) and figure.why == why
    assert (main / "tables/importance.tex").exists()
    remove_sheet(main / "tables", "importance")
