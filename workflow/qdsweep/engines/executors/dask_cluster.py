"""Dask clusters: a run's own one, whose scheduler is in the main process, or one that is there.

Whoever has the credentials of a run can run code as its user: they are in a folder of mode 0700,
in files of mode 0600, and are removed with the end of the run.
"""

import asyncio
import json
import logging
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import dask
from distributed import Client, LocalCluster, Worker, WorkerPlugin
from distributed.comm import connect
from distributed.security import Security
from distributed.utils import get_ip, get_ip_interface

from qdsweep.config import cluster as config
from qdsweep.engines.allocation import Helpers
from qdsweep.errors import BadInput
from qdsweep.files import atomic
from qdsweep.records.run_dir import RunDir, StateDir

log = logging.getLogger("qdsweep")

# Exit codes of a worker of ours: it found no run; it would give other results.
NO_RUN, TURNED_AWAY = 3, 4
# There are no tasks to watch, and no memory of Dask's to manage.
SETTINGS = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "10s",
    "distributed.worker.use-file-locking": False,
    "distributed.worker.http.routes": [],
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.admin.tick.interval": "2s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.comm.timeouts.tcp": "30s",  # then a node that does not answer is lost
}
_dedicated = False


class Cluster(Protocol):
    """A Dask cluster, as the executor sees it.

    Attributes:
        client: Connected to it.
        is_own: Whether it works for this run alone and ends with it.
        remedy: Where to look if no worker comes.
    """

    client: Client
    is_own: bool
    remedy: str

    def problem(self) -> str | None:
        """Returns why no worker will ever come; None while one may."""
        ...

    def close(self) -> None:
        """Leaves it, or ends it."""
        ...


class OwnCluster:
    """A cluster for one run: the scheduler is in this process, workers come by themselves.

    Args:
        cluster: The cluster config.
        state: The run's state, where the workers find address and credentials.
        helpers: The process that starts the workers.
    """

    is_own = True

    def __init__(self, cluster: config.Cluster, state: StateDir, helpers: Helpers) -> None:
        _prepare()
        self._helpers, self._file = helpers, state.connection
        security = Security.temporary()
        _keep_private(self._file.parent, security)
        host = _host(cluster.interface)
        self._cluster = LocalCluster(
            n_workers=0,
            security=security,
            host=f"tls://{host}",
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": cluster.dashboard},
        )
        if cluster.dashboard:
            _say_where(self._cluster.dashboard_link)
        else:
            self._cluster.scheduler.http_server.stop()
        self.client = Client(self._cluster, direct_to_workers=True)
        address = self._cluster.scheduler_address
        self.remedy = (
            f"see {helpers.logs}; they connect to {address} (the cluster's `interface` chooses the "
            "network)"
        )
        with atomic(self._file, "w", private=True) as file:
            json.dump({"address": address, "directory": str(Path.cwd())}, file)

    def problem(self) -> str | None:
        """Returns why no worker will ever come; None while one may."""
        if not self._helpers.are_gone():
            return None
        return (
            "the workers could not be started, or what starts them has ended: "
            f"{self._helpers.logs} may say why; the same command starts them again"
        )

    def close(self) -> None:
        """Makes the workers leave; the credentials vanish."""
        shutil.rmtree(self._file.parent, ignore_errors=True)
        self._helpers.are_leaving = True
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # of what it closes
        self._cluster.close(timeout=2)


class JoinedCluster:
    """A cluster of others, which stays as it was.

    Args:
        keys: Where it is, `dask:` of the cluster config.
    """

    is_own = False

    def __init__(self, keys: config.DaskCluster) -> None:
        _prepare()
        security = None
        if keys.tls_ca_file is not None:
            security = Security(
                tls_ca_file=keys.tls_ca_file,
                tls_client_cert=keys.tls_cert,
                tls_client_key=keys.tls_key,
                require_encryption=True,
            )
        place = keys.address or keys.scheduler_file
        self.remedy = f"the Dask cluster at {place} has none, or none that fits"
        try:
            self.client = Client(
                keys.address,
                scheduler_file=keys.scheduler_file,
                security=security,
                direct_to_workers=True,
                timeout=30,
            )
        except (OSError, ValueError, TypeError) as error:
            raise BadInput(f"cluster: dask: {place}: no Dask scheduler there ({error})") from None
        _say_where(self.client.dashboard_link)

    def problem(self) -> None:
        """There may always come more workers."""

    def close(self) -> None:
        """Leaves it."""
        self.client.close(timeout=2)


