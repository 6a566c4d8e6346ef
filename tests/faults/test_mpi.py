"""The mpi engine on one machine. Its ranks are one world, which ends with any rank."""

import os
import re
import signal
import stat
import subprocess
from collections import deque
from functools import partial
from pathlib import Path

import psutil
import pytest
from in_process import qdsweep
from patient import make_folder, undisturbed_digest
from refusals import names_all
from results import digest, read_json, summary
from support import BIN
from waiting import has_workers, says, wait_until

from qdsweep.host.machine import settings

# The environment of a user's shell, without the settings of these tests.
SHELL = {name: value for name, value in os.environ.items() if name not in settings()}
RUN = [BIN / "qdsweep", "run", "experiment.yaml", "--cluster", "cluster.yaml", "--out", "out"]


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> str:
    return undisturbed_digest(tmp_path_factory.mktemp("undisturbed"))


class Live:
    """A run of the mpi engine in the background."""

    def __init__(self, folder: Path, workers: int, seconds: float, keys: str = "", **changes):
        self.folder, self.out = make_folder(folder, **changes), folder / "out"
        self.log = self.out / "state/run.log"
        self.workers = workers
        keys = f"{{engine: mpi, workers_per_node: {workers}, {keys}}}"
        (folder / "cluster.yaml").write_text(keys)
        self.start(seconds)

    def start(self, seconds: float) -> None:
        env = {**SHELL, "PATIENT_SECONDS": str(seconds)}
        self.process = subprocess.Popen(
            RUN, cwd=self.folder, env=env, stderr=subprocess.PIPE, text=True
        )

    def rank(self, number: int) -> psutil.Process:
        """The process of a worker, when all workers are ready."""
        wait_until(lambda: has_workers(self.log, self.workers), 300, "workers")
        (pid,) = re.findall(rf"rank {number} \(process (\d+)", self.log.read_text())
        return psutil.Process(int(pid))

    def main(self) -> psutil.Process:
        """The process of rank 0."""
        return psutil.Process(read_json(self.out / "state/lock")["pid"])

    def nothing_is_left(self) -> None:
        def here() -> list[psutil.Process]:
            others = (p for p in psutil.process_iter(["cwd"]) if p.pid != os.getpid())
            return [process for process in others if process.info["cwd"] == str(self.folder)]

        wait_until(lambda: not here(), what="all ranks and their launcher have ended")


def test_any_number_of_workers_gives_the_result_of_the_serial_engine(tmp_path, expected):
    """Other tests have two and three."""
    for run in [Live(tmp_path / str(n), workers=n, seconds=0) for n in (1, 4)]:
        assert run.process.wait(300) == 0
        assert digest(run.out) == expected
        about = summary(run.out)
        assert (about["engine"], about["workers"]) == ("mpi", run.workers)
        for rank in range(1, run.workers + 1):
            assert says(run.out / "run.log", f"[rank {rank}] evaluates"), "prints reach the log"
        run.nothing_is_left()


def is_asleep(rank: psutil.Process, looks: deque[set[str]]) -> bool:
    """Whether its threads slept at the last checks. A rank that polls constantly never sleeps."""
    threads = Path(f"/proc/{rank.pid}/task").glob("*/stat")
    looks.append({thread.read_text().rpartition(")")[2].split()[0] for thread in threads})
    return list(looks) == 5 * [{"S"}]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_run_saves_at_once_and_resumes_on_another_engine(tmp_path, number):
    few = {"initial_solutions": 2}
    run = Live(tmp_path, workers=3, seconds=20.0, **few)
    ranks = [*(run.rank(n) for n in (1, 2, 3)), run.main()]
    for rank in ranks:  # two evaluate, one has nothing to do
        wait_until(partial(is_asleep, rank, deque(maxlen=5)), what="it rests")
    run.process.send_signal(number)
    assert run.process.wait(300) == 75
    run.nothing_is_left()
    saved = read_json(run.out / "state/status.json")
    assert saved["iteration"] == 0, "it does not wait for an evaluation"
    qdsweep("run", "experiment.yaml", "--out", "out", cwd=tmp_path)
    assert digest(run.out) == undisturbed_digest(tmp_path / "undisturbed", **few)


def test_a_killed_rank_is_named_and_the_same_command_resumes(tmp_path, expected):
    run = Live(tmp_path, workers=2, seconds=0.1)
    rank = run.rank(1)
    wait_until(lambda: [*run.out.glob("state/reload-*")], what="a reload file")
    rank.kill()
    assert run.process.wait(300) == 1
    names_all(run.process.stderr.read(), "mpiexec", "same command")
    assert not (run.out / "state/failure.json").exists(), "a retry resumes"
    run.start(0)
    assert run.process.wait(300) == 0
    assert digest(run.out) == expected


def script(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_rank_with_other_versions_is_rejected(tmp_path, expected):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/sitecustomize.py").write_text(
        "import importlib.metadata as m; real = m.version\n"
        "m.version = lambda name: '0.0' if name == 'numpy' else real(name)\n"
    )
    other = f"[ $PMI_RANK = 2 ] && export PYTHONPATH={tmp_path}/other"
    of_a_rank = script(tmp_path / "one.sh", other, 'exec "$@"')
    launcher = script(tmp_path / "all.sh", "n=$2; shift 2", f'{BIN}/mpiexec -n $n {of_a_rank} "$@"')
    run = Live(tmp_path, 3, 0.02, f"mpi: {{launcher: {launcher}}}")
    assert run.process.wait(300) == 0, run.process.stderr.read()
    assert re.search(r"rank 2 .* numpy 0\.0 ", (run.out / "run.log").read_text())
    assert has_workers(run.out / "run.log", 2) and not has_workers(run.out / "run.log", 3)
    assert digest(run.out) == expected


def test_what_cannot_start_is_refused_before_any_work(tmp_path):
    lonely = script(tmp_path / "lonely", "shift 2", 'exec "$@"')
    (tmp_path / "without").mkdir()
    (tmp_path / "without/sitecustomize.py").write_text("import sys; sys.modules['mpi4py'] = None")
    for name, launcher, names in (
        ("one", "nowhere", ["nowhere", "PATH", "mpi: {launcher: "]),
        ("two", lonely, [3, 1, "srun --mpi=pmix"]),
        ("three", "mpiexec", ["`make extras`"]),
    ):
        if name == "three":
            SHELL["PYTHONPATH"] = str(tmp_path / "without")
        run = Live(tmp_path / name, 2, 0, f"mpi: {{launcher: {launcher}}}")
        SHELL.pop("PYTHONPATH", None)
        assert run.process.wait(300) == 2
        names_all(run.process.stderr.read(), *names)
        assert not (run.out / "state/metrics.csv").exists()
