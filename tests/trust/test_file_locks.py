"""A run has one writer, on two nodes, even if the file system ignores or refuses locks."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cluster_files import ClusterFiles
from counting import EXPERIMENT, add_plugin, evaluated
from in_process import qdsweep
from refusals import names_all
from results import outcome, summary
from support import BIN, TINY, write_yaml
from waiting import says, wait_until

from qdsweep.host.owner import read_owner
from qdsweep.records.paths import RunDir

HERE = Path(__file__).parent
LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
KILLS = int(os.environ.get("QDSWEEP_KILLS", 20 if LONG else 0))  # each takes over a minute
NO_LOCKS = ("nothing", "refused")
# Two nodes, and two machines of one name, such as clones.
NODES = [("node1", "node2"), ("twin@1", "twin@2")]
HOUR = 3600.0


class Place:
    """A folder with a lock, on a file system with some traits."""

    def __init__(self, folder: Path, *traits: str) -> None:
        (folder / "shared").mkdir()
        self.lock, self.log = folder / "shared/lock", folder / "log"
        self.files = ClusterFiles(folder / "switch", folder / "shared")
        self.files.set(traits)
        self.started: list[subprocess.Popen] = []

    def start(self, act: str, node: str, silent: float = 2.0, clock: float = 0.0, **env: str):
        """Starts a process that takes the lock."""
        words = [sys.executable, HERE / "holders.py", act, self.lock, self.log, str(silent)]
        environment = {**os.environ, **self.files.environment(node, clock), **env}
        process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        return process

    def has_it(self, process: subprocess.Popen) -> bool:
        return says(self.log, f"{process.pid} has it")

    def wait_for(self, process: subprocess.Popen) -> None:
        wait_until(lambda: self.has_it(process), what="it has the lock")

    def wait_for_tries(self, trait: str, count: int) -> None:
        """Waits for this many more requests of the lock. A process asks every 0.5 s."""
        before = self.files.fired[trait]
        wait_until(lambda: self.files.fired[trait] >= before + count, what="the lock is asked for")


@pytest.fixture
def place(tmp_path):
    made: list[Place] = []

    def make(*traits: str) -> Place:
        made.append(Place(tmp_path, *traits))
        return made[0]

    yield make
    for process in made[0].started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("trait", NO_LOCKS)
def test_one_at_a_time_has_the_lock(place, trait):
    """Processes of three nodes, whose clocks differ, take it in turn."""
    shared = place(trait, "clock", "rename", "list")
    clocks = (0.0, HOUR, -HOUR)
    for number in range(12 if LONG else 4):
        shared.start("pass", f"node{number % 3}", silent=60, clock=clocks[number % 3])
    assert [process.wait(300) for process in shared.started] == [0] * len(shared.started)
    lines = shared.log.read_text().splitlines()
    assert len(lines) == 2 * 4 * len(shared.started)
    for has, ends in zip(lines[::2], lines[1::2], strict=True):
        assert (has.split(" ", 1)[1], ends) == ("has it", f"{has.split()[0]} ends")
    assert shared.files.fired[trait] and shared.files.fired["clock"]
    assert shared.lock.read_bytes() == b""
    assert [path.name for path in shared.lock.parent.iterdir()] == ["lock"]


@pytest.mark.parametrize("trait", NO_LOCKS)
def test_a_killed_owner_of_the_same_node_is_succeeded_at_once(place, trait):
    shared = place(trait)
    first = shared.start("hold", "node1", silent=120)
    shared.wait_for(first)
    second = shared.start("hold", "node1", silent=120)
    shared.wait_for_tries(trait, 4)
    assert not shared.has_it(second), "the first one lives"
    first.kill()
    first.wait()
    shared.wait_for(second)
    owner = read_owner(shared.lock)
    assert owner is not None and owner["pid"] == second.pid


@pytest.mark.parametrize(
    ("clock", "nodes"), [*zip((-HOUR, HOUR), NODES, strict=True)], ids=["nodes", "twins"]
)
def test_an_owner_of_another_node_is_succeeded_when_it_is_silent(place, clock, nodes):
    shared = place("nothing", "clock")
    first = shared.start("hold", nodes[0], silent=4, clock=clock)
    shared.wait_for(first)
    second = shared.start("hold", nodes[1], silent=4, clock=-clock)
    shared.wait_for_tries("nothing", 12)  # longer than an owner may be silent
    assert not shared.has_it(second), "it lives, with any clock"
    first.kill()
    first.wait()
    shared.wait_for(second)
    assert shared.files.fired["clock"]
    second.kill()
    assert second.stderr is not None
    (line,) = second.stderr.read().splitlines()
    names_all(line, shared.lock, first.pid, nodes[0].partition("@")[0])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a pid namespace")
def test_a_killed_owner_of_another_container_is_awaited_with_a_line(place):
    """With flock, which shows that the owner is gone only where all containers have one kernel."""
    shared = place()
    words = [sys.executable, HERE / "holders.py", "hold", shared.lock, shared.log, "4"]

    def start() -> subprocess.Popen:
        process = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *words],
            stderr=subprocess.PIPE,
            text=True,
        )
        shared.started.append(process)
        return process

    first = start()
    wait_until(lambda: says(shared.log, "1 has it"), what="the first one has the lock")
    first.kill()
    first.wait()
    second = start()
    wait_until(lambda: says(shared.log, "1 has it", 2), what="the second one has the lock")
    second.kill()
    assert second.stderr is not None
    names_all(second.stderr.read(), shared.lock, "process 1 on", "4 s")


def test_an_owner_that_was_suspended_and_succeeded_ends(place):
    shared = place("nothing")
    first = shared.start("hold", "node1")
    shared.wait_for(first)
    first.send_signal(signal.SIGSTOP)
    second = shared.start("hold", "node2")
    shared.wait_for(second)
    first.send_signal(signal.SIGCONT)
    assert first.wait(300) == 75
    assert first.stderr is not None
    names_all(first.stderr.read(), second.pid, "node2")
    assert not says(shared.log, f"{first.pid} ends")
    assert second.poll() is None
    owner = read_owner(shared.lock)
    assert owner is not None and owner["pid"] == second.pid


SCONTROL = """#!/bin/sh
[ "$4" = 7 ] && echo "JobId=7 JobState={state} Restarts={restarts}"
exit 0
"""


@pytest.mark.parametrize(
    ("state", "job", "is_known"),
    [("NODE_FAIL", "8", True), ("RUNNING", "8", False), ("RUNNING", "7", True)],
    ids=["its job has ended", "its job runs", "Slurm has started its job again"],
)
def test_slurm_is_asked_for_an_owner_of_another_node(place, tmp_path, state, job, is_known):
    shared = place("nothing")
    program = tmp_path / "scontrol"
    program.write_text(SCONTROL.format(state="RUNNING", restarts=0))
    program.chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    first = shared.start("hold", "node1", silent=120, SLURM_JOB_ID="7", **path)
    shared.wait_for(first)
    first.kill()
    first.wait()
    program.write_text(SCONTROL.format(state=state, restarts=1))
    second = shared.start("hold", "node2", silent=120, SLURM_JOB_ID=job, **path)
    if is_known:
        shared.wait_for(second)
    else:
        shared.wait_for_tries("nothing", 4)
        assert not shared.has_it(second)


# The process that makes them ends when the test allows it.
CENTROIDS = """
import os, sys, time
from pathlib import Path
import numpy as np
from qdsweep.algorithms.ribs import archives
from qdsweep.config.archive_kinds import CVTArchive
folder = Path(sys.argv[1])
def made(*_):
    (folder.parent / f"makes-{os.getpid()}").touch()
    while not (folder.parent / "go").exists():
        time.sleep(0.1)
    return np.random.default_rng().random((4, 1))
