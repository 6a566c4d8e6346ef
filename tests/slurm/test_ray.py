"""The ray engine over two nodes of a real Slurm: the head is on the first one."""

import os
import re
import signal

import psutil
from patient import undisturbed_digest
from results import summary
from test_slurm import Sweep
from waiting import says, wait_until


def test_actors_on_two_nodes_one_killed_and_nothing_left(tmp_path):
    expected = undisturbed_digest(tmp_path / "undisturbed", iterations=60)
    memory = {"mem_mb_main": 1500, "mem_mb_per_worker": 300}
    sweep = Sweep(tmp_path / "sweep", seconds=0.05, engine="ray", **memory).computing()
    wait_until(lambda: says(sweep.log, ", 6 now"), 60, "all workers")
    folders = {
        process.info["environ"]["RAY_TMPDIR"]
        for process in psutil.process_iter(["environ"])
        if str(sweep.run) in (process.info["environ"] or {}).get("RAY_AUTH_TOKEN_PATH", "")
    }
    assert len(folders) == 2, "one of each node"
    pids = re.findall(r"worker process (\d+) .* now", sweep.log.read_text())
    os.kill(int(pids[-1]), signal.SIGKILL)
    wait_until(lambda: says(sweep.log, "is lost, 5 left"), 20, "the loss is noted")
    sweep.finish(expected)
    about = summary(sweep.run)
    assert (about["engine"], about["workers"]) == ("ray", 6)
    wait_until(lambda: not any(map(os.path.exists, folders)), 10, "Ray's folders have vanished")
