"""The progress of each setting of a search, why it stopped, and the tables that show it."""

import csv
import re
from dataclasses import replace

import pytest
from in_process import qdsweep
from refusals import names_all
from searching import SEEDS, grid, halving, population, run_of, searched, write_search

from qdsweep.analysis.search_progress import (
    became,
    explained,
    leader,
    level_text,
    levels_so_far,
    read_search,
    search_line,
)
from qdsweep.analysis.sheet import as_markdown
from qdsweep.analysis.tables.search_table import level_sheet, place_table, setting_sheet
from qdsweep.analysis.tables.search_table import write_search as write_tables
from qdsweep.config.search import Search
from qdsweep.engines.failures import NoWorkers
from qdsweep.experiment.endings import write_ending
from qdsweep.experiment.stop import Interrupted
from qdsweep.records.leftovers import orphans
from qdsweep.records.paths import Results, RunDir, SweepDir
from qdsweep.records.plan import PlannedRun, read_plan
from qdsweep.records.progress import RAISED, Standing, read_standing
from qdsweep.records.status import write_status
from qdsweep.search.levels import levels, search_cost


def test_each_place_has_the_reason_why_its_setting_stopped():
    search = searched(halving(), grid())
    assert len(search.placed) == 27 + 9 + 3
    first = [place for place in search.placed if place.level.name == "rung-0"]
    assert sum(bool(place.why) for place in first) == 18
    assert sorted(place.rank for place in first) == list(range(1, 28))
    (failed,) = (place for place in first if place.failed)
    assert (failed.setting, failed.rank) == (26, 27), "it ranks last"
    assert failed.failed in failed.why
    assert [(place.rank, place.went_on) for place in search.finalists] == [
        (1, None), (2, None), (3, None),
    ]  # fmt: skip


def test_a_search_that_is_half_done_has_decided_nothing(snapshot):
    search = searched(halving(), grid(), markers=20)
    assert {place.level.name for place in search.placed} == {"rung-0"}
    assert sum(place.is_done for place in search.placed) == 20
    assert {(place.rank, place.went_on, place.why) for place in search.placed} == {(None, None, "")}
    run = PlannedRun("a", "a", "evaluations", 3_000)
    standings = [Standing(run, "finished", 3_000, core_seconds=36.0)] * 20
    lines = [became(search.placed[0]), became(search.placed[26]), search_line(search, standings)]
    (level,) = levels_so_far(search)
    assert [*lines, *level[:2]] == snapshot


def test_a_setting_is_shown_where_it_got_furthest():
    search = searched(halving(), grid())
    assert sorted(place.setting for place in search.last) == list(range(27))
    budgets = [place.level.budget for place in search.last]
    assert budgets == [27_000] * 3 + [9_000] * 6 + [3_000] * 18
    assert search.last[-1].failed is not None
    steps = [after.level.budget / before.level.budget for before, after in search.pairs]
    assert steps == [3.0] * 12
    assert search.label(search.last[0]).startswith("sigma0 0.5, batch_size ")


def test_brackets_are_named_apart():
    keys = Search(halving={"brackets": "all", "seeds": [1, 1, 2]})
    search = searched(list(levels(keys, 17, SEEDS, 27_000)), grid()[:17])
    stopped = {place.level.name: place.why for place in search.placed if place.why}
    assert set(stopped) == {"bracket-2-rung-0", "bracket-2-rung-1", "bracket-1-rung-0"}
    assert all(why.startswith(level_text(name)) for name, why in stopped.items())
    assert len({level_text(name) for name in stopped}) == 3
    assert len(search.finalists) == 5


def test_a_population_takes_over_and_continues():
    search = searched(population(), [{"sigma0": 0.1 * n, "batch_size": 12} for n in range(1, 10)])
    assert search.is_pbt
    first, second = (
        [place for place in search.placed if place.level.name == f"generation-{number}"]
        for number in (0, 1)
    )
    assert sum(place.parent != place.place for place in second) == 2
    assert sum(bool(place.why) for place in first) == 2, "those whose place was taken over"
    assert search_cost(search.levels) == 81_000, "a child starts at its donor's state"
    assert leader(search, search.levels[-1]) == search.finalists[0]


