"""The dask engine on one machine: workers that come, go and die, and rejected ones."""

import json
import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil
import pytest
from patient import add_plugin, make_folder, undisturbed_digest
from refusals import names_all
from results import digest
from support import BIN
from waiting import crew_of, has_lost, has_workers, says, wait_until

from qdsweep.config.cluster import DaskCluster
from qdsweep.host.machine import settings

DASK = "engine: dask\nworkers_per_node: 3\n"
# The environment of a user's shell, without the settings of these tests.
SHELL = {name: value for name, value in os.environ.items() if name not in settings()}


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> str:
    return undisturbed_digest(tmp_path_factory.mktemp("undisturbed"))


class Live:
    """A run of the dask engine in the background."""

    def __init__(self, folder: Path, cluster: str = DASK, seconds: float = 0.02, **env: str):
        self.folder, self.out = make_folder(folder), folder / "out"
        self.log = self.out / "state/run.log"
        (folder / "cluster.yaml").write_text(cluster)
        words = ["run", "experiment.yaml", "--cluster", "cluster.yaml", "--out", "out"]
        self.process = subprocess.Popen(
            [BIN / "qdsweep", *words],
            cwd=folder,
            env={**SHELL, "PATIENT_SECONDS": str(seconds), **env},
            stderr=subprocess.PIPE,
            text=True,
        )

    @classmethod
    def held(cls, folder: Path, cluster: str, **env: str) -> "Live":
        """A run whose evaluations wait until `release`, so other workers can join it in time."""
        (folder / "hold").touch()
        return cls(folder, cluster, **env, seconds=0.05, PATIENT_HOLD=str(folder / "hold"))

    def release(self) -> None:
        (self.folder / "hold").unlink()

    def ready(self, workers: int = 3) -> "Live":
        wait_until(lambda: has_workers(self.log, workers), 300, "workers")
        return self

    def crew(self) -> list[psutil.Process]:
        return crew_of(self.folder)


def test_the_result_is_that_of_the_serial_engine(tmp_path, expected):
    run = Live(tmp_path, DASK + "dashboard: true\n", seconds=0.01).ready()
    (link,) = re.findall(r"http://127\.0\.0\.1:\d+/status", run.log.read_text())
    with urllib.request.urlopen(link, timeout=20) as page:
        assert b"Dask" in page.read()
    assert run.process.wait(300) == 0
    assert digest(run.out) == expected
    line = r"\[tls://127\.0\.0\.1:\d+ [123]\] evaluates \d+"
    assert re.search(line, run.log.read_text()), "prints reach the log"
    assert not run.crew()
    left = {path.name for path in (run.out / "state").iterdir()}
    assert not left & {"connection", "workers"}, "credentials and workers' logs are removed"


def test_times_to_end_of_a_users_dask_config_are_not_taken(tmp_path, expected):
    """Users of dask-jobqueue often have both in their config."""
    ends = {
        "DASK_DISTRIBUTED__WORKER__LIFETIME__DURATION": "1s",
        "DASK_DISTRIBUTED__SCHEDULER__IDLE_TIMEOUT": "1s",
    }
    run = Live(tmp_path, seconds=0.05, **ends)
    assert run.process.wait(300) == 0
    assert digest(run.out) == expected
    assert not has_lost(run.log, 1)


def test_workers_that_cannot_start_end_the_run_at_once(tmp_path):
    run = Live(tmp_path, PATIENT_BREAKS="1")
    assert run.process.wait(300) == 1
    assert str(run.out / "state/workers") in run.process.stderr.read()
    logs = (run.out / "state/workers").iterdir()
    assert any("PATIENT_BREAKS" in log.read_text() for log in logs), "the error of the domain"


def test_joining_and_leaving(tmp_path, expected):
    run = Live.held(tmp_path, "engine: dask\n").ready(1)
    words = [BIN / "qdsweep", "worker", "--join", run.out, "--workers", "2"]
    helper = subprocess.Popen(words, cwd="/", env=SHELL)  # from any folder
    run.ready(3)
    run.release()
    helper.send_signal(signal.SIGTERM)
    helper.wait(300)
    wait_until(lambda: has_lost(run.log, 1), what="they have left")
    assert run.process.wait(300) == 0
    assert digest(run.out) == expected
    late = subprocess.run(words, capture_output=True, text=True, check=False)
    assert late.returncode == 2
    names_all(late.stderr, run.out)


