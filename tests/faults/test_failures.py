"""Evaluations, disks and folders that go wrong."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from in_process import compute_run, qdsweep
from plugins import FAULTY, SHRINKING
from results import digest, read_json, steps, summary
from support import BIN, TINY, command, cpu_seconds, write_yaml
from waiting import wait_until, workers_of

from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.engines import make_engine
from qdsweep.engines.base import Batch
from qdsweep.host.lock import Lock, Locked
from qdsweep.records.paths import Results
from qdsweep.records.plan import write_configs
from qdsweep.sweep.runs import table_of_runs

EXPERIMENT = {
    "domain": {"type": "faulty:Faulty", "name": "faulty"},
    "algorithm": "map_elites",
    "archive": {"dims": [8, 8]},
    "num_emitters": 1,
    "batch_size": 16,
    "initial_solutions": 16,
    "iterations": 30,
}


@pytest.fixture(scope="module")
def config(tmp_path_factory) -> Path:
    """The plug-ins, in one place: this process imports one module of a name."""
    folder = tmp_path_factory.mktemp("config")
    (folder / "plugins").mkdir()
    (folder / "plugins/faulty.py").write_text(FAULTY)
    (folder / "plugins/shrinking.py").write_text(SHRINKING)
    return folder


@pytest.fixture
def folder(config, tmp_path) -> Path:
    (tmp_path / "config").symlink_to(config)
    return tmp_path


@pytest.fixture
def tiny(tmp_path) -> Path:
    """The file of an experiment without a fault."""
    return write_yaml(tmp_path / "experiment.yaml", {**TINY, "algorithm": "map_elites"})


def write_faulty(folder: Path, how: str = "raise", **changes) -> None:
    experiment = {**EXPERIMENT, **changes}
    experiment["domain"] = {**experiment["domain"], "arguments": {"how": how}}
    write_yaml(folder / "faulty.yaml", experiment)


def run(folder: Path, how: str, *words: object, code: int, **changes) -> str:
    """Computes a run in this process; returns what it says."""
    write_faulty(folder, how, **changes)
    file = folder / "faulty.yaml"
    return qdsweep("run", file, "--out", "out", *words, cwd=folder, code=code)


def started(folder: Path, *words: str) -> subprocess.Popen:
    """A run in the background."""
    return subprocess.Popen(
        [BIN / "qdsweep", "run", "faulty.yaml", "--out", "out", *words],
        cwd=folder,
        stderr=subprocess.DEVNULL,
    )


SLOW = {"domain": {"type": "faulty:Slow", "name": "slow"}}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("raise", "RuntimeError: the simulator exploded"),
        ("nan", "objective is NaN or infinite"),
        ("inf", "measures is NaN or infinite"),
        ("shape", "measures has the shape (1, 1), not (1, 2)"),
        ("sys.exit", "SystemExit: 0"),
        ("in place", "read-only"),
        ("complex", "objective holds complex128, not real numbers"),
    ],
)
def test_a_failing_evaluation_stops_the_run_and_is_named(folder, how, words, workers):
    said = run(folder, how, "--workers", workers, code=1)
    for word in (words, "solution", "evaluation seed", "process"):
        assert word in said
    state = folder / "out/state"
    failure = read_json(state / "failure.json")
    assert failure["seed"] % 40 == 7
    kept = np.load(state / "failed_solution.npz")
    assert kept["solution"].shape == (4,)
    assert kept["seed"] == failure["seed"]
    assert ("Traceback" in failure["traceback"]) == (how not in ("nan", "inf", "shape"))
    assert list(state.glob("reload-*.pkl")), "the run saves before it stops"
    assert read_json(state / "status.json")["status"] == "failed"


def test_on_failure_scores_counts_and_goes_on(folder):
    results = []
    for workers in (1, 2):
        said = run(folder, "raise", "--workers", workers, on_failure={"objective": -50.0}, code=0)
        assert "scored, not evaluated" in said
        results.append(summary(folder / "out"))
        shutil.rmtree(folder / "out")
    assert results[0]["archive_digest"] == results[1]["archive_digest"]
    assert results[0]["failures"] == results[1]["failures"] > 0


def test_lists_and_ints_give_one_digest_with_any_number_of_workers(folder):
    found = []
    for workers in (1, 2):
        run(folder, "ints", "--workers", workers, code=0)
        found.append(digest(folder / "out"))
        shutil.rmtree(folder / "out")
    assert found[0] == found[1]


def test_a_retry_of_a_failure_ends_at_once_with_the_same_message(folder):
    run(folder, "raise", code=1)
    name = read_json(folder / "out/state/status.json")["id"]
    (folder / "results/runs").mkdir(parents=True)
    shutil.move(folder / "out", folder / "results/runs" / name)
    before = cpu_seconds()
    words = ("launch", name, "--budget", "iterations=30", "--attempt", "2")
    done = command("qdsweep", *words, cwd=folder, check=1)
    assert cpu_seconds() - before < 3
    assert "not tried again, it failed before" in done.stderr
    assert "the simulator exploded" in done.stderr
    # Typed again by the user it is tried again.
    assert "not tried again" not in qdsweep(*words[:-1], "1", cwd=folder, code=1)


@pytest.fixture
def plugin(folder):
    """Its file, which a test may change."""
    file = folder / "config/plugins/faulty.py"
    yield file
    file.write_text(FAULTY)


def test_a_retry_of_bad_input_ends_at_once_with_the_same_message(folder, plugin):
    """The plug-in changes between the start of a sweep and one of its jobs."""
    domain = {**EXPERIMENT["domain"], "arguments": {"how": "well"}}
    made = table_of_runs({**EXPERIMENT, "domain": domain}, "::: seed 1")
    (name,) = made.runs
    write_configs(made.runs, Results(folder / "results"))
    plugin.write_text(FAULTY + "\nCHANGED = 1\n")
    state = folder / "results/runs" / name / "state"
    words = ("launch", name, "--budget", "iterations=2", "--attempt")
    first = qdsweep(*words, 1, cwd=folder, code=2)
    assert "source of its module:Class has changed" in first
    failure = read_json(state / "failure.json")
    assert failure["message"] in first and name.endswith(failure["fingerprint"])
    again = qdsweep(*words, 2, cwd=folder, code=1)
    assert f"not tried again, it failed before: {failure['message']}" in again
    log = (state.parent / "run.log").read_text().splitlines()
    assert "not tried again" in log[-1] and "has changed" in log[0]
    # Typed again by the user it is tried again, and mended it runs.
    assert "not tried again" not in qdsweep(*words, 1, cwd=folder, code=2)
    plugin.write_text(FAULTY)
    qdsweep(*words, 2, cwd=folder)
    assert not (state / "failure.json").exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_an_evaluation_that_hangs_stops_the_run(folder, workers):
    start = time.monotonic()
    said = run(folder, "hang", "--workers", workers, timeout=2.0, code=1)
    assert "nothing was evaluated for timeout = 2 s" in said
    assert time.monotonic() - start < 40
    assert list((folder / "out/state").glob("reload-*.pkl"))


def test_a_worker_that_dies_again_and_again_ends_the_run(folder):
    said = run(folder, "exit", "--workers", 2, code=1)
    assert "a worker died 3 times in one batch" in said
    assert read_json(folder / "out/state/last_stop.json")["cause"] == "memory"


def test_an_emitter_of_the_users_goes_on_bit_for_bit(folder):
    emitter = {"type": "shrinking:Shrinking", "arguments": {"rate": 0.99}}
    algorithm = {"archive": {"type": "grid"}, "emitters": [emitter]}
    experiment = EXPERIMENT | SLOW | {"algorithm": algorithm}
    del experiment["initial_solutions"]
    write_yaml(folder / "own.yaml", experiment)
    for out, lengths in (("straight", [6]), ("in_two", [3, 6])):
        for length in lengths:
            words = (folder / "own.yaml", "--set", f"iterations={length}", "--out", out)
            qdsweep("run", *words, cwd=folder)
    assert digest(folder / "straight") == digest(folder / "in_two")


def test_no_row_is_lost_when_workers_die_between_two_batches(tmp_path):
    experiment = compose("lp_sphere")
    cluster = Cluster(engine="processes", workers_per_node=2)
    engine = make_engine(cluster, experiment, make_domain(experiment.domain), tmp_path, None, {})
    solutions = np.random.default_rng(1).normal(size=(30, 100))
    batch = Batch(solutions, np.zeros(30, dtype=np.uint32))

    def rows() -> list[int]:
        parts = [part for part, _ in engine.evaluate(batch, [slice(0, 30)])]
        return sorted(row for part in parts for row in range(part.start, part.stop))

    assert rows() == list(range(30))
    workers = workers_of(tmp_path)
    assert len(workers) == 2
    for worker in workers:
        worker.kill()
    assert rows() == list(range(30))
    engine.close()


def test_a_large_archive_is_saved_within_ten_seconds_of_a_signal(folder):
    """100 x 100 cells of 1,000-d solutions."""
    wide = {
        "domain": {"type": "faulty:Wide", "name": "wide"},
        "archive": {"dims": [100, 100]},
        "batch_size": 2000,
        "initial_solutions": 60_000,
        "sigma": 1.0,
        "iterations": 100_000,
        "reload": {"min_seconds": 1000.0, "max_seconds": 1000.0},
    }
    write_yaml(folder / "faulty.yaml", EXPERIMENT | wide)
    process = started(folder)
    status = folder / "out/state/status.json"
    wait_until(lambda: status.exists() and read_json(status).get("num_elites", 0) >= 9900, 300)
    assert process.poll() is None
    start = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 75
    seconds = time.monotonic() - start
    print(f"{seconds:.2f} s from the signal to the exit")
    assert seconds < 10
    assert next((folder / "out/state").glob("reload-*.pkl")).stat().st_size > 79e6


def test_max_seconds_stops_in_time_and_goes_on(folder):
    write_faulty(folder, iterations=60, **SLOW)
    words = ("run", folder / "faulty.yaml", "--out", "out")
    began = time.time()
    done = command("qdsweep", *words, "--max-seconds", 16, cwd=folder, check=75)
    saved = (folder / "out/state/last_stop.json").stat().st_mtime
    assert saved - began < 16
    assert "stopped by the end of the wall time and saved" in done.stderr
    assert read_json(folder / "out/state/last_stop.json")["cause"] == "stopped"
    qdsweep(*words, cwd=folder)
    assert [attempt["how"] for attempt in summary(folder / "out")["attempts"]] == [
        "the end of the wall time",
        "finished",
    ]


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a small tmpfs needs root")
def test_a_full_disk_leaves_the_last_reload_file_whole(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    longer = {**TINY, "iterations": 4000, "reload": {"min_seconds": 0.05}}
    experiment = write_yaml(tmp_path / "experiment.yaml", longer)
    words = ("run", experiment, "--out", disk / "out")
    straight = digest(compute_run(experiment, tmp_path / "straight"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk], check=True)
    try:
        said = qdsweep(*words, cwd=tmp_path, code=1)
        assert "No space left on device" in said
        assert "Traceback" not in said
        assert list((disk / "out/state").glob("reload-*.pkl"))
        subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
        assert "goes on after iteration" in qdsweep(*words, cwd=tmp_path)
        assert digest(disk / "out") == straight
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_read_only_folder_is_one_clear_message(tmp_path, tiny):
    parent = tmp_path / "locked"
    parent.mkdir()
    root = os.getuid() == 0
    if root:  # to whom a mode means nothing
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", parent], check=True)
    else:
        parent.chmod(0o555)
    try:
        done = command("qdsweep", "run", tiny, "--out", parent / "out", check=1)
    finally:
        if root:
            subprocess.run(["umount", parent], check=True)
    assert f"{parent / 'out'}" in done.stderr
    assert "cannot be written" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_reload_file_of_another_run_is_refused(tmp_path, tiny):
    for seed in (1, 2):
        compute_run(tiny, tmp_path / f"{seed}", seed=seed)
    state = tmp_path / "2/state"
    (reload_file,) = (tmp_path / "1/state").glob("reload-*.pkl")
    shutil.copy(reload_file, state / "reload-000000013.pkl")
    words = ("--set", "seed=2", "--set", "iterations=14", "--out", tmp_path / "2")
    said = qdsweep("run", tiny, *words, cwd=tmp_path, code=2)
    assert "is a reload file of another experiment" in said


def test_the_folder_of_another_run_is_left_as_it_is(tmp_path, tiny):
    out = tmp_path / "out"
    qdsweep("run", tiny, "--out", out, cwd=tmp_path)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    before.pop(out / "state/lock", None)
    words = ("run", tiny, "--set", "seed=2", "--out", out)
    assert "give another --out" in qdsweep(*words, cwd=tmp_path, code=2)
    assert {path: path.read_bytes() for path in before} == before
    assert not (out / "state/failure.json").exists()


@pytest.mark.parametrize("name", ["archive.npz", "metrics.csv", "summary.json"])
def test_torn_results_are_made_anew(tmp_path, tiny, name):
    out = tmp_path / "out"
    words = ("run", tiny, "--out", out)
    qdsweep(*words, cwd=tmp_path)
    before = digest(out), steps(out)
    torn = out / "state" / name
    content = torn.read_bytes()
    torn.unlink()
    if name == "archive.npz":  # its end is whole, its middle is not
        middle = len(content) // 2
        torn.write_bytes(content[:middle] + b"x" * 40 + content[middle + 40 :])
    else:
        torn.write_bytes(content[: len(content) // 2])
    qdsweep(*words, cwd=tmp_path)
    assert (digest(out), steps(out)) == before
    with np.load(out / "archive.npz") as kept:
        assert len(kept["objective"]) == summary(out)["num_elites"]


HOLD = """
import sys, time
from pathlib import Path
from qdsweep.host.lock import Lock
with Lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_is_held_named_and_taken_over_from_the_dead(tmp_path):
    path = tmp_path / "state/lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    with pytest.raises(Locked, match=f"process {holder.pid} on"), Lock(path, wait=0.6):
        pass
    assert Locked("").exit_code == 75
    holder.kill()
    holder.wait()
    with Lock(path, wait=5):
        assert json.loads(path.read_text())["pid"] == os.getpid()
    assert path.read_text() == ""


def test_two_processes_that_start_one_run_compute_it_once(tmp_path, tiny):
    words = [BIN / "qdsweep", "run", tiny, "--out", tmp_path / "out"]
    both = [subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    printed = [process.communicate(timeout=120)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum("is finished already" in text for text in printed) == 1
    assert sum("a new run" in text for text in printed) == 1
