"""Evaluations, disks and folders that go wrong."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import counting
import numpy as np
import pytest
from in_process import compute_run, qdsweep
from plugins import FAULTY, SHRINKING
from refusals import names_all, refused
from results import digest, read_json, steps, summary
from support import BIN, TINY, command, write_yaml
from waiting import wait_until, workers_of

from qdsweep.config.cluster import Cluster
from qdsweep.config.compose import compose
from qdsweep.domains import make_domain
from qdsweep.engines import make_engine
from qdsweep.engines.batch import Batch
from qdsweep.experiment import reload
from qdsweep.host.lock import Lock, Locked
from qdsweep.records.paths import Results, RunDir
from qdsweep.records.plan import write_configs
from qdsweep.records.status import read_status
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
    """The plug-ins in one folder, as this process imports only one module of a name."""
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
    """Computes a run in this process, and returns its output."""
    write_faulty(folder, how, **changes)
    file = folder / "faulty.yaml"
    return qdsweep("run", file, "--out", "out", *words, cwd=folder, code=code)


SLOW = {"domain": {"type": "faulty:Slow", "name": "slow"}}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("how", "names"),
    [
        ("raise", ["RuntimeError", "exploded", "faulty.py, line"]),
        ("nan", ["objective"]),
        ("inf", ["measures"]),
        ("shape", ["measures", "(1, 1)", "(1, 2)"]),
        ("sys.exit", ["SystemExit: 0"]),
        ("in place", ["ValueError"]),
        ("complex", ["objective", "complex128"]),
    ],
)
def test_a_failing_evaluation_stops_the_run_and_is_named(folder, how, names, workers):
    printed = run(folder, how, "--workers", workers, code=1)
    state = folder / "out/state"
    failure = read_json(state / "failure.json")
    names_all(printed, *names, failure["seed"])
    assert failure["seed"] % 40 == 7
    kept = np.load(state / "failed_solution.npz")
    assert kept["solution"].shape == (4,)
    assert kept["seed"] == failure["seed"]
    assert ("Traceback" in failure["traceback"]) == (how not in ("nan", "inf", "shape"))
    assert list(state.glob("reload-*.pkl")), "the run saves before it stops"
    assert read_json(state / "status.json")["status"] == "failed"


@pytest.mark.parametrize(
    ("how", "changes"), [("raise", {"on_failure": {"objective": -50.0}}), ("ints", {})]
)
def test_scored_failures_and_lists_of_ints_give_one_digest(folder, how, changes):
    results = []
    for workers in (1, 2):
        run(folder, how, "--workers", workers, code=0, **changes)
        results.append(summary(folder / "out"))
        shutil.rmtree(folder / "out")
    first, second = ((result["archive_digest"], result["failures"]) for result in results)
    assert first == second
    assert (first[1] > 0) == bool(changes)


def attempts(state: Path) -> int:
    return len(read_json(state / "status.json")["attempts"])


def test_a_retry_of_a_failure_ends_at_once_with_the_same_message(folder):
    run(folder, "raise", code=1)
    name = read_json(folder / "out/state/status.json")["id"]
    (folder / "results/runs").mkdir(parents=True)
    state = shutil.move(folder / "out", folder / "results/runs" / name) / "state"
    words = ("launch", name, "--budget", "iterations=30", "--attempt")
    names_all(qdsweep(*words, 2, cwd=folder, code=1), "the simulator exploded")
    assert attempts(state) == 1, "it was not tried"
    qdsweep(*words, 1, cwd=folder, code=1)
    assert attempts(state) == 2, "a new start by the user tries it"


@pytest.fixture
def plugin(folder):
    """Its file, which tests may change."""
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
    failure = read_json(state / "failure.json")
    assert failure["message"] in first and name.endswith(failure["fingerprint"])
    names_all(qdsweep(*words, 2, cwd=folder, code=1), failure["message"])
    # A new start by the user tries it again (its own exit code). After the fix it runs.
    qdsweep(*words, 1, cwd=folder, code=2)
    plugin.write_text(FAULTY)
    qdsweep(*words, 2, cwd=folder)
    assert not (state / "failure.json").exists()


def test_a_run_that_is_extended_has_no_published_results(tmp_path):
    """Tables of an unfinished sweep then have its newest snapshot."""
    counting.add_plugin(tmp_path)
    made = table_of_runs(counting.EXPERIMENT, "::: seed 1")
    (name,) = made.runs
    write_configs(made.runs, Results(tmp_path / "results"))
    run_dir = Results(tmp_path / "results").run(name)
    qdsweep("launch", name, "--budget", "evaluations=20", cwd=tmp_path)
    assert read_json(run_dir.summary)["evaluations"] == 20
    (tmp_path / "hold").touch()
    words = [BIN / "qdsweep", "launch", name, "--budget", "evaluations=40"]
    process = subprocess.Popen(words, cwd=tmp_path)
    wait_until(lambda: read_status(run_dir.state).status == "running")
    assert not run_dir.summary.exists()
    (tmp_path / "hold").unlink()
    assert process.wait() == 0
    assert read_json(run_dir.summary)["evaluations"] == 40


@pytest.mark.parametrize("workers", [1, 2])
def test_an_evaluation_that_hangs_stops_the_run(folder, workers):
    names_all(run(folder, "hang", "--workers", workers, timeout=2.0, code=1), "timeout", "2 s")
    assert list((folder / "out/state").glob("reload-*.pkl"))


def test_a_worker_that_dies_again_and_again_ends_the_run(folder):
    names_all(run(folder, "exit", "--workers", 2, code=1), "worker", "exit code 3.", "os._exit")
    assert read_json(folder / "out/state/failure.json")["cause"] == "failure"
    forgotten = shutil.move(folder / "out", folder / "earlier") / "state/run.log"
    assert forgotten.read_text().count("(exit code 3) is lost") >= 3
    run(folder, "killed", "--workers", 2, code=1)
    assert read_json(folder / "out/state/last_stop.json")["cause"] == "memory"
    assert "(SIGKILL) is lost" in (folder / "out/run.log").read_text()


def test_a_users_emitter_resumes_bit_for_bit(folder):
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


def test_an_error_of_a_users_emitter_has_its_line(folder):
    emitter = {"type": "shrinking:Shrinking", "arguments": {"rate": "fast"}}
    algorithm = {"archive": {"type": "grid"}, "emitters": [emitter]}
    experiment = EXPERIMENT | SLOW | {"algorithm": algorithm}
    del experiment["initial_solutions"]
    write_yaml(folder / "own.yaml", experiment)
    printed = qdsweep("run", folder / "own.yaml", "--out", "out", cwd=folder, code=1)
    message = read_json(folder / "out/state/failure.json")["message"]
    for text in (printed, message):
        names_all(text, "shrinking.py, line", "self._sigma * self.rate")


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


def test_max_seconds_stops_in_time_and_the_run_resumes(folder):
    write_faulty(folder, iterations=60, **SLOW)
    words = ("run", folder / "faulty.yaml", "--out", "out")
    qdsweep(*words, "--max-seconds", 16, cwd=folder, code=75)
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
    longer = {**TINY, "iterations": 1000, "reload": {"min_seconds": 0.05}}
    experiment = write_yaml(tmp_path / "experiment.yaml", longer)
    words = ("run", experiment, "--out", disk / "out")
    straight = digest(compute_run(experiment, tmp_path / "straight"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", disk], check=True)
    try:
        printed = qdsweep(*words, cwd=tmp_path, code=1)
        names_all(printed, os.strerror(errno.ENOSPC))
        assert "Traceback" not in printed
        assert list((disk / "out/state").glob("reload-*.pkl"))
        subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
        qdsweep(*words, cwd=tmp_path)
        assert summary(disk / "out")["attempts"][-1]["from"] > 0
        assert digest(disk / "out") == straight
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_read_only_folder_is_one_clear_message(tmp_path, tiny):
    parent = tmp_path / "locked"
    parent.mkdir()
    root = os.getuid() == 0
    if root:  # root may ignore modes
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", parent], check=True)
    else:
        parent.chmod(0o555)
    try:
        done = command("qdsweep", "run", tiny, "--out", parent / "out", check=1)
    finally:
        if root:
            subprocess.run(["umount", parent], check=True)
    names_all(done.stderr, parent / "out")
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_reload_file_of_another_run_is_refused(tmp_path, tiny):
    for seed in (1, 2):
        compute_run(tiny, tmp_path / f"{seed}", seed=seed)
    state = tmp_path / "2/state"
    (reload_file,) = (tmp_path / "1/state").glob("reload-*.pkl")
    shutil.copy(reload_file, state / "reload-000000013.pkl")
    words = ("--set", "seed=2", "--set", "iterations=14", "--out", tmp_path / "2")
    names_all(qdsweep("run", tiny, *words, cwd=tmp_path, code=2), "reload-000000013.pkl")


def test_the_folder_of_another_run_is_left_as_it_is(tmp_path, tiny):
    out = tmp_path / "out"
    qdsweep("run", tiny, "--out", out, cwd=tmp_path)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    before.pop(out / "state/lock", None)
    words = ("run", tiny, "--set", "seed=2", "--out", out)
    names_all(qdsweep(*words, cwd=tmp_path, code=2), out, "--out")
    assert {path: path.read_bytes() for path in before} == before
    assert not (out / "state/failure.json").exists()


@pytest.mark.parametrize("name", ["archive.npz", "metrics.csv", "summary.json"])
def test_truncated_results_are_written_again(tmp_path, tiny, name):
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
    with refused(holder.pid, kind=Locked), Lock(path, wait=0.6):
        pass
    assert Locked("").exit_code == 75
    holder.kill()
    holder.wait()
    with Lock(path, wait=5):
        assert json.loads(path.read_text())["pid"] == os.getpid()
    assert path.read_text() == ""


def test_two_processes_that_start_one_run_compute_it_once(tmp_path, tiny):
    words = [BIN / "qdsweep", "run", tiny, "--out", tmp_path / "out"]
    both = [subprocess.Popen(words, stderr=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait(300) for process in both] == [0, 0]
    assert len(summary(tmp_path / "out")["attempts"]) == 1


# Its process gets signals when all is done, while Python ends.
LATE_SIGNALS = """
import atexit, os, signal, sys
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
    atexit.register(os.kill, os.getpid(), number)
from qdsweep.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_signal_after_the_end_changes_no_exit_code(tiny, tmp_path):
    words = ["-c", LATE_SIGNALS, "run", str(tiny), "--out", "out"]
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert summary(tmp_path / "out")["status"] == "finished"


def test_a_start_does_some_work_however_short_its_time(tiny, tmp_path):
    """The next one is refused, because it is known how long a start takes."""
    words, limit, out = ("run", tiny, "--out", "out"), ("--max-seconds", "0.5"), tmp_path / "out"
    command("qdsweep", *words, *limit, cwd=tmp_path, check=75)
    saved = reload.last_saved(RunDir(out).state)
    assert saved.state.iterations or saved.state.pending.done.any()
    command("qdsweep", *words, cwd=tmp_path)
    more = ("--set", "iterations=1000000")
    refusal = command("qdsweep", *words, *more, *limit, cwd=tmp_path, check=2)
    names_all(refusal.stderr, "max_seconds = 0.5")