def dask_worker(folder: Path, *words: str, cwd: Path) -> list[str | Path]:
    """A plain `dask worker` with the credentials in a folder."""
    pem = folder / "tls.pem"
    tls = ("--tls-ca-file", pem, "--tls-cert", pem, "--tls-key", pem)
    where = ("--scheduler-file", folder / "scheduler.json", "--local-directory", cwd)
    quiet = ("--no-dashboard", "--memory-limit", "0")
    return [sys.executable, "-m", "dask", "worker", *where, *tls, *quiet, *words]


def test_a_plain_dask_worker_joins_and_leaves(tmp_path, expected):
    run = Live.held(tmp_path, "engine: dask\n").ready(1)
    words = dask_worker(run.out / "state/connection", "--nthreads", "2", cwd=tmp_path)
    env = {**SHELL, "PATIENT_SECONDS": "0.05"}
    # With a nanny, as usual, and without the CPU settings, which its process does not need.
    helper = subprocess.Popen(words, cwd="/", env=env, stderr=subprocess.DEVNULL)
    run.ready(3)
    run.release()
    children = psutil.Process(helper.pid).children(recursive=True)
    wait_until(lambda: says(run.log, " 2] evaluates"), what="both its threads evaluate")
    helper.send_signal(signal.SIGTERM)
    helper.wait(300)
    wait_until(lambda: has_lost(run.log, 1), what="it has left")
    assert run.process.wait(300) == 0
    assert digest(run.out) == expected
    assert not any(child.is_running() for child in children)


@pytest.fixture
def lab(tmp_path):
    """An existing Dask cluster: `dask scheduler` and two `dask worker`, with TLS."""
    from distributed.security import Security

    made = Security.temporary()
    folder = tmp_path / "lab"
    folder.mkdir()
    (folder / "tls.pem").write_text(made.tls_ca_file + made.tls_scheduler_key)
    tls = [f"--tls-{what}={folder / 'tls.pem'}" for what in ("ca-file", "cert", "key")]
    file = folder / "scheduler.json"
    address = ("--protocol", "tls", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    words = [sys.executable, "-m", "dask", "scheduler", "--scheduler-file", file, *address, *tls]
    add_plugin(folder)
    env = {**SHELL, "PATIENT_SECONDS": "0.05"}
    with (folder / "printed.txt").open("wb") as printed:

        def start(words: list) -> subprocess.Popen:
            return subprocess.Popen(words, cwd=folder, env=env, stdout=printed, stderr=printed)

        processes = [start(words)]
        wait_until(file.exists, what="the scheduler")
        processes += [start(dask_worker(folder, "--no-nanny", cwd=folder)) for _ in range(2)]
        yield folder, processes, start
        for process in processes:
            process.kill()
            process.wait()


def test_two_runs_share_a_cluster_that_is_there(tmp_path, lab, expected):
    folder, (scheduler, first, second), start = lab
    pem = folder / "tls.pem"
    keys = {"scheduler_file": str(folder / "scheduler.json"), "tls_ca_file": str(pem)}
    keys |= {"tls_cert": str(pem), "tls_key": str(pem)}
    cluster = json.dumps({"engine": "dask", "dask": keys})
    runs = [Live(tmp_path / name, cluster, seconds=0.05) for name in ("one", "two")]
    for run in runs:
        wait_until(lambda: says(run.log, "tls://", 2), what="both workers")  # noqa: B023
        wait_until(lambda: says(run.log, "evaluates", 5), what="results")  # noqa: B023
    first.kill()
    start(dask_worker(folder, "--no-nanny", cwd=folder))
    for run in runs:
        assert run.process.wait(300) == 0
        assert digest(run.out) == expected
        assert has_lost(run.log)
        assert says(run.log, "evaluates", 5), "lines of workers reach the log"
    # The workers are unchanged: alive, without processes or keys of qdsweep.
    assert scheduler.poll() is None
    assert second.poll() is None
    wait_until(lambda: not psutil.Process(second.pid).children(), 300, "our processes are gone")
    from distributed import Client
    from distributed.security import Security

    roles = {f"tls_client_{what}": str(pem) for what in ("cert", "key")}
    with Client(
        scheduler_file=keys["scheduler_file"],
        security=Security(tls_ca_file=str(pem), require_encryption=True, **roles),
    ) as client:
        assert client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)) == 0
        assert len(client.scheduler_info()["workers"]) == 2


