"""`qdsweep status` and `clean` of a search."""

from in_process import qdsweep
from searching import grid, halving, run_of, searched, write_search

from qdsweep.analysis.search import became, explained, levels_so_far, search_line
from qdsweep.cli.sweeps import orphans
from qdsweep.records.paths import Results
from qdsweep.records.plan import PlannedRun
from qdsweep.records.progress import RAISED, Standing


def test_status_says_why_each_run_stopped_and_who_leads(tmp_path):
    write_search(tmp_path / "results", halving(), grid())
    said = qdsweep("status", "tuned", cwd=tmp_path).splitlines()
    assert sum(line.endswith(" of 27, 9 went on") for line in said) == 17
    assert sum("rung 2: 1st of 3" in line for line in said) == 2, "a line a seed"
    assert any(line.startswith("rung 1  9 of 9 settings    leader: sigma0 0.5") for line in said)
    assert "search: 42 of 42 places done" in said
    assert max(map(len, said)) <= 120


def test_a_search_that_is_half_done():
    search = searched(halving(), grid(), markers=20)
    assert [row[:2] for row in levels_so_far(search)] == [("rung 0", "20 of 27 settings")]
    assert became(search.placed[0]) == "rung 0: waits for the others"
    assert became(search.placed[26]) == "rung 0"
    run = PlannedRun("a", "a", "evaluations", 3_000)
    line = search_line(search, [Standing(run, "finished", 3_000, core_seconds=36.0)] * 20)
    assert line == (
        "search: 20 of 42 places done, 2 levels to come; about 210,000 evaluations left, "
        "0.700 core-hours"
    )


def test_a_run_that_is_to_go_on_has_not_stopped():
    run = PlannedRun("a", "a", "evaluations", 9_000)
    now = explained(Standing(run, "stopped", 3_000, note=RAISED), "rung 1")
    assert (now.state, now.note) == ("waiting", "rung 1: goes on")
    failed = Standing(run, "failed", 3_000, note="it broke")
    assert explained(failed, "rung 1").note == "it broke"


def test_no_run_of_a_search_is_an_orphan(tmp_path):
    write_search(tmp_path / "results", halving(), grid())
    (tmp_path / "results/runs/nobodys").mkdir()
    found = [path.name for path in orphans(Results(tmp_path / "results"))]
    assert found == ["nobodys"]
    assert (tmp_path / "results/runs" / run_of(0, "1")).exists()
