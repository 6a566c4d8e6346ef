"""Whether a lock's owner is alive: known and displayed owners, and removable locks."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from in_process import qdsweep
from refusals import names_all
from waiting import wait_until

from qdsweep.host import lock, owner, slurm
from qdsweep.host.lock import FileWatch, Lock, Locked, is_alive, may_be_alive
from qdsweep.host.owner import lives, read_owner, this_owner
from qdsweep.planning import slurm_jobs
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
    began = owner._began(process.pid)
    there = this_owner() | {"pid": process.pid, "began": began}
    assert lives(there) is True
    assert lives({**there, "began": "1"}) is False, "its number now belongs to another process"
    of_0_1 = {key: there[key] for key in ("host", "pid", "slurm_job")}
    assert lives(of_0_1) is True
    process.kill()
    process.wait()
    assert lives(there) is False
    assert lives(of_0_1) is None, "another machine may have this name"


@pytest.mark.parametrize("changes", [("boot",), ("pids",), ("boot", "pids"), ("boot", "host")])
@pytest.mark.parametrize("is_running", [True, False])
def test_another_boot_or_container_decides_nothing(process, changes, is_running):
    """Whatever the name of the host is, and whether a process here has that number."""
    began = owner._began(process.pid)
    if not is_running:
        process.kill()
        process.wait()
    there = this_owner() | {"pid": process.pid, "began": began}
    assert lives(there) is is_running
    assert lives(there | dict.fromkeys(changes, "another")) is None
    assert lives(there | dict.fromkeys(changes)) is None


def test_a_process_that_proc_hides_is_not_taken_for_dead(process, monkeypatch):
    """As with hidepid, where /proc has only the user's own processes."""
    there = this_owner() | {"pid": process.pid, "began": owner._began(process.pid)}
    monkeypatch.setattr(owner, "_began", lambda pid: None)
    monkeypatch.setattr(owner, "_is_hidden", lambda pid: True)
    assert lives(there) is None


# A machine of the same name: another boot, and flock() has no effect between the two.
TWIN = """
import sys, time
from pathlib import Path
from qdsweep.host import lock, owner
lock._granted = lambda file, operation: True
owner._kernel = lambda: {"boot": f"boot-{sys.argv[1]}", "pids": f"pid:[{sys.argv[1]}]"}
lock.BEAT_SECONDS, lock.DEAD_SECONDS = 0.2, 4.0
with lock.Lock(Path("lock")):
    print("has it", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def twin():
    started: list[subprocess.Popen] = []

    def start(name: str) -> subprocess.Popen:
        pipe = subprocess.PIPE
        words = [sys.executable, "-c", TWIN, name]
        streams = {"stdin": pipe, "stdout": pipe, "stderr": pipe}
        started.append(subprocess.Popen(words, text=True, **streams))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_machine_of_the_same_name_does_not_take_the_lock_of_a_live_process(twin):
    first = twin("a")
    assert first.stdout.readline() == "has it\n"
    second = twin("b")
    line = second.stderr.readline()
    names_all(line, "lock", f"process {first.pid}", this_owner()["host"], "4 s")
    watch = FileWatch()
    beats, deadline = 0, time.monotonic() + 300
    while beats < 25:  # longer than an owner may be silent
        beats += watch.silent(Path("lock")) == 0
        assert time.monotonic() < deadline and second.poll() is None
        time.sleep(0.2)
    assert json.loads(Path("lock").read_text())["pid"] == first.pid
    first.kill()
    assert second.stdout.readline() == "has it\n"
    assert json.loads(Path("lock").read_text())["pid"] == second.pid


def test_after_a_restart_a_line_says_for_whom_it_waits(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(lock, "DEAD_SECONDS", 0.6)
    monkeypatch.setattr(lock, "SETTLE_SECONDS", 0.0)
    path = owned(tmp_path / "lock", boot="an earlier one", pid=77)
    with Lock(path):
        printed = capsys.readouterr().err
    names_all(printed, path, "process 77", this_owner()["host"], "1 s")
    assert printed.count("\n") == 1
    with Lock(path):
        assert capsys.readouterr().err == ""


def test_clean_waits_for_heartbeats_and_says_for_whom(tmp_path, monkeypatch):
    """A run from before a restart can be removed, and one that another machine computes cannot."""
    monkeypatch.setattr(lock, "DEAD_SECONDS", 1.5)
    results = Results(tmp_path / "results")
    dead, alive = (results.run(name).state.lock for name in ("dead", "alive"))
    for path in (dead, alive):
        owned(path, boot="another", pid=77)
        (path.parent / "reload-000000001.pkl").touch()
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(0.2):
            os.utime(alive)

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        text = qdsweep("clean", "--runs", "alive", "--yes", cwd=tmp_path, code=2)
        names_all(text, "alive", alive.relative_to(tmp_path), "process 77")
        text = qdsweep("clean", "--runs", "dead", "--yes", cwd=tmp_path)
    finally:
        ended.set()
        thread.join()
    names_all(text, dead.relative_to(tmp_path), "process 77", "1 found")
    assert alive.exists() and not dead.exists()


@pytest.mark.parametrize("umask", [0o002, 0o022, 0o077, 0o000])
def test_it_is_as_writable_as_the_umask_allows(tmp_path, umask):
    before = os.umask(umask)
    try:
        with Lock(tmp_path / "lock") as held, held._alone() as is_alone:
            assert is_alone
            modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {0o666 & ~umask}


def test_a_zombie_is_dead(process):
    there = this_owner() | {"pid": process.pid, "began": owner._began(process.pid)}
    process.kill()
    wait_until(lambda: not lives(there))
    assert process.returncode is None, "no process has waited for it"


def test_a_watch_believes_no_clock(tmp_path):
    watch, path = FileWatch(), owned(tmp_path / "lock", ago=HOUR)
    assert watch.silent(path) == 0
    time.sleep(0.2)
    assert 0.2 <= watch.silent(path) < HOUR
    os.utime(path, (time.time() + HOUR,) * 2)
    assert watch.silent(path) == 0


# It prints for how long a file has been silent, whenever it is asked.
WATCHES = """
import sys
from pathlib import Path
from qdsweep.host import lock
lock.DEAD_SECONDS, watch = 2.0, lock.FileWatch()
for line in sys.stdin:
    print(watch.silent(Path("lock")), flush=True)