def test_a_worker_with_other_versions_is_rejected(tmp_path, expected):
    run = Live(tmp_path, "engine: dask\n", seconds=0.05).ready(1)
    other = tmp_path / "other/numpy-0.0.dist-info/METADATA"
    other.parent.mkdir(parents=True)
    other.write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 0.0\n")
    words = [BIN / "qdsweep", "worker", "--join", run.out]
    env = {**SHELL, "PYTHONPATH": str(tmp_path / "other")}
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False, env=env)
    assert done.returncode == 1
    assert run.process.wait(300) == 0
    names_all(run.log.read_text(), "numpy 0.0")  # it may log after the end of the worker
    assert digest(run.out) == expected


def test_a_worker_without_qdsweep_is_rejected_in_one_line(tmp_path, lab, caplog, monkeypatch):
    """A run without workers asks it again at intervals."""
    from qdsweep.engines.executors import dask

    folder, (_, *workers), start = lab
    for worker in workers:
        worker.kill()
    (folder / "sitecustomize.py").write_text("import sys; sys.modules['qdsweep'] = None\n")
    words = dask_worker(folder, "--no-nanny", cwd=folder)
    start(["env", f"PYTHONPATH={folder}", *words])
    monkeypatch.setattr(dask, "LOOK_AGAIN_SECONDS", 0.1)
    tls = dict.fromkeys(("tls_ca_file", "tls_cert", "tls_key"), str(folder / "tls.pem"))
    keys = DaskCluster(scheduler_file=str(folder / "scheduler.json"), **tls)
    executor = dask.Dask(None, dask.JoinedDaskCluster(keys), 1)

    def asked() -> bool:
        assert executor.problem() is None
        return max(executor._rejected.values(), default=0) > 2

    wait_until(asked, what="it was asked three times")
    executor.close()
    (first, last) = [text for text in caplog.messages if "ModuleNotFoundError" in text]
    assert last.endswith(first) and re.match(r"\d+ times", last)


def test_nobody_without_the_credentials_gets_in(tmp_path, expected):
    from distributed.security import Security

    run = Live(tmp_path / "one", seconds=0.05).ready()
    file = run.out / "state/connection/scheduler.json"
    for private in (file, file.with_name("tls.pem")):
        assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    listening = {
        connection.laddr
        for process in [psutil.Process(run.process.pid), *run.crew()]
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert len(listening) == 2, "one port for Dask's scheduler and one for Dask's worker"
    foreign = Security.temporary()
    contexts = [ssl.create_default_context(), ssl.create_default_context()]
    for context in contexts:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    certificate, key = tmp_path / "foreign.pem", tmp_path / "foreign.key"
    certificate.write_text(foreign.tls_ca_file)
    key.write_text(foreign.tls_worker_key)
    contexts[1].load_cert_chain(certificate, key)
    for address in listening:
        assert address.ip == "127.0.0.1"
        for context in contexts:  # no certificate, and the certificate of another run
            with (
                pytest.raises(OSError),
                socket.create_connection(address, timeout=5) as plain,
                context.wrap_socket(plain) as encrypted,
            ):
                encrypted.sendall(b"hello")
                # With TLS 1.3, the rejection comes after the client's side of the handshake.
                if not encrypted.recv(1):
                    raise ConnectionResetError
        with socket.create_connection(address, timeout=5) as plain:
            plain.sendall(b"\0" * 64)
            try:
                answer = plain.recv(100)
            except ConnectionResetError:
                answer = b""
            assert len(answer) < 10, "at most a TLS alert"
    assert json.loads(file.read_text())["address"].startswith("tls://")
    assert run.process.wait(300) == 0
    assert digest(run.out) == expected
    assert not file.exists()