archives._k_means = made
print(archives.Centroids(folder).get(CVTArchive(type="cvt"), 4, [(0, 1)]))
"""
KEY = "from qdsweep.host.key import own_digest; print(own_digest('x'))"


@pytest.mark.parametrize("trait", NO_LOCKS if LONG else NO_LOCKS[1:])
@pytest.mark.parametrize(
    ("code", "also"), [(CENTROIDS, "rename"), (KEY, "link")], ids=["centroids", "key"]
)
def test_what_runs_share_is_made_once(place, tmp_path, trait, code, also):
    """Makes centroids, which differ each time, and the user's key."""
    shared = place(trait, also)
    folder = shared.lock.parent
    config = {"XDG_CONFIG_HOME": str(folder / "config")}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code, folder],
            env={**os.environ, **shared.files.environment(f"node{number}"), **config},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    if code == CENTROIDS:
        wait_until(lambda: [*tmp_path.glob("makes-*")], what="one of them makes the centroids")
        shared.wait_for_tries(trait, 4)
        (tmp_path / "go").touch()
    printed, warned = zip(*(process.communicate(timeout=300) for process in both), strict=True)
    assert printed[0] and printed[0] == printed[1], warned
    assert len([*tmp_path.glob("makes-*")]) == (code == CENTROIDS)
    assert shared.files.fired[trait] and (also == "rename" or shared.files.fired[also])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("nodes", NODES if LONG else NODES[1:])
