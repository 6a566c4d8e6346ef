"""search.csv and the tables of a search."""

import pandas as pd
from searching import grid, halving, searched, write_search

from qdsweep.analysis.tables.search import level_sheet, place_table, setting_sheet
from qdsweep.analysis.tables.search import write_search as write_tables


def test_a_row_for_each_place_with_every_decision(tmp_path):
    sweep = write_search(tmp_path / "results", halving(), grid())
    write_tables(sweep, tmp_path / "results/runs")
    table = pd.read_csv(sweep / "search.csv", keep_default_na=False, dtype=str)
    assert len(table) == 27 + 9 + 3
    best = table[table["budget"] == "27000"].iloc[0]
    assert (best["level"], best["rung"], best["seeds"], best["rank"]) == ("rung-2", "2", "1 2", "1")
    assert best["reason"] == "1st of 9" and best["parent"] != ""
    assert len(best["runs"].split()) == 2
    stopped = table[(table["level"] == "rung-0") & (table["went_on"] == "False")]
    assert len(stopped) == 18
    assert sum(stopped["why_stopped"].str.endswith("went on")) == 17
    assert list(table.columns[:9]) == [
        *("level", "batch", "bracket", "rung", "generation", "place", "setting"),
        *("sigma0", "batch_size"),
    ]
    assert "seconds" not in " ".join(table.columns)
    for name in ("search_settings", "search_levels"):
        assert (sweep / f"tables/{name}.tex").exists()


def test_tables_are_the_same_bytes_again(tmp_path):
    found = []
    for part in ("a", "b"):
        sweep = write_search(tmp_path / part, halving(), grid())
        write_tables(sweep, tmp_path / part / "runs")
        found.append((sweep / "search.csv").read_bytes())
    assert found[0] == found[1]


def test_the_page_has_a_row_for_each_setting():
    sheet = setting_sheet(searched(halving(), grid()))
    assert len(sheet.rows) == 27
    texts = [[cell.text for cell in row] for row in sheet.rows]
    assert texts[0][3:5] == ["rung 2", "1st of 3, the whole budget"]
    assert texts[-1][4] == "failed: ValueError: the ranker broke"
    assert [row[-1].bold for row in sheet.rows] == [True] + [False] * 26


def test_levels_have_their_leaders_and_what_they_cost():
    sheet = level_sheet(searched(halving(), grid()))
    texts = [[cell.text for cell in row] for row in sheet.rows]
    assert [row[2:7] for row in texts] == [
        ["27", "1", "3,000", "81,000", "1"],
        ["9", "1", "9,000", "54,000", "0"],
        ["3", "1, 2", "27,000", "135,000", "0"],
    ]


def test_a_swept_name_that_is_taken_has_a_column_of_its_own():
    settings = [{**values, "rank": n} for n, values in enumerate(grid())]
    table = place_table(searched(halving(), settings))
    assert list(table["swept_rank"][:3]) == ["0", "1", "2"]
