"""The ray engine over two nodes of a real Slurm: the head is on the first one."""

import contextlib
import os
import re
import signal

import psutil
from patient import undisturbed_digest
from results import summary
from test_slurm import Sweep
from waiting import has_lost, has_workers, wait_until


def test_actors_on_two_nodes_one_killed_and_then_a_node(tmp_path):
    expected = undisturbed_digest(tmp_path / "undisturbed", iterations=60)
    memory = {"mem_mb_main": 1500, "mem_mb_per_worker": 300}
    sweep = Sweep(tmp_path / "sweep", seconds=0.1, engine="ray", **memory).computing()
    wait_until(lambda: has_workers(sweep.log, 6), 300, "all workers")
    nodes: dict[str, list[psutil.Process]] = {}
    for process in psutil.process_iter(["environ", "name"]):  # Ray's helpers come and go
        variables = process.info["environ"] or {}
        if variables.get("RAY_AUTH_TOKEN_PATH") == f"{sweep.run}/state/connection/token":
            nodes.setdefault(variables["RAY_TMPDIR"], []).append(process)
    assert len(nodes) == 2, "a folder and processes of Ray on each"
    workers = re.findall(r"worker process (\d+) .* now", sweep.log.read_text())
    os.kill(int(workers[0]), signal.SIGKILL)
    wait_until(lambda: has_lost(sweep.log, 5), what="the loss is noted")
    wait_until(lambda: has_workers(sweep.log, 6, 2), 300, "another one")
    (other,) = (n for n in nodes.values() if not any(p.info["name"] == "gcs_server" for p in n))
    for process in other:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    wait_until(lambda: has_lost(sweep.log, 3), 300, "the node's loss is noted")
    sweep.finish(expected)
    assert sweep.attempts() == ["finished"]
    about = summary(sweep.run)
    assert (about["engine"], about["workers"]) == ("ray", 6)
    wait_until(lambda: not any(map(os.path.exists, nodes)), what="Ray's folders have vanished")
