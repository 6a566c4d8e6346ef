"""The ray engine on one machine, with its own Ray cluster and with an existing one."""

import contextlib
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import grpc
import psutil
import pytest
from in_process import qdsweep
from patient import add_plugin, make_folder, undisturbed_digest
from refusals import names_all
from results import digest, summary
from support import BIN, command
from waiting import has_lost, has_workers, says, wait_until

from qdsweep.host.machine import settings

# The environment of a user's shell, without the settings of these tests.
SHELL = {name: value for name, value in os.environ.items() if name not in settings()}
OWN = {"engine": "ray", "workers_per_node": 3}


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> str:
    return undisturbed_digest(tmp_path_factory.mktemp("undisturbed"))


class Live:
    """A run of the ray engine in the background; with `uv` as if `uv run` had started it."""

    def __init__(
        self, folder: Path, seconds: float, cluster: dict = OWN, uv: bool = False, **env: str
    ):
        self.folder, self.out = make_folder(folder), folder / "out"
        self.log = self.out / "state/run.log"
        (folder / "cluster.yaml").write_text(json.dumps(cluster))
        words = ["run", "experiment.yaml", "--cluster", "cluster.yaml", "--out", "out"]
        command = [str(BIN / "qdsweep"), *words]
        (folder / "run").write_text('"$@"')  # a script of the shell that has the name of uv
        with (folder / "printed.txt").open("w") as printed:
            self.process = subprocess.Popen(
                ["uv", "run", *command] if uv else command,
                executable="/bin/sh" if uv else None,
                cwd=folder,
                env={**SHELL, "PATIENT_SECONDS": str(seconds), **env},
                stdout=printed,
                stderr=printed,
                start_new_session=True,
            )

    def ready(self, workers: int = 3) -> "Live":
        wait_until(lambda: has_workers(self.log, workers), 300, "workers")
        return self

    def pids(self) -> list[int]:
        """The process ids of all workers so far."""
        return [
            int(pid) for pid in re.findall(r"worker process (\d+) .* now", self.log.read_text())
        ]

    def rays(self) -> dict[psutil.Process, str]:
        """The processes of the run's own Ray cluster, and their folder."""
        processes, token = {}, str(self.out / "state/connection/token")
        for process in psutil.process_iter():
            try:
                variables = process.environ()
            except psutil.Error:
                continue
            if variables.get("RAY_AUTH_TOKEN_PATH") == token:
                processes[process] = variables["RAY_TMPDIR"]
        return processes

    def finish(self, expected: str) -> None:
        assert self.process.wait(300) == 0, (self.folder / "printed.txt").read_text()[-3000:]
        assert digest(self.out) == expected


def test_a_killed_worker_is_replaced_and_the_result_is_that_of_the_serial_engine(
    tmp_path, expected
):
    run = Live(tmp_path, seconds=0.06, uv=True).ready()
    (folder,) = set(run.rays().values())
    wait_until(lambda: says(run.log, "evaluates", 10), what="results")
    os.kill(run.pids()[0], signal.SIGKILL)
    run.finish(expected)
    assert has_lost(run.log, 2)
    assert len(run.pids()) == 4
    for pid in run.pids():
        assert says(run.log, f"[process {pid} on {os.uname().nodename}] evaluates"), "prints"
    about = summary(run.out)
    assert (about["engine"], about["workers"]) == ("ray", 3)
    wait_until(lambda: not run.rays(), what="all of Ray has ended")
    wait_until(lambda: not Path(folder).exists(), what="its folder has vanished")
    left = {path.name for path in (run.out / "state").iterdir()}
    assert not left & {"connection", "workers"}, "token and workers' logs are removed"


def calls() -> list[str]:
    """All requests that Ray's processes answer."""
    import importlib
    import pkgutil

    import ray.core.generated

    methods = [f"/ray.rpc.ObjectManagerService/{name}" for name in ("Push", "Pull")]
    for module in pkgutil.iter_modules(ray.core.generated.__path__):
        if module.name.endswith("_pb2"):
            about = importlib.import_module(f"ray.core.generated.{module.name}").DESCRIPTOR
            for service in about.services_by_name.values():
                methods += [f"/{service.full_name}/{method.name}" for method in service.methods]
    return methods


def answers(host: str, port: int) -> set[str]:
    """The answers of a port to another user, without a token and with another token."""
    heard = set()
    with grpc.insecure_channel(f"{host}:{port}") as channel:
        for name in calls():
            for token in ((), (("authorization", "Bearer " + 64 * "0"),)):
                try:
                    channel.unary_unary(name)(b"", timeout=5, metadata=token)
                    heard.add(f"{name} works")
                except grpc.RpcError as error:
                    heard.add(error.code().name)
                    if error.code() == grpc.StatusCode.UNAVAILABLE:  # it speaks HTTP
                        words = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}"]
                        words.append(f"http://{host}:{port}/get_or_create_runtime_env")
                        code = subprocess.run(words, capture_output=True, text=True, check=False)
                        return {code.stdout}
    return heard


