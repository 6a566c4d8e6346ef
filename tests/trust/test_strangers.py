"""Other users, other nodes and malicious files are all rejected."""

import datetime
import hashlib
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from in_process import compute_run
from patient import make_folder
from refusals import names_all
from results import digest, summary
from stranger import NOBODY, Target, holes
from support import BIN, shared_folder
from waiting import crew_of, has_workers, wait_until

from qdsweep.cli import main
from qdsweep.host.key import key_file, own_digest
from qdsweep.host.machine import settings

LONG = bool(os.environ.get("QDSWEEP_TORTURE"))  # make torture
SHELL = {name: value for name, value in os.environ.items() if name not in settings()}
# Fast, because nothing is compiled.
RUN = {"domain": {"preset": "lp_sphere", "solution_dim": 4}, "algorithm": "map_elites"}
RUN |= {"archive": {"dims": [5, 5]}, "num_emitters": 1, "batch_size": 5}

as_root = pytest.mark.skipif(
    os.geteuid() != 0 and not os.environ.get("CI"), reason="only root can act as another user"
)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that all users can read, as on a scratch disk."""
    folder = Path(tempfile.mkdtemp(prefix="strangers-", dir=shared_folder()))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def addresses() -> list[str]:
    """The addresses of this machine for other nodes, and the loopback."""
    there = [a.address for c in psutil.net_if_addrs().values() for a in c if a.family.value == 2]
    return sorted(there)


def listening(processes: list[psutil.Process]) -> list[tuple[str, int]]:
    """The ports of processes, at every address of this machine."""
    ports = {
        connection.laddr.port
        for process in processes
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    return [(address, port) for port in sorted(ports) for address in addresses()]


def start(folder: Path, **cluster: object) -> subprocess.Popen:
    """Starts a run in the background, and waits for its workers."""
    make_folder(folder)
    (folder / "cluster.yaml").write_text(json.dumps(cluster))
    words = ["run", "experiment.yaml", "--cluster", "cluster.yaml", "--out", "out"]
    with (folder / "printed.txt").open("w") as printed:
        process = subprocess.Popen(
            [BIN / "qdsweep", *words],
            cwd=folder,
            env={**SHELL, "PATIENT_SECONDS": "0.1"},
            stdout=printed,
            stderr=printed,
            umask=0o022,
        )
    log = folder / "out/state/run.log"
    wait_until(lambda: has_workers(log, cluster["workers_per_node"]), 300, "workers")
    return process


def expired(pem: str) -> str:
    """A certificate like that of a run, made with the same key, but from yesterday."""
    key = serialization.load_pem_private_key(pem.encode(), None)
    old = x509.load_pem_x509_certificate(pem.encode())
    now = datetime.datetime.now(tz=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(old.subject)
        .issuer_name(old.issuer)
        .public_key(old.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=2))
        .not_valid_after(now - datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    begin = pem.index("-----BEGIN PRIVATE")
    return made.public_bytes(serialization.Encoding.PEM).decode() + pem[begin:]


@as_root
def test_nothing_of_a_dask_run_is_open_to_another_user_or_node(public):
    from distributed.security import Security

    interfaces = [name for name in psutil.net_if_addrs() if name != "lo"]
    reached = [n for n in interfaces if any(a.family.value == 2 for a in psutil.net_if_addrs()[n])]
    keys = {"interface": reached[0]} if reached else {}  # other nodes reach it
    process = start(public, engine="dask", workers_per_node=1, **keys)
    try:
        connection = public / "out/state/connection"
        pem = (connection / "tls.pem").read_text()
        foreign = Security.temporary()
        certificates = {
            "foreign": foreign.tls_ca_file + foreign.tls_worker_key,
            "foreign and expired": expired(foreign.tls_ca_file + foreign.tls_worker_key),
            "expired": expired(pem),
        }
        for name, text in certificates.items():
            (public / f"{name}.pem").write_text(text)
        processes = [psutil.Process(process.pid), *crew_of(public)]
        assert len(processes) >= 4, "the run, qdsweep worker, the forking process, the worker"
        target = Target(
            folders=[public / "out", public / "config"],
            private=[connection, *connection.iterdir(), key_file(), key_file().parent],
            pids=[process.pid for process in processes],
            ports=listening(processes),
            certificates=[public / f"{name}.pem" for name in certificates],
            secrets=[pem.splitlines()[-3], key_file().read_text().strip()],
        )
        assert len(target.ports) == 2 * len(addresses())
        assert holes(target) == []
        # The run's own certificate is accepted, so the attempts were real.
        (public / "own.pem").write_text(pem)
        open_holes = holes(Target(ports=target.ports, certificates=[public / "own.pem"]))
        assert len(open_holes) == 2
        assert all("let in own.pem" in hole for hole in open_holes)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 75
    assert not connection.exists()


@as_root
@pytest.mark.parametrize("engine", ["mpi", "ray"] if LONG else [])
def test_nothing_of_other_engines_is_readable_for_another_user(public, engine):
    process = start(public, engine=engine, workers_per_node=2)
    try:
        main_process = psutil.Process(process.pid)
        processes = [main_process, *main_process.children(recursive=True)]
        token = public / "out/state/connection/token"
        scratch = [*Path(tempfile.gettempdir()).glob("qdsweep-*")]
        shared = [path for path in Path("/dev/shm").iterdir() if path.is_file()]
        target = Target(
            folders=[public / "out"],
            private=[*scratch, *shared, *([token] if engine == "ray" else [])],
            sockets=[path for folder in scratch for path in folder.rglob("*") if path.is_socket()],
            pids=[process.pid for process in processes if process.is_running()],
            secrets=[token.read_text()] if engine == "ray" else [],
        )
        assert holes(target) == []
        if engine == "mpi":  # ranks on one machine need no network
            ranks = [process for process in processes if "python" in process.name()]
            own = {c.laddr.port for process in ranks for c in process.net_connections("inet")}
            launcher = [process for process in processes if process.name() == "mpiexec"]
            control = {
                c.laddr.port for process in launcher for c in process.net_connections("inet")
            }
            assert own <= control, "inherited by ranks from mpiexec"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(300)


WARM = """
import os, sys
from pathlib import Path
from qdsweep.config.compose import compose
from qdsweep.warm.launcher import start_warm
runs = [compose({run}, {{"seed": seed}}) for seed in (1, 2)]
start_warm(runs, runs, "qdsweep.cli:main", Path("warm.log"))
print(os.environ["QDSWEEP_WARM"], flush=True)
sys.stdin.read()
"""


@as_root
def test_the_warm_process_takes_no_command_of_another_user():
    words = [sys.executable, "-c", WARM.format(run={**RUN, "iterations": 2})]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=SHELL
    ) as snakemake:
        socket = Path(snakemake.stdout.readline().strip())
        open_holes = holes(Target(sockets=[socket], private=[socket.parent]))
        snakemake.stdin.close()
    assert open_holes == []
    assert "qdsweep-" in str(socket)


class Hurts:
    """Its pickle makes a file named `hurt` when it is loaded."""

    def __reduce__(self):
        return os.mkdir, ("hurt",)


HURTS = Hurts()


def forge(path: Path, content: object = HURTS, **changes: object) -> None:
    """Puts a payload, by default a malicious one, into an otherwise valid reload file."""
    magic, head, _ = path.read_bytes().split(b"\n", 2)
    header = {**json.loads(head), **changes}
    kept = {name: header.pop(name, None) for name in ("sha256", "hmac")}
    if changes.get("format") == 2:
        del kept["hmac"]
    payload = pickle.dumps(content)
    kept["sha256"] = hashlib.sha256(json.dumps(header, sort_keys=True).encode() + payload)
    kept["sha256"] = kept["sha256"].hexdigest()
    path.write_bytes(b"\n".join((magic, json.dumps({**header, **kept}).encode(), payload)))


@pytest.fixture
def half_done(tmp_path, monkeypatch) -> Path:
    """A run of 2 iterations, to extend to 4."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    return compute_run({**RUN, "iterations": 2}, tmp_path / "out")


