"""Whether a lock's owner is alive: known and displayed owners, and removable locks."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from waiting import wait_until

from qdsweep.cli.sweeps import leftovers
from qdsweep.host import lock, slurm
from qdsweep.host.lock import (
    Lock,
    Locked,
    Watch,
    is_alive,
    lives,
    may_be_alive,
    read_owner,
    this_owner,
)
from qdsweep.planning import jobs
from qdsweep.records.paths import Results

HOUR = 3600.0
ELSEWHERE = {"host": "node2", "boot": "another", "pids": "pid:[1]"}


@pytest.fixture
def process():
    started = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield started
    started.kill()
    started.communicate()


def owned(path: Path, *, ago: float = 0.0, **about: object) -> Path:
    """Writes a lock like its owner, with another time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(this_owner() | about))
    os.utime(path, (time.time() - ago,) * 2)
    return path


def test_a_claim_without_an_owner_blocks_for_seconds(tmp_path, monkeypatch):
    """Its process was killed before it wrote its name."""
    monkeypatch.setattr(lock, "BEAT_SECONDS", 0.3)
    (tmp_path / "lock.claim").touch()
    with pytest.raises(Locked), Lock(tmp_path / "lock", wait=0.1):
        pass
    with Lock(tmp_path / "lock", wait=5):
        assert not (tmp_path / "lock.claim").exists()


def test_proc_is_asked_for_a_process_of_this_node(process):
    began = lock._began(process.pid)
    there = this_owner() | {"pid": process.pid, "began": began}
    assert lives(there) is True
    assert lives({**there, "began": "1"}) is False, "its number now belongs to another process"
    assert lives({**there, "boot": "an earlier one"}) is False
    assert lives({**there, **ELSEWHERE}) is None
    assert lives({**there, "pids": "of a container"}) is None
    of_0_1 = {key: there[key] for key in ("host", "pid", "slurm_job")}
    assert lives(of_0_1) is True
    process.kill()
    process.wait()
    assert lives(there) is lives(of_0_1) is False


def test_a_zombie_is_dead(process):
    there = this_owner() | {"pid": process.pid, "began": lock._began(process.pid)}
    process.kill()
    wait_until(lambda: not lives(there))
    assert process.returncode is None, "no process has waited for it"


def test_a_watch_believes_no_clock(tmp_path):
    watch, path = Watch(), owned(tmp_path / "lock", ago=HOUR)
    assert watch.silent(path) == 0
    time.sleep(0.2)
    assert 0.2 <= watch.silent(path) < HOUR
    os.utime(path, (time.time() + HOUR,) * 2)
    assert watch.silent(path) == 0


@pytest.mark.parametrize(("ago", "shown"), [(0, True), (HOUR, False), (-HOUR, True)])
def test_of_another_node_the_time_is_shown_and_nothing_is_removed(tmp_path, ago, shown):
    results = Results(tmp_path / "results")
    run = results.run("a")
    owned(run.state.lock, ago=ago, **ELSEWHERE)
    half = run.state.path / ".summary.json.1.tmp"
    half.touch()
    assert is_alive(run.state.lock) is shown
    assert may_be_alive(run.state.lock)
    assert list(leftovers(results)) == []
    run.state.lock.write_text("")
    assert not is_alive(run.state.lock)
    assert list(leftovers(results)) == [half]


@pytest.mark.parametrize(
    ("answer", "ended"),
    [
        ("JobId=7 JobState=NODE_FAIL Reason=None", True),
        ("JobId=7 JobState=PENDING Reason=None", True),
        ("JobId=7 JobState=RUNNING Reason=None", False),
        ("JobId=7 JobState=COMPLETING Reason=None", False),
        ("", False),
    ],
)
def test_slurm_reports_that_a_job_has_ended(tmp_path, monkeypatch, answer, ended):
    monkeypatch.setattr(slurm, "_ask", lambda *words: answer if words[0] == "scontrol" else "")
    assert slurm.has_ended("7") is ended
    lock = owned(tmp_path / "lock", ago=HOUR, slurm_job="7", **ELSEWHERE)
    assert may_be_alive(lock) is not ended


def test_a_job_is_queued_again_only_when_its_lock_is_touched_no_more(tmp_path, monkeypatch):
    """With any clock of its node."""
    queued: list[str] = []
    monkeypatch.setattr(jobs, "running_since", lambda job: ("0", 1e6))
    monkeypatch.setattr(jobs, "requeue", queued.append)
    monkeypatch.setattr(jobs, "DEAD_SECONDS", 0.3)
    run, watch = Results(tmp_path).run("a"), Watch()
    owned(run.state.lock, ago=HOUR, slurm_job="7", restarts="0", **ELSEWHERE)
    for turn in range(4):
        os.utime(run.state.lock, (time.time() - HOUR + turn,) * 2)
        jobs._check(run, watch)
        time.sleep(0.2)
    assert queued == []
    assert read_owner(run.state.lock)
    time.sleep(0.2)
    jobs._check(run, watch)
    assert queued == ["7"]


@pytest.mark.parametrize(
    ("restarts", "time", "queued"),
    [
        ("0", "00:00:50", True),
        ("1", "00:00:50", False),
        ("1", "1-00:00:50", True),
        ("1", "INVALID", False),
    ],
)
def test_a_job_that_was_started_again_has_time_to_come_to_its_run(
    tmp_path, monkeypatch, restarts, time, queued
):
    """Otherwise it was queued again every 30 s and never removed."""
    asked: list[str] = []
    shown = f"JobId=7 JobState=RUNNING Restarts={restarts} RunTime={time}\n"
    shown += "JobId=8 ArrayJobId=7 JobState=RUNNING Restarts=0 RunTime=1-00:00:00\n"
    monkeypatch.setattr(slurm, "_ask", lambda *words: shown)
    monkeypatch.setattr(jobs, "requeue", asked.append)
    monkeypatch.setattr(jobs, "DEAD_SECONDS", 0.0)
    run = Results(tmp_path).run("a")
    owned(run.state.lock, ago=HOUR, slurm_job="7", restarts="0", **ELSEWHERE)
    jobs._check(run, Watch())
    assert asked == (["7"] if queued else [])