def test_status_says_why_each_run_stopped_and_who_leads(tmp_path, snapshot):
    """A search that is read from its files."""
    settings = grid()[18:]
    sweep = SweepDir(write_search(tmp_path / "results", halving(9), settings))
    assert read_search(sweep, read_plan(sweep)).placed == searched(halving(9), settings).placed
    status = qdsweep("status", "tuned", cwd=tmp_path)
    assert status == snapshot
    assert max(map(len, status.splitlines())) <= 120


def test_a_run_that_continues_has_not_stopped():
    run = PlannedRun("a", "a", "evaluations", 9_000)
    assert explained(Standing(run, "extended", 3_000, note=RAISED), "rung 1").state == "waiting"
    failed = Standing(run, "failed", 3_000, note="ValueError")
    assert explained(failed, "rung 1") == failed


@pytest.mark.parametrize("before", [{}, {"status": "finished", "iteration": 3}])
def test_an_attempt_that_failed_at_once_is_not_waiting(tmp_path, before):
    """For example a run whose workers never came, or one with a raised budget at Ctrl-C."""
    folder = RunDir(tmp_path / "a")
    folder.state.path.mkdir(parents=True)
    run = PlannedRun("a", "a", "iterations", 9)
    if before:
        write_status(folder.state, {"id": "a", **before})
    at_once = {Interrupted("SIGINT"): bool(before), NoWorkers("no worker came"): True}
    for error, has_stopped in at_once.items():
        write_ending(folder.state, error, "")
        now = explained(read_standing(folder, run), "rung 1")
        assert now.state == ("stopped" if has_stopped else "waiting")
        assert (str(error) in now.note) == has_stopped


def test_the_note_of_a_failed_run_is_its_cause(tmp_path):
    folder = RunDir(tmp_path / "a")
    folder.state.path.mkdir(parents=True)
    write_status(folder.state, {"id": "a", "status": "failed"})
    folder.state.log.write_text("2026-11-26 15:03:32 ERROR   details of the failure: file\n")
    try:
        raise ValueError("too far.")
    except ValueError as error:
        write_ending(folder.state, error, "")
    now = read_standing(folder, PlannedRun("a", "a", "iterations", 9))
    assert (now.state, now.cause) == ("failed", "ValueError: too far.")
    names_all(now.note, __file__, 'ValueError("too far.")')
    assert "details" not in now.note
    folder.state.last_stop.unlink()
    names_all(read_standing(folder, now.run).note, "details")


def test_no_run_of_a_search_is_an_orphan(tmp_path):
    write_search(tmp_path / "results", halving(), grid())
    (tmp_path / "results/runs/nobodys").mkdir()
    assert [path.name for path in orphans(Results(tmp_path / "results"))] == ["nobodys"]
    assert (tmp_path / "results/runs" / run_of(0, "1")).exists()


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
    assert not any(cell.bold for row in sheet.rows for cell in row), "of two seeds"
    shown = replace(sheet, rows=[*sheet.rows[:4], *sheet.rows[-2:]])
    assert as_markdown(shown) == snapshot
    assert "Equal scores" not in sheet.note
    equal = setting_sheet(searched(halving(), grid(), lambda values, seed, budget: 1.0))
    assert "Equal scores" in equal.note


def test_levels_have_their_leaders_and_what_they_cost(snapshot):
    assert as_markdown(level_sheet(searched(halving(), grid()))) == snapshot


def test_a_swept_name_that_is_taken_has_a_column_of_its_own():
    settings = [{**values, "rank": n} for n, values in enumerate(grid())]
    table = place_table(searched(halving(), settings))
    assert list(table["swept_rank"][:3]) == ["0", "1", "2"]