@pytest.mark.parametrize("trait", NO_LOCKS if LONG else NO_LOCKS[:1])
def test_two_nodes_that_start_one_run_compute_it_once(tmp_path, trait, nodes):
    files = ClusterFiles(tmp_path / "switch", tmp_path / "shared")
    files.folder.mkdir()
    files.set([trait, "clock", "link", "rename", "list"])
    quick = {**TINY, "algorithm": "map_elites", "iterations": 300}
    experiment = write_yaml(tmp_path / "experiment.yaml", quick)
    words = [BIN / "qdsweep", "run", experiment, "--out", files.folder / "out"]
    both = [
        subprocess.Popen(
            words,
            env={**os.environ, **files.environment(node, clock)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for node, clock in zip(nodes, (-HOUR, HOUR), strict=True)
    ]
    printed = [process.communicate(timeout=500)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], printed
    assert len(summary(files.folder / "out")["attempts"]) == 1
    assert files.fired[trait] and files.fired["clock"] and files.fired["link"]


@pytest.mark.timeout(0)
@pytest.mark.parametrize("number", range(KILLS))
def test_two_machines_of_one_name_one_of_them_killed_lose_nothing(tmp_path, number):
    """At a random moment; the other one, which waits for the run, resumes it."""
    draw = random.Random(number)
    files = ClusterFiles(tmp_path / "switch", tmp_path / "shared")
    files.folder.mkdir()
    files.set(["nothing", "clock", "rename", "list"])
    add_plugin(files.folder)
    slow = {**EXPERIMENT, "reload": {"min_seconds": 0, "max_seconds": 1e-6}}
    write_yaml(files.folder / "experiment.yaml", slow)
    words = [BIN / "qdsweep", "run", "experiment.yaml", "--out", "out"]

    def start(node: str) -> subprocess.Popen:
        environment = {**os.environ, **files.environment(node, draw.choice((-HOUR, HOUR)))}
        environment["COUNTING_SECONDS"] = "0.3"  # of each iteration: 8 s in all
        pipe = subprocess.PIPE
        return subprocess.Popen(words, cwd=files.folder, env=environment, stderr=pipe, text=True)

    first = start("twin@1")
    run = RunDir(files.folder / "out")
    wait_until(lambda: run.state.status.exists(), what="the first one computes")
    second = start("twin@2")
    time.sleep(draw.uniform(0, 5))
    first.kill()
    first.communicate()
    printed = second.communicate()[1]
    assert second.returncode == 0, printed
    names_all(printed, f"process {first.pid} on twin")
    assert len(summary(run.path)["attempts"]) == 2
    assert evaluated(files.folder) <= slow["evaluations"] + 2 * slow["batch_size"]
    qdsweep("run", "experiment.yaml", "--out", tmp_path / "straight", cwd=files.folder)
    assert outcome(run.path) == outcome(tmp_path / "straight")