def go_on(run: Path) -> int:
    Path("experiment.yaml").write_text(json.dumps({**RUN, "iterations": 4}))
    return main(["run", "experiment.yaml", "--out", str(run)])


def newest(run: Path) -> Path:
    return max(run.glob("state/reload-*.pkl"))


@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("whose", ["own", "another's", "all can write it", "in a folder for all"])
def test_a_reload_file_made_to_hurt_runs_nothing(half_done, capsys, form, whose):
    if whose == "another's" and os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    file = newest(half_done)
    forge(file, format=form)
    if whose == "another's":
        os.chown(file, NOBODY, NOBODY)
    if whose == "all can write it":
        file.chmod(0o666)
    if whose == "in a folder for all":
        file.parent.chmod(0o777)
    assert go_on(half_done) == 2
    names_all(capsys.readouterr().err.strip().splitlines()[-1], file, "qdsweep adopt")
    assert not Path("hurt").exists()
    assert main(["adopt", str(half_done)]) == 0  # the forgery is real
    assert go_on(half_done) != 0
    assert Path("hurt").exists()


@pytest.mark.parametrize("home", ["home", "of a colleague"])
def test_a_copied_run_resumes(half_done, tmp_path, monkeypatch, home):
    """`cp -r` of one's own run, and of a colleague's: the result is the same."""
    copy = shutil.copytree(half_done, tmp_path / "copy")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / home))
    assert go_on(copy) == 0
    assert summary(copy)["attempts"][-1]["from"] == 2
    straight = compute_run({**RUN, "iterations": 4}, tmp_path / "straight")
    assert digest(copy) == digest(straight)


