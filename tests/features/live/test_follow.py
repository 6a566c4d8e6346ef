"""Reads samples and the end of long live files, and nothing of unchanged files."""

import json
from pathlib import Path

import psutil
import pytest
from searching import grid, halving, write_search

from qdsweep.features.live.follow import MAX_POINTS, Follow, LiveCurve, curve_plot, sparkline
from qdsweep.metrics import EXPLORING_RETURN, RETURNS
from qdsweep.records.metrics_file import COLUMNS


def metrics_row(iteration: int) -> str:
    values = {
        "iteration": iteration,
        "evaluations": 10 * iteration,
        "norm_qd_score": iteration**0.5,
    }
    return ",".join(str(values.get(name, 0.123456789012345)) for name in COLUMNS) + "\n"


def read_by(action) -> int:
    """Returns the number of bytes that an action reads."""
    process = psutil.Process()
    before = process.io_counters().read_chars
    action()
    return process.io_counters().read_chars - before


def test_of_a_long_metrics_file_samples_are_read_and_then_its_end(tmp_path):
    path = tmp_path / "metrics.csv"
    header = ",".join(COLUMNS) + "\n"
    path.write_text(header + "".join(map(metrics_row, range(1, 100_001))))
    curve = LiveCurve(path)
    size = path.stat().st_size
    assert size > 10_000_000
    assert read_by(curve.refresh) < 200_000
    assert curve.points[-1] == (1_000_000, 100_000**0.5)
    assert len(curve.points) >= 60
    assert curve.points == sorted(curve.points)
    assert read_by(curve.refresh) < 5_000
    with path.open("a") as file:
        file.write("".join(map(metrics_row, range(100_001, 100_011))) + metrics_row(100_011)[:-30])
    assert read_by(curve.refresh) < 10_000
    assert curve.points[-1][0] == 1_000_100, "an unfinished row is not read"
    with path.open("a") as file:
        file.write(metrics_row(100_011)[-30:])
    curve.refresh()
    assert curve.points[-1] == (1_000_110, 100_011**0.5)
    for first in range(100_012, 101_012, 50):  # in a live run, the number of points is limited
        with path.open("a") as file:
            file.write("".join(map(metrics_row, range(first, first + 50))))
        curve.refresh()
    assert len(curve.points) <= MAX_POINTS
    # The run resumes from an earlier reload file, which cuts the rows.
    (tmp_path / "new").write_text(header + "".join(map(metrics_row, range(1, 501))))
    (tmp_path / "new").replace(path)
    curve.refresh()
    assert curve.points[-1] == (5_000, 500**0.5)
    path.unlink()
    curve.refresh()
    assert curve.points == []


@pytest.mark.parametrize("metric", RETURNS, ids=lambda metric: metric.name)
def test_the_curve_of_a_return_is_the_exploring_one_where_the_run_has_it(metric, tmp_path):
    path, values = tmp_path / "metrics.csv", {"return": 5.0, "exploring_return": 7.0}
    header = ["iteration", "evaluations", *values]
    for known, drawn in ((header, EXPLORING_RETURN), (header[:-1], metric)):
        row = ",".join(str(values.get(name, 1)) for name in known)
        path.write_text(f"{','.join(known)}\n{row}\n")
        curve = LiveCurve(path, metric)
        curve.refresh()
        assert curve.metric is drawn
        assert curve.points == [(1, values[drawn.name])] * (drawn.name in known)
    path.write_bytes(b"\xff\n1\n")  # damaged
    curve.refresh()
    assert curve.points == []


def test_a_search_in_progress_is_followed(tmp_path):
    """Its runs, why they stopped, and new decisions."""
    planned = halving()
    sweep = write_search(tmp_path / "results", planned, grid())
    later = [path for level in planned[1:] for path in (sweep / "search" / level.name).glob("*")]
    kept = {path: path.read_bytes() for path in later}
    for path in later:
        path.unlink()
    follow = Follow(tmp_path / "results", "tuned")
    follow.look(60)
    assert len(follow.runs) == 27
    (reason,) = {run.why for run in follow.runs.values() if "failed" not in run.why}
    assert "rung 0" in reason
    for path, content in kept.items():
        path.write_bytes(content)
    follow._next_search = 0.0
    assert follow.look(60)
    assert len(follow.runs) == 27 + 3, "a second seed of the last three"
    first = next(iter(follow.runs.values()))
    assert first.why == first.standing.note
    assert "rung 2" in first.why


def many_runs(results: Path, count: int) -> None:
    """Folders with the files of real runs, of which only the number matters here."""
    status = {"status": "finished", "iteration": 10, "evaluations": 100, "qd_score": 5.0}
    status |= {"seconds": {"ask": 1.0, "evaluate": 8.0}, "workers": 2, "attempts": []}
    runs = [f"lp_sphere-cma_me-s{number}-0123456789" for number in range(count)]
    for number, run in enumerate(runs):
        state = results / "runs" / run / "state"
        state.mkdir(parents=True)
        if number % 10 != 9:  # this run waits
            (state / "status.json").write_text(json.dumps(status))
            (state / "summary.json").write_text("{}")
            (state / "lock").write_text("")
    rows = [
        {"values": {"seed": number}, "id": run, "iterations": 10, "evaluations": None}
        for number, run in enumerate(runs)
    ]
    plan = {"name": "large", "experiment": "e", "sweep": "", "columns": ["seed"], "rows": rows}
    (results / "sweeps/large").mkdir(parents=True)
    (results / "sweeps/large/plan.json").write_text(json.dumps(plan))


def test_of_many_runs_those_are_read_for_which_there_is_time_and_those_that_change(tmp_path):
    many_runs(tmp_path, 1_000)
    follow = Follow(tmp_path, "large")
    assert follow.look(0.0)
    assert follow.unread == 1_000, "the time is over"
    assert read_by(lambda: follow.look(600.0)) > 100_000
    assert follow.unread == 0
    sums = follow.outlook
    assert sums.counts == {"finished": 900, "waiting": 100}
    assert sums.used == pytest.approx(900 * 18.0)
    assert sums.left == pytest.approx(100 * 18.0), "waiting runs cost as much as others"
    assert sums.eta is None, "no process computes"
    state = tmp_path / "runs/lp_sphere-cma_me-s9-0123456789/state"
    (state / "status.json").write_text('{"status": "failed", "iteration": 1}')
    (state / "last_stop.json").write_text('{"message": "broken"}')
    assert read_by(lambda: follow.look(600.0)) < 10_000, "the only changed file"
    assert follow.runs["lp_sphere-cma_me-s9-0123456789"].standing.note == "broken"
    assert not follow.look(600.0)


def test_curves_as_text():
    points = [(10 * i, float(i)) for i in range(1, 101)]
    assert sparkline(points, 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([], 8) == ""
    assert sparkline([(5, 3.0)], 4) == "▁▁▁▁"
    drawn = curve_plot(points, 60, 10)
    assert len(drawn.splitlines()) == 10
    assert all(len(line) <= 60 for line in drawn.splitlines())
    assert "100┤" in drawn and drawn.splitlines()[-1].split() == ["10", "340", "670", "1k"]
    assert curve_plot(points[:1], 60, 10) == "" == curve_plot(points, 10, 3)
