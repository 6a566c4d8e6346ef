"""Live files: of long ones samples and the end are read."""

import psutil
from searching import grid, halving, write_search

from qdsweep.analysis.live.follow import MOST, Curve, Follow
from qdsweep.records.metrics import COLUMNS


def metrics_row(iteration: int) -> str:
    values = {"iteration": iteration, "evaluations": 10 * iteration, "qd_score": iteration**0.5}
    return ",".join(str(values.get(name, 0.123456789012345)) for name in COLUMNS) + "\n"


def read_by(action) -> int:
    """Bytes that an action reads."""
    process = psutil.Process()
    before = process.io_counters().read_chars
    action()
    return process.io_counters().read_chars - before


def test_of_a_long_metrics_file_samples_are_read_and_then_its_end(tmp_path):
    path = tmp_path / "metrics.csv"
    header = ",".join(COLUMNS) + "\n"
    path.write_text(header + "".join(map(metrics_row, range(1, 100_001))))
    curve = Curve(path)
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
    assert curve.points[-1][0] == 1_000_100, "a row that is being written is not taken"
    with path.open("a") as file:
        file.write(metrics_row(100_011)[-30:])
    curve.refresh()
    assert curve.points[-1] == (1_000_110, 100_011**0.5)
    for first in range(100_012, 101_012, 50):  # a live run: points do not grow without end
        with path.open("a") as file:
            file.write("".join(map(metrics_row, range(first, first + 50))))
        curve.refresh()
    assert len(curve.points) <= MOST
    # The run goes on from an earlier reload file, which cuts the rows off.
    (tmp_path / "new").write_text(header + "".join(map(metrics_row, range(1, 501))))
    (tmp_path / "new").replace(path)
    curve.refresh()
    assert curve.points[-1] == (5_000, 500**0.5)
    path.unlink()
    curve.refresh()
    assert curve.points == []


def test_a_search_that_goes_on_is_followed(tmp_path):
    """Its runs, why they stopped, and what is decided meanwhile."""
    planned = halving()
    sweep = write_search(tmp_path / "results", planned, grid())
    later = [path for level in planned[1:] for path in (sweep / "search" / level.name).glob("*")]
    kept = {path: path.read_bytes() for path in later}
    for path in later:
        path.unlink()
    follow = Follow(tmp_path / "results", "tuned")
    follow.look(60)
    assert len(follow.runs) == 27
    assert {run.why for run in follow.runs.values() if "failed" not in run.why} == {
        "rung 0: waits for the others"
    }
    for path, content in kept.items():
        path.write_bytes(content)
    follow._next_search = 0.0
    assert follow.look(60)
    assert len(follow.runs) == 27 + 3, "a second seed of the last three"
    first = next(iter(follow.runs.values()))
    assert first.why == first.standing.note == "rung 2: 1st of 3"