def serve(run: Path, patience: float) -> int:
    """Works for a run's own cluster until it ends; returns or exits with a code.

    Args:
        run: The run's folder.
        patience: How long to look for the run's main process [s].
    """
    global _dedicated
    _dedicated = True
    _prepare()
    return asyncio.run(_work(RunDir(run).state, patience))


def _prepare() -> None:
    dask.config.set(SETTINGS)
    logging.getLogger("distributed").setLevel(logging.WARNING)


def is_dedicated() -> bool:
    """Returns whether this process is a worker of ours, which works for one run alone."""
    return _dedicated


class _Leave(WorkerPlugin):
    """Ends the process with the run, also in the middle of an evaluation."""

    def teardown(self, worker: Worker) -> None:
        """Called when the scheduler says so, or is gone."""
        os._exit(0)


async def _work(state: StateDir, patience: float) -> int:
    found = await _find_scheduler(state.connection, patience)
    if found is None:
        print(f"{state.connection}: no main process found for {patience:.0f} s", file=sys.stderr)
        return NO_RUN
    worker = await Worker(
        found.address,
        security=found.security,
        host=found.own_host,
        name=f"qdsweep-{os.uname().nodename}-{os.getpid()}",
        nthreads=1,
        memory_limit=0,
        dashboard=False,
        dashboard_address="127.0.0.1:0",
        local_directory=str(state.workers),
        plugins=(_Leave(),),
    )
    worker.http_server.stop()
    await worker.finished()
    return 0


class _Scheduler(NamedTuple):
    address: str
    security: Security
    own_host: str  # of this process, on the network that reaches the scheduler


async def _find_scheduler(file: Path, patience: float) -> _Scheduler | None:
    """Waits for the main process. The files may be of an earlier attempt, so they are tried."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            address = json.loads(file.read_text())["address"]
            security = _security(file.parent / "tls.pem")
            comm = await connect(address, timeout=5, **security.get_connection_args("worker"))
        except (OSError, ValueError, KeyError, asyncio.TimeoutError):
            await asyncio.sleep(0.1)
            continue
        own_host = comm.local_address.rpartition("://")[2].rpartition(":")[0]
        await comm.close()
        return _Scheduler(address, security, own_host)
    return None


def _security(pem: Path) -> Security:
    """Returns the run's credentials: both sides show them and accept no others (mutual TLS)."""
    both = str(pem)
    names = [f"tls_{role}_{what}" for role in ("scheduler", "worker") for what in ("cert", "key")]
    keys: dict[str, Any] = dict.fromkeys(names, both)
    return Security(require_encryption=True, tls_ca_file=both, **keys)


def _keep_private(folder: Path, security: Security) -> None:
    """Writes the credentials, so that at no moment another user can read them."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    with atomic(folder / "tls.pem", "w", private=True) as file:
        file.write(security.tls_ca_file + security.tls_scheduler_key)


def _host(interface: str | None) -> str:
    """Returns where to listen: the chosen network, or loopback outside of a Slurm job."""
    if interface is not None:
        try:
            return get_ip_interface(interface)
        except ValueError as error:
            raise BadInput(f"cluster: interface = {interface!r}: {error}") from None
    return get_ip() if "SLURM_JOB_ID" in os.environ else "127.0.0.1"


def _say_where(link: str | None) -> None:
    if link:
        port = link.partition("://")[2].rpartition(":")[2].split("/")[0]
        log.info(
            "Dask's dashboard: %s (from elsewhere: ssh -L %s:127.0.0.1:%s %s)",
            *(link, port, port, os.uname().nodename),
        )
