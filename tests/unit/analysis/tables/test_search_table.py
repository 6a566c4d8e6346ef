"""search.csv and the tables of a search."""

import csv
import re
from dataclasses import replace

from searching import grid, halving, searched, write_search

from qdsweep.analysis.sheet import as_markdown
from qdsweep.analysis.tables.search import level_sheet, place_table, setting_sheet
from qdsweep.analysis.tables.search import write_search as write_tables


def test_a_row_for_each_place_with_every_decision(tmp_path, snapshot):
    sweep = write_search(tmp_path / "results", halving(), grid())
    write_tables(sweep, tmp_path / "results/runs")
    lines = (sweep / "search.csv").read_text().splitlines()
    table = [*csv.DictReader(lines)]
    assert len(table) == 27 + 9 + 3
    went_on = {("rung-0", "True"): 9, ("rung-0", "False"): 18}
    for (level, decision), count in went_on.items():
        rows = [row for row in table if (row["level"], row["went_on"]) == (level, decision)]
        assert len(rows) == count
        assert {bool(row["why_stopped"]) for row in rows} == {decision == "False"}
    assert "seconds" not in lines[0]
    shown = "\n".join(lines[row] for row in (0, 1, 27, 28, 39))
    assert re.sub(r"(\.\d\d)\d+", r"\1", shown) == snapshot
    for name in ("search_settings", "search_levels"):
        assert (sweep / f"tables/{name}.tex").exists()


def test_the_page_has_a_row_for_each_setting(snapshot):
    sheet = setting_sheet(searched(halving(), grid()))
    assert len(sheet.rows) == 27
    assert [row[-1].bold for row in sheet.rows] == [True] + [False] * 26
    shown = replace(sheet, rows=[*sheet.rows[:4], *sheet.rows[-2:]])
    assert as_markdown(shown) == snapshot


def test_levels_have_their_leaders_and_what_they_cost(snapshot):
    assert as_markdown(level_sheet(searched(halving(), grid()))) == snapshot


def test_a_swept_name_that_is_taken_has_a_column_of_its_own():
    settings = [{**values, "rank": n} for n, values in enumerate(grid())]
    table = place_table(searched(halving(), settings))
    assert list(table["swept_rank"][:3]) == ["0", "1", "2"]