"""


def test_a_watch_does_not_count_the_time_in_which_it_was_suspended(tmp_path):
    """The owner was suspended with it, as on one laptop, and has had no time for a heartbeat."""
    owned(tmp_path / "lock", **ELSEWHERE)
    watch = subprocess.Popen(
        [sys.executable, "-c", WATCHES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def silent() -> float:
        print(file=watch.stdin, flush=True)
        return float(watch.stdout.readline())

    assert silent() == 0
    watch.send_signal(signal.SIGSTOP)
    time.sleep(3)
    watch.send_signal(signal.SIGCONT)
    assert silent() == 1.0
    time.sleep(1)
    assert silent() == 2.0
    os.utime(tmp_path / "lock")
    assert silent() == 0
    watch.communicate()


def test_a_job_that_slurm_had_suspended_is_not_queued_again(tmp_path, monkeypatch):
    queued, running = [], [None, None, ("0", 1e6), ("0", 1e6)]
    monkeypatch.setattr(slurm_jobs, "running_since", lambda job: running.pop(0))
    monkeypatch.setattr(slurm_jobs, "requeue", queued.append)
    monkeypatch.setattr(slurm_jobs, "DEAD_SECONDS", 0.1)
    run, watch = Results(tmp_path).run("a"), FileWatch()
    owned(run.state.lock, slurm_job="7", restarts="0", **ELSEWHERE)
    while len(running) > 2:
        slurm_jobs._check(run, watch)
        time.sleep(0.06)
    slurm_jobs._check(run, watch)
    assert (queued, len(running)) == ([], 2), "the first look after it"
    while running:
        slurm_jobs._check(run, watch)
        time.sleep(0.06)
    assert "7" in queued


@pytest.mark.parametrize(("ago", "shown"), [(0, True), (HOUR, False), (-HOUR, True)])
def test_of_another_node_the_time_is_shown_and_decides_nothing(tmp_path, ago, shown):
    results = Results(tmp_path / "results")
    run = results.run("a")
    owned(run.state.lock, ago=ago, **ELSEWHERE)
    assert is_alive(run.state.lock) is shown
    assert may_be_alive(run.state.lock)
    run.state.lock.write_text("")
    assert not is_alive(run.state.lock)
    assert not may_be_alive(run.state.lock)


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
    monkeypatch.setattr(slurm_jobs, "running_since", lambda job: ("0", 1e6))
    monkeypatch.setattr(slurm_jobs, "requeue", queued.append)
    monkeypatch.setattr(slurm_jobs, "DEAD_SECONDS", 0.3)
    run, watch = Results(tmp_path).run("a"), FileWatch()
    owned(run.state.lock, ago=HOUR, slurm_job="7", restarts="0", **ELSEWHERE)
    for turn in range(4):
        os.utime(run.state.lock, (time.time() - HOUR + turn,) * 2)
        slurm_jobs._check(run, watch)
        time.sleep(0.2)
    assert queued == []
    assert read_owner(run.state.lock)
    time.sleep(0.2)
    slurm_jobs._check(run, watch)
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
    monkeypatch.setattr(slurm_jobs, "requeue", asked.append)
    monkeypatch.setattr(slurm_jobs, "DEAD_SECONDS", 0.0)
    run = Results(tmp_path).run("a")
    owned(run.state.lock, ago=HOUR, slurm_job="7", restarts="0", **ELSEWHERE)
    slurm_jobs._check(run, FileWatch())
    assert asked == (["7"] if queued else [])
