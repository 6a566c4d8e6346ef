"""Runs that are forked from the warm process have the same results; test_kills.py kills it."""

import contextlib
import os
import signal
import socket
import subprocess
from pathlib import Path

import psutil
import pytest
from in_process import compute_sweep
from leftovers import words_of
from patient import EXPERIMENT, add_plugin
from results import digest, digests, read_json, summary
from support import BIN, REPO, command, snakemake, write_yaml
from waiting import wait_until

# Without keys that not every algorithm has.
SETTINGS = {key: value for key, value in EXPERIMENT.items() if key != "initial_solutions"}
SWEEP = "::: algorithm map_elites map_elites_line ::: seed 1 2"
# CMA-ES is first compiled for some seconds, which the other tests do not need.
COMPILED = "::: algorithm map_elites cma_me ::: seed 1 2"


def write_sweep(folder: Path, sweep: str = SWEEP) -> list[str]:
    add_plugin(folder)
    config = {"name": "warm", "experiment": SETTINGS, "sweep": sweep}
    write_yaml(folder / "sweep.yaml", config)
    return ["--cores", "2", "--configfile", "sweep.yaml", "--until", "qd_run"]


def socket_of(folder: Path) -> Path:
    """The socket of the warm process."""
    return Path(processes(folder, "qdsweep")[0].environ()["QDSWEEP_WARM"])


def start(folder: Path, words: list[str], **env: str) -> subprocess.Popen:
    words = [str(BIN / "snakemake"), "-s", str(REPO / "Snakefile"), "--directory", ".", *words]
    with (folder / "snakemake.log").open("a") as log:
        return subprocess.Popen(
            words,
            cwd=folder,
            stdout=log,
            stderr=log,
            env={**os.environ, **env},
            start_new_session=True,
        )


