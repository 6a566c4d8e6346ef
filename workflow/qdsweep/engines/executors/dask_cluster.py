"""Dask clusters: a run's own one, whose scheduler is in the main process, or an existing one.

Whoever has the credentials of a run can run code as its user: they are in a folder of mode 0700,
in files of mode 0600, and are removed with the end of the run.
"""

import json
import logging
import os
import shutil
from pathlib import Path
from typing import Protocol

import dask
from distributed import Client, LocalCluster
from distributed.security import Security
from distributed.utils import get_ip, get_ip_interface

from qdsweep.config import cluster as config
from qdsweep.engines.allocation import Helpers
from qdsweep.engines.executors.dask_worker import SETTINGS
from qdsweep.engines.failures import NoWorkers
from qdsweep.errors import BadInput
from qdsweep.files import write_private
from qdsweep.records.run_dir import StateDir

log = logging.getLogger("qdsweep")


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
        _quieten()
        dask.config.set(SETTINGS | {"temporary-directory": str(state.workers)})
        self._helpers, self._file = helpers, state.connection
        security = Security.temporary()
        # At no moment can another user read them.
        pem = security.tls_ca_file + security.tls_scheduler_key
        write_private(self._file.parent / "tls.pem", pem)
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
        write_private(self._file, json.dumps({"address": address, "directory": str(Path.cwd())}))

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
        self._cluster.close(timeout=2)


class JoinedCluster:
    """A cluster of others, which stays as it was.

    Args:
        keys: Where it is, `dask:` of the cluster config.
    """

    is_own = False

    def __init__(self, keys: config.DaskCluster) -> None:
        _quieten()
        address, security = _find(keys)
        self.remedy = f"the Dask cluster at {address} has none, or none that fits"
        try:
            self.client = Client(address, security=security, direct_to_workers=True, timeout=30)
        except OSError as error:  # it may be up again for the next attempt
            raise NoWorkers(f"cluster: dask: no scheduler answers at {address} ({error})") from None
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise BadInput(f"cluster: dask: {address} is no Dask scheduler ({what})") from None

    def problem(self) -> None:
        """There may always come more workers."""

    def close(self) -> None:
        """Leaves it."""
        self.client.close(timeout=2)


def _quieten() -> None:
    """Keeps Dask's tracebacks out of the run's log, which says itself who comes and goes."""
    for name in ("distributed", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _find(keys: config.DaskCluster) -> tuple[str, Security | None]:
    """Returns the address of an existing Dask scheduler, and the credentials for it."""
    named, address = f"address = {keys.address!r}", keys.address
    if keys.scheduler_file is not None:
        named = f"scheduler_file = {keys.scheduler_file!r}"
        try:
            address = json.loads(Path(keys.scheduler_file).read_text())["address"]
        except FileNotFoundError:
            raise BadInput(f"cluster: dask: {named}: there is no such file") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadInput(
                f"cluster: dask: {named}: it is not what `dask scheduler --scheduler-file` writes "
                f"({type(error).__name__}: {error})"
            ) from None
    tls = {name: getattr(keys, name) for name in ("tls_ca_file", "tls_cert", "tls_key")}
    if str(address).startswith("tls://") != all(tls.values()):
        need = "needs" if not any(tls.values()) else "is not of TLS, and takes no"
        raise BadInput(f"cluster: dask: {named} ({address}) {need} {', '.join(tls)}")
    for name, file in tls.items():
        if file is not None and not Path(file).is_file():
            raise BadInput(f"cluster: dask: {name} = {file!r}: there is no such file")
    if not all(tls.values()):
        return str(address), None
    return str(address), Security(
        tls_ca_file=keys.tls_ca_file,
        tls_client_cert=keys.tls_cert,
        tls_client_key=keys.tls_key,
        require_encryption=True,
    )


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
