"""The cache of the finished runs of a large sweep is never older than their files."""

import json

import pytest

from qdsweep.host.lock import Lock
from qdsweep.host.owner import this_owner
from qdsweep.records import progress
from qdsweep.records.paths import Results, RunDir, SweepDir
from qdsweep.records.status import write_status
from qdsweep.records.sums import checksum

RUNS = ["a", "b"]


def finish(run: RunDir, evaluations: int = 100) -> None:
    run.state.path.mkdir(parents=True, exist_ok=True)
    about = {"id": run.name, "status": "finished", "budget": {"evaluations": 100}}
    about |= {"evaluations": evaluations, "iteration": 5, "qd_score": 0.1}
    about |= {"seconds": {"ask": 1.5}, "workers": 2, "engine": "serial"}
    write_status(run.state, about | {"attempts": [{"how": "finished"}]})
    run.state.summary.write_text(json.dumps({"iterations": 5, "evaluations": evaluations}))


@pytest.fixture
def sweep(tmp_path, monkeypatch) -> SweepDir:
    monkeypatch.setattr(progress, "LARGE", 1)
    results = Results(tmp_path / "results")
    for run in RUNS:
        finish(results.run(run))
    sweep = results.sweep("many")
    sweep.path.mkdir(parents=True)
    return sweep


def read(sweep: SweepDir) -> dict[str, int]:
    finished = progress.read_finished(sweep, RUNS)
    return {run: status.evaluations for run, status in finished.items()}


def test_what_is_remembered_is_what_was_read(sweep):
    first = progress.read_finished(sweep, RUNS)
    assert sweep.finished.exists()
    again = progress.read_finished(sweep, RUNS)
    assert again == first
    assert again["a"].metrics == {"qd_score": 0.1}
    assert again["a"].core_seconds == 3.0
    assert again["a"].budget == {"evaluations": 100}


def test_files_that_have_not_changed_are_not_read_again(sweep, monkeypatch):
    read(sweep)
    monkeypatch.setattr(progress, "read_status", None)
    assert read(sweep) == {"a": 100, "b": 100}


def test_a_changed_status_is_read_again(sweep):
    read(sweep)
    finish(sweep.results.run("a"), 200)
    assert read(sweep) == {"a": 200, "b": 100}
    assert read(sweep) == {"a": 200, "b": 100}
    write_status(sweep.results.run("a").state, {"status": "running", "evaluations": 201})
    assert read(sweep) == {"b": 100}


def test_a_status_of_the_same_size_that_was_written_in_place_is_read_again(sweep):
    read(sweep)
    status = sweep.results.run("a").state.status
    before = status.read_text()
    about = json.loads(before) | {"evaluations": 300}
    del about["sha256"]
    status.write_text(json.dumps({**about, "sha256": checksum(about)}, indent=1) + "\n")
    assert len(status.read_text()) == len(before)
    sweep.results.run("a").state.summary.write_text('{"iterations": 5, "evaluations": 300}')
    assert read(sweep) == {"a": 300, "b": 100}


@pytest.mark.parametrize("summary", [None, "{", '{"iterations": 5, "evaluations": 99}'])
def test_a_run_without_a_whole_summary_is_not_finished(sweep, summary):
    read(sweep)
    file = sweep.results.run("a").state.summary
    file.unlink() if summary is None else file.write_text(summary)
    assert read(sweep) == {"b": 100}


def test_a_run_that_is_computed_now_is_not_finished(sweep):
    read(sweep)
    with Lock(sweep.results.run("a").state.lock), open_lock(sweep.results.run("b")):
        assert read(sweep) == {"b": 100}


def open_lock(run: RunDir):
    """Writes a lock file whose owner has ended: it has a name, but no process holds it."""
    run.state.lock.write_text(json.dumps(this_owner() | {"pid": 2**22 + 1}))
    return run.state.lock.open()


@pytest.mark.parametrize("content", [b"", b"torn", None])
def test_without_its_file_or_with_a_damaged_one_all_are_read(sweep, content):
    read(sweep)
    whole = sweep.finished.read_bytes()
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    sweep.finished.write_bytes(bytes(damaged) if content is None else content)
    assert read(sweep) == {"a": 100, "b": 100}
    assert sweep.finished.read_bytes() == whole


def test_nothing_is_written_for_a_small_sweep_or_in_a_read_only_folder(sweep, monkeypatch):
    sweep.path.rmdir()  # as before the first start
    assert read(sweep) == {"a": 100, "b": 100}
    assert not sweep.path.exists()
    sweep.path.mkdir()
    monkeypatch.setattr(progress, "LARGE", 2)
    assert read(sweep) == {}
    assert not sweep.finished.exists()