def processes(folder: Path, module: str) -> list[psutil.Process]:
    """The processes in a folder whose command is `python -P -m MODULE ...`."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "cwd"])
        if (process.info["cmdline"] or [])[1:4] == ["-P", "-m", module]
        and process.info["cwd"] == str(folder)
    ]


def warm_process(folder: Path) -> psutil.Process:
    (server,) = [p for p in processes(folder, SERVER) if p.ppid() not in map(int, pids(folder))]
    return server


def pids(folder: Path) -> list[int]:
    return [process.pid for process in processes(folder, SERVER)]


def half_way(folder: Path) -> tuple[str, int]:
    """A run in progress that has saved its state, and its process."""
    for lock in folder.glob("results/runs/*/state/lock"):
        if lock.read_text() and list(lock.parent.glob("reload-*.pkl")):
            return lock.parent.parent.name, read_json(lock)["pid"]
    return "", 0


SERVER = "qdsweep.warm.server"
SLOW = {"PATIENT_SECONDS": "0.01"}


def results_of(folder: Path, sweep: str) -> dict[str, str]:
    """The results without Snakemake and without a fork."""
    add_plugin(folder)
    with contextlib.chdir(folder):
        compute_sweep(folder / "results", SETTINGS, sweep)
    return digests(folder)


@pytest.fixture(scope="module")
def cold(tmp_path_factory) -> dict[str, str]:
    return results_of(tmp_path_factory.mktemp("cold"), SWEEP)


def finish(folder: Path, process: subprocess.Popen, cold: dict[str, str]) -> None:
    assert process.wait(300) == 0, (folder / "snakemake.log").read_text()
    assert digests(folder) == cold
    wait_until(lambda: not pids(folder), what="no process is left")


def test_forked_runs_give_the_same_results_and_leave_nothing(tmp_path):
    cold = results_of(tmp_path / "cold", COMPILED)
    process = start(tmp_path, write_sweep(tmp_path, COMPILED), **SLOW)
    wait_until(lambda: len(pids(tmp_path)) == 3, what="two runs, forked from the warm process")
    warm = warm_process(tmp_path)
    assert warm.num_threads() == 1, "otherwise it cannot be forked safely"
    place = socket_of(tmp_path)
    assert place.parent.stat().st_mode & 0o777 == 0o700
    for nonsense in (b"", b"\0\0\0\2{}", b"\0\0\0\xff{"):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(str(place))
            stranger.sendall(nonsense)
    finish(tmp_path, process, cold)
    assert not place.parent.exists()
    assert (tmp_path / ".snakemake/log/qdsweep-warm.log").read_text() == ""
    runs = list((tmp_path / "results/runs").iterdir())
    assert [len(summary(run)["attempts"]) for run in runs] == [1] * 4


def test_torch_has_the_settings_of_a_process_of_its_own(tmp_path):
    """MKL reads them at its first call, in the fork. This can only fail on a CPU with AVX-512."""
    pytest.importorskip("stable_baselines3", reason="torch and stable-baselines3: `make rl`")
    task = {"domain": "rl_cartpole", "algorithm": "ppo", "archive": {"dims": [5, 5]}}
    task |= {"num_emitters": 1, "batch_size": 8, "iterations": 2}
    write_yaml(tmp_path / "sweep.yaml", {"name": "t", "experiment": task, "sweep": "::: seed 1 2"})
    words = ("--cores", "2", "--configfile", "sweep.yaml", "--until", "qd_run")
    snakemake(*words, cwd=tmp_path)
    run, _ = sorted((tmp_path / "results/runs").iterdir())
    command("qdsweep", "run", run / "config.yaml", "--out", "alone", cwd=tmp_path)
    assert digest(run) == digest(tmp_path / "alone")
    assert (tmp_path / ".snakemake/log/qdsweep-warm.log").read_text() == "", "it is rehearsed"


def test_a_client_ends_as_its_run_does_and_takes_it_with_it(tmp_path):
    """Started by hand with standard input closed, so a socket may get its number."""
    process = start(tmp_path, write_sweep(tmp_path), **SLOW)
    wait_until(lambda: half_way(tmp_path)[1], what="a reload file")
    run, pid = half_way(tmp_path)
    (client,) = [p for p in processes(tmp_path, "qdsweep") if run in words_of(p)]
    command, env = client.cmdline(), client.environ()
    os.killpg(process.pid, signal.SIGSTOP)  # it must not start the run again
    client.kill()
    wait_until(lambda: pid not in pids(tmp_path), what="the run has saved and ended")
    state = tmp_path / f"results/runs/{run}/state"
    for number in (signal.SIGKILL, signal.SIGTERM):
        mine = subprocess.Popen(
            command, cwd=tmp_path, env=env, preexec_fn=lambda: os.close(0), stderr=subprocess.PIPE
        )
        wait_until(lambda: (state / "lock").read_text(), what="it runs")
        fork = read_json(state / "lock")["pid"]
        if number == signal.SIGKILL:
            os.kill(fork, number)
            assert mine.wait(300) == -number
            assert b"Traceback" not in mine.stderr.read()
        else:
            mine.kill()
            wait_until(lambda fork=fork: fork not in pids(tmp_path), what="it ends, too")
    os.killpg(process.pid, signal.SIGCONT)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(300)
    wait_until(lambda: not pids(tmp_path), what="all have ended")


def test_without_a_place_for_a_socket_runs_start_by_themselves(tmp_path, cold):
    long = tmp_path / ("x" * 120)
    long.mkdir()
    finish(tmp_path, start(tmp_path, write_sweep(tmp_path), TMPDIR=str(long)), cold)
    assert str(long) in (tmp_path / "snakemake.log").read_text(), "a warning names it"
    assert list(long.glob("qdsweep-*")) == []


def test_stages_are_forked_too_also_when_no_run_is_left(tmp_path):
    words = write_sweep(tmp_path)[:-1]  # until aggregate
    with contextlib.chdir(tmp_path):
        compute_sweep(tmp_path / "results", SETTINGS | {"iterations": 2}, SWEEP)
    config = {"name": "warm", "experiment": SETTINGS | {"iterations": 2}, "sweep": SWEEP}
    write_yaml(tmp_path / "sweep.yaml", config)
    tables = {}
    for mode, env in {"warm": {}, "alone": {"QDSWEEP_WARM": "off"}}.items():
        env["PYTHONPROFILEIMPORTTIME"] = "1"  # each process prints its imports
        snakemake(*words, "aggregate", "--forcerun", "aggregate", cwd=tmp_path, **env)
        sweep = tmp_path / "results/sweeps/warm"
        imports = (sweep / "logs/aggregate.log").read_text()
        assert (" pandas\n" in imports) is (mode == "alone")
        tables[mode] = {path.name: path.read_bytes() for path in sweep.glob("*.csv")}
    assert tables["warm"] == tables["alone"] != {}
    wait_until(lambda: not pids(tmp_path), what="no process is left")


@pytest.mark.parametrize(
    ("sweep", "env"),
    [
        ("::: seed 1", {}),
        ("::: cpu_baseline native avx2 ::: iterations 2", {}),
        ("::: seed 1 2 ::: iterations 2", {"QDSWEEP_WARM": "off"}),
    ],
)
def test_some_runs_start_without_the_warm_process(tmp_path, sweep, env):
    snakemake(*write_sweep(tmp_path), "--config", f"sweep={sweep}", cwd=tmp_path, **env)
    assert not (tmp_path / ".snakemake/log/qdsweep-warm.log").exists()
    assert pids(tmp_path) == []
