"""Dask clusters: a run's own one, whose scheduler is in the main process, or one that is there.

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
from qdsweep.errors import BadInput
from qdsweep.files import atomic
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
        _quieten(logging.WARNING)
        dask.config.set(SETTINGS)
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
        _quieten(logging.CRITICAL)  # about workers that end as they are told
        self._cluster.close(timeout=2)


class JoinedCluster:
    """A cluster of others, which stays as it was.

    Args:
        keys: Where it is, `dask:` of the cluster config.
    """

    is_own = False

    def __init__(self, keys: config.DaskCluster) -> None:
        _quieten(logging.WARNING)
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


def _quieten(level: int) -> None:
    """Keeps Dask's own messages below a level out of the run's log."""
    logging.getLogger("distributed").setLevel(level)


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