def test_no_access_without_the_token_and_a_stopped_run_resumes(tmp_path, expected):
    run = Live(tmp_path, seconds=0.1).ready()
    token = run.out / "state/connection/token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert stat.S_IMODE(token.parent.stat().st_mode) == 0o700
    assert "usage_stats" not in (tmp_path / "printed.txt").read_text()
    listening = {
        connection.laddr
        for process in [psutil.Process(run.process.pid), *run.rays()]
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert len(listening) >= 7, "one of the main process, three of Ray, one per worker"
    for ip, port in listening:
        heard = answers("127.0.0.1" if ip in ("::", "0.0.0.0") else ip, port)
        assert heard in ({"401"}, {"UNAUTHENTICATED", "UNIMPLEMENTED"}), (port, heard)
    (folder,) = set(run.rays().values())
    os.killpg(run.process.pid, signal.SIGTERM)  # also Ray's own processes
    assert run.process.wait(300) == 75
    wait_until(lambda: not run.rays() and not Path(folder).exists(), what="all of Ray has ended")
    qdsweep("run", "experiment.yaml", "--workers", "2", "--out", "out", cwd=tmp_path)
    assert digest(run.out) == expected
    assert summary(run.out)["engine"] == "processes"


def free_ports(count: int) -> list[int]:
    """Returns ports on which no process listens."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("", 0))) for _ in range(count)]
        return [server.getsockname()[1] for server in servers]


@pytest.fixture
def lab(tmp_path):
    """An existing Ray cluster: a head with two cores, a node with one core and other versions."""
    folder = tmp_path / "lab"
    add_plugin(folder)
    (folder / "token").write_text(64 * "7")
    (folder / "other").mkdir()
    (folder / "other/sitecustomize.py").write_text(
        "import importlib.metadata as m; real = m.version\n"
        "m.version = lambda name: '0.0' if name == 'numpy' else real(name)\n"
    )
    access = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(folder / "token")}
    # Names of sockets must be short.
    short = subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout
    env = {**SHELL, **access, "RAY_TMPDIR": short.strip(), "PATIENT_SECONDS": "0.02"}
    env["RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S"] = "10"  # for a server that hangs
    port, for_clients = free_ports(2)
    ports = (f"--port={port}", f"--ray-client-server-port={for_clients}")
    nodes, clients = f"127.0.0.1:{port}", f"ray://127.0.0.1:{for_clients}"
    start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block"]
    start += ["--disable-usage-stats", "--object-store-memory=100000000"]
    with (folder / "printed.txt").open("wb") as printed:

        def node(*words: str, **more: str) -> subprocess.Popen:
            return subprocess.Popen(
                [*start, *words], cwd=folder, env={**env, **more}, stdout=printed, stderr=printed
            )

        head = node("--head", "--num-cpus=2", "--include-dashboard=false", *ports)
        wait_until(lambda: says(folder / "printed.txt", "Ray runtime started"), 300, "the head")
        other = node(f"--address={nodes}", "--num-cpus=1", PYTHONPATH=str(folder / "other"))
        wait_until(lambda: says(folder / "printed.txt", "Ray runtime started", 2), 300, "a node")
        yield access, head, other, nodes, clients
        for process in (other, head):
            process.terminate()
            process.wait(300)
    subprocess.run(["rm", "-rf", short.strip()], check=True)


def client_servers() -> list[psutil.Process]:
    """The head's servers, one for each client that is not a node of its cluster."""
    servers = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "--mode=specific-server" in words and "python" in words[0]:
            servers.append(process)
    return servers


def test_runs_in_a_cluster_that_is_there(tmp_path, lab, expected):
    access, head, other, nodes, clients = lab
    keys = {"address": nodes, "workers": 3}
    run = Live(tmp_path / "node", 0.02, {"engine": "ray", "ray": keys}, **access).ready(2)
    wait_until(lambda: says(run.log, "numpy 0.0"), what="one has other versions")
    wait_until(lambda: says(run.log, "evaluates", 5), what="results")
    other.terminate()
    os.kill(run.pids()[0], signal.SIGKILL)
    run.finish(expected)
    assert has_lost(run.log, 1)
    # From a machine that is not one of its nodes. The first server for it hangs.
    keys = {"address": clients, "workers": 2}
    run = Live(tmp_path / "client", 0.02, {"engine": "ray", "ray": keys}, **access)
    wait_until(client_servers, 300, "a server for the client")
    (first,) = client_servers()
    first.suspend()
    wait_until(lambda: len(client_servers()) > 1, 300, "another one is asked for")
    first.kill()
    run.ready(2)
    wait_until(lambda: says(run.log, "evaluates", 5), what="results")
    os.kill(run.pids()[0], signal.SIGKILL)
    run.finish(expected)
    assert head.poll() is None
    count = f"import ray; ray.init('{nodes}', log_to_driver=False); print(*map(sorted, "
    count += "(ray.cluster_resources().items(), ray.available_resources().items())), sep='\\n')"

    def is_free() -> bool:
        total, free = command("python", "-c", count, **access).stdout.splitlines()[-2:]
        return total == free and "('CPU', 2.0)" in free

    wait_until(is_free, what="it is as it was")


def test_without_its_extra_or_its_cluster_nothing_is_started(tmp_path):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden/sitecustomize.py").write_text("import sys; sys.modules['ray'] = None")
    run = Live(tmp_path / "a", 0, PYTHONPATH=str(tmp_path / "hidden"))
    assert run.process.wait(300) == 2
    names_all((run.folder / "printed.txt").read_text(), "`make extras`")
    run = Live(tmp_path / "b", 0, {"engine": "ray", "ray": {"address": "[::1]:1", "workers": 2}})
    assert run.process.wait(300) == 2
    keys = {"address": "127.0.0.1:1", "workers": 2}
    run = Live(tmp_path / "c", 0, {"engine": "ray", "ray": keys})
    assert run.process.wait(300) == 1, "the cluster may run at the next attempt"
    names_all((run.folder / "printed.txt").read_text(), "127.0.0.1:1")
