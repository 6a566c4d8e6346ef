"""The table and the figure of importances, of a search and of a sweep whose runs are all whole."""

import csv

from refusals import names_all
from searching import grid, halving, write_search

from qdsweep.analysis.data import SweepData
from qdsweep.analysis.figures.bars import importance_figure
from qdsweep.analysis.figures.figure import Drawn, Omitted
from qdsweep.analysis.sheet import Sheet, read_sheet, remove_sheet
from qdsweep.analysis.tables.importance import write_importance
from qdsweep.records.paths import SweepDir
from qdsweep.records.plan import read_plan

GRID = "::: sigma0 0.05 0.5 5 ::: batch_size 12 36 108 ::: ranker imp 2imp 2rd"


def importance_of(sweep: SweepDir) -> tuple[Sheet, list[dict], Drawn | Omitted]:
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
    assert rows[0]["name"] == "batch_size", "small batches lead early"
    assert sheet.rows[0][2].bold
    assert sheet.note == snapshot
    (heading,) = {row["of"] for row in rows}
    names_all(heading, "3,000")
    assert isinstance(figure, Drawn)
    assert figure.caption == sheet.plain_note != sheet.note
    (legend,) = figure.figure.legends
    assert len(legend.get_texts()) == 3


def test_of_whole_runs_it_is_of_their_groups(main, snapshot):
    sheet, rows, figure = importance_of(SweepDir(main))
    assert rows == [] and sheet.rows == []
    assert sheet.note == snapshot
    assert isinstance(figure, Omitted) and figure.why == sheet.note.rstrip(".")
    assert (main / "tables/importance.tex").exists()
    remove_sheet(main / "tables", "importance")