def test_another_users_run_resumes_after_qdsweep_adopt(half_done, tmp_path, capsys):
    """Really another user's: without this user's digest, and owned by the user `nobody`."""
    file = newest(half_done)
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path / "mine")  # the fixture restores it
    assert own_digest("") is not None
    for path in (file, file.parent):
        os.chown(path, NOBODY, NOBODY)
    assert go_on(half_done) == 2
    names_all(capsys.readouterr().err, file, "qdsweep adopt")
    assert main(["adopt", str(half_done)]) == 0
    assert go_on(half_done) == 0


@pytest.mark.parametrize(
    "name",
    [
        *(
            "../evil:Evil",
            "..evil:Evil",
            "/etc/passwd:root",
            "evil.py:Evil",
            "evil:Evil;mkdir hurt",
        ),
        *("$(mkdir hurt):Evil", "`mkdir hurt`:Evil", "evil:__import__('os').mkdir('hurt')"),
        *("evil:os.system", "os:system", "evil:Evil\nhurt", "evil\0:Evil", "é" * 300 + ":Evil"),
    ],
)
def test_the_name_of_a_plugin_runs_and_finds_nothing_else(tmp_path, capsys, name):
    (tmp_path / "evil.py").write_text("import os\nos.mkdir('hurt')\nclass Evil: pass\n")
    Path("work/config/plugins").mkdir(parents=True)
    os.chdir("work")  # the fixture of all tests returns
    experiment = {**RUN, "domain": {"type": name, "name": "evil"}, "iterations": 2}
    Path("experiment.yaml").write_text(json.dumps(experiment))
    assert main(["run", "experiment.yaml", "--out", "out"]) == 2
    printed = capsys.readouterr().err
    assert "Traceback" not in printed
    assert any(word in printed for word in ("domain", "evil", name.split(":")[0]))
    assert list(tmp_path.rglob("hurt")) == []
