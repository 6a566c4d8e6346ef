"""Worker processes whose domain opens files and starts threads and processes."""

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest
from waiting import wait_until, workers_of

from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.engines import make_engine
from qdsweep.engines.batch import Batch, Engine

DOMAIN = """
import multiprocessing, os, subprocess, time
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from qdsweep.domains.base import Evaluation

TABLE = open("table.bin", "rb", buffering=0)
POOL = ThreadPoolExecutor(2)
list(POOL.map(abs, range(4)))
OWN = []


class Busy:
    solution_dim = 2
    measures = {"x": (-3.0, 3.0), "y": (-3.0, 3.0)}
    objective_range = (0.0, 255.0)
    fields = {}

    def __init__(self, does="read"):
        self.does = getattr(self, does)

    def evaluate(self, solutions, seeds):
        return Evaluation(np.array([self.does(s) for s in seeds]), solutions.copy())

    def read(self, seed):
        TABLE.seek(int(seed))
        time.sleep(0.001)
        return float(TABLE.read(1)[0])

    def start(self, seed):
        if not OWN:
            OWN.append(multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,)))
            OWN[0].start()
        time.sleep(0.02)
        return float(seed)

    def end(self, seed):
        program = subprocess.Popen(["sleep", "600"])
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
        process.start()
        for own, wait in ((program, program.wait), (process, process.join)):
            own.terminate()
            wait()
        return float(seed)
"""
ROWS = 60


@contextmanager
def engine(folder: Path, does: str) -> Iterator[Engine]:
    (folder / "config/plugins").mkdir(parents=True)
    (folder / "config/plugins/busy.py").write_text(DOMAIN)
    (folder / "table.bin").write_bytes(bytes(range(256)))
    domain = {"type": "busy:Busy", "name": "busy", "arguments": {"does": does}}
    grid = {"algorithm": "map_elites", "archive": {"dims": [5, 5]}, "num_emitters": 1}
    experiment = compose({"domain": domain, **grid, "batch_size": ROWS, "iterations": 1})
    cluster = Cluster(engine="processes", workers_per_node=2)
    made = make_engine(cluster, experiment, None, folder / "run", None, {})
    try:
        yield made
    finally:
        made.close()
    here = [p for p in psutil.process_iter(["cwd"]) if p.info["cwd"] == str(folder)]
    wait_until(lambda: not any(map(is_alive, here)), what="nothing is left of them")


def is_alive(process: psutil.Process) -> bool:
    if process.pid == os.getpid():
        return False
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def objectives(made: Engine) -> list[float]:
    seeds = np.arange(ROWS, dtype=np.uint32)
    scores = np.full(ROWS, np.nan)
    for rows, outcome in made.evaluate(Batch(np.zeros((ROWS, 2)), seeds), [slice(0, ROWS)]):
        scores[rows] = outcome.evaluation.objective
    return scores.tolist()


@pytest.mark.parametrize("does", ["read", "end"])
def test_files_threads_and_processes_of_a_domain_are_its_own(tmp_path, does):
    with engine(tmp_path, does) as made:
        assert objectives(made) == list(map(float, range(ROWS)))


def test_a_death_is_noticed_although_a_process_of_the_domain_lives_on(tmp_path):
    with engine(tmp_path, "start") as made:
        assert objectives(made) == list(map(float, range(ROWS)))
        first = set(workers_of(tmp_path))
        killed = next(process for process in first if process.children())
        killed.kill()
        assert objectives(made) == list(map(float, range(ROWS)))


def test_what_forks_them_may_die(tmp_path):
    with engine(tmp_path, "read") as made:
        objectives(made)
        (forker,) = {process.parent() for process in workers_of(tmp_path)}
        forker.kill()
        assert objectives(made) == list(map(float, range(ROWS)))
    assert multiprocessing.active_children() == []
