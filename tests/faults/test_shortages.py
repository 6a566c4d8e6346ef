"""`on_failure` never scores what the machine lacks: memory, disk space, file handles, threads."""

import os
import subprocess
from pathlib import Path

import pytest
from in_process import compute_run, qdsweep
from refusals import names_all
from results import outcome, read_json, summary
from support import BIN, write_yaml
from waiting import says, wait_until

from qdsweep.engines import pool

SHORT = '''
import errno, os, resource
from pathlib import Path
import numpy as np
from qdsweep.domains.base import Evaluation

KEPT = []


class Short:
    """Needs something for the solutions of some evaluation seeds, in the way of `needs`."""

    solution_dim = 3
    measures = {"a": (-3.0, 3.0), "b": (-3.0, 3.0)}
    objective_range = (-100.0, 0.0)
    fields = {}

    def __init__(self, needs):
        self.needs = needs

    def evaluate(self, solutions, seeds):
        for seed in seeds:
            if seed % 40 == 7:
                getattr(self, self.needs)(int(seed))
            if seed % 40 == 8:
                raise ValueError("this one is the solution's fault")
        return Evaluation(-(solutions**2).sum(axis=1), solutions[:, :2].copy())

    def nothing(self, seed):
        pass

    def memory(self, seed):
        """Real memory, more than the machine has when a seed is first evaluated anywhere."""
        try:
            Path(f"had-{seed}").mkdir()
        except FileExistsError:
            return
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limits = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, limits[1]))  # for other threads
        try:
            np.ones(2**26)
        except MemoryError as error:
            raise RuntimeError("the simulation failed") from error
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)

    def too_much(self, seed):
        np.empty(2**62 // 8)

    def handles(self, seed):
        """Leaks handles. A new process has none."""
        opened = len(os.listdir("/proc/self/fd"))
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        if not KEPT:
            KEPT.append(opened + 3)
        resource.setrlimit(resource.RLIMIT_NOFILE, (KEPT[0], limits[1]))
        try:
            KEPT.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(2))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    def disk(self, seed):
        Path("disk/scratch").write_bytes(bytes(300_000))
        Path("disk/scratch").unlink()
'''
EXPERIMENT = {
    "domain": {"type": "shortage:Short", "name": "short", "evaluation_seed": "solution"},
    "algorithm": "map_elites",
    "archive": {"dims": [5, 5]},
    "num_emitters": 1,
    "batch_size": 40,
    "initial_solutions": 40,
    "iterations": 4,
    "seed": 1,
    "on_failure": {"objective": -100.0},
}
ENGINES = [
    {"engine": "serial", "workers_per_node": 1},
    {"engine": "processes", "workers_per_node": 2},
    {"engine": "dask", "workers_per_node": 2},
    {"engine": "mpi", "workers_per_node": 2},
    {"engine": "ray", "workers_per_node": 2},
]


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> Path:
    """The plug-in in one folder, as this process imports only one module of a name."""
    folder = tmp_path_factory.mktemp("config")
    (folder / "plugins").mkdir()
    (folder / "plugins/shortage.py").write_text(SHORT)
    return folder


@pytest.fixture
def folder(config, tmp_path, monkeypatch) -> Path:
    (tmp_path / "config").symlink_to(config)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pool, "PAUSE_SECONDS", 0.05)
    return tmp_path


def experiment(needs: str) -> dict:
    return {**EXPERIMENT, "domain": {**EXPERIMENT["domain"], "arguments": {"needs": needs}}}


def words(folder: Path, needs: str, cluster: dict) -> tuple[object, ...]:
    file = write_yaml(folder / f"{needs}.yaml", experiment(needs))
    cluster_file = write_yaml(folder / "cluster.yaml", cluster)
    return "run", file, "--cluster", cluster_file, "--out", "out"


@pytest.fixture
def expected(folder) -> dict:
    """The outcome where nothing is lacking."""
    return outcome(compute_run(experiment("nothing"), folder / "well"))


@pytest.mark.parametrize("cluster", ENGINES, ids=lambda keys: keys["engine"])
def test_memory_that_was_lacking_once_changes_no_result(folder, expected, cluster):
    """In processes of their own, as some engines fork and as a limit is of a process."""
    done = subprocess.run(
        [BIN / "qdsweep", *map(str, words(folder, "memory", cluster))],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert outcome(folder / "out") == expected
    assert summary(folder / "out")["failures"] == summary(folder / "well")["failures"] > 0
    log = folder / "out/run.log"
    assert says(log, "for lack of memory"), log.read_text()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_solution_that_needs_more_than_there_is_ends_the_run_by_its_row(folder, workers):
    run = words(folder, "too_much", {"workers_per_node": workers})
    printed = qdsweep(*run, cwd=folder, code=1)
    names_all(printed, "memory", "solution ", "evaluation seed", "mem_mb_per_worker", "shortage.py")
    state = folder / "out/state"
    assert printed.count("for lack of memory") == 2
    stop = read_json(state / "last_stop.json")
    assert (stop["cause"], stop["memory_stops"]) == ("memory", 1)
    assert not (state / "failure.json").exists() and list(state.glob("reload-*.pkl"))


def test_a_leak_of_file_handles_ends_with_its_process(folder, expected):
    run = words(folder, "handles", {"workers_per_node": 2})
    printed = qdsweep(*run, cwd=folder)
    assert "for lack of file handles" in printed
    assert outcome(folder / "out") == expected


def test_handles_that_stay_open_in_the_only_process_end_the_run(folder):
    done = subprocess.run(
        [BIN / "qdsweep", *map(str, words(folder, "handles", {"workers_per_node": 1}))],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1
    names_all(done.stderr, "file handles", "ulimit -n", "shortage.py")
    assert read_json(folder / "out/state/last_stop.json")["cause"] == "storage"


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a small tmpfs needs root")
def test_a_full_disk_is_waited_for(folder, expected):
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], check=True)
    try:
        (disk / "other").write_bytes(bytes(200_000))
        run = [BIN / "qdsweep", *map(str, words(folder, "disk", {"workers_per_node": 1}))]
        process = subprocess.Popen(run, stderr=subprocess.DEVNULL)
        wait_until(lambda: says(folder / "out/state/run.log", "for lack of disk space"))
        (disk / "other").unlink()
        assert process.wait(300) == 0
        assert outcome(folder / "out") == expected
        (disk / "other").write_bytes(bytes(200_000))
        (folder / "out").rename(folder / "first")
        printed = qdsweep(*words(folder, "disk", {"workers_per_node": 1}), cwd=folder, code=1)
        names_all(printed, "disk space", "TMPDIR", os.strerror(28))
    finally:
        subprocess.run(["umount", disk], check=True)
