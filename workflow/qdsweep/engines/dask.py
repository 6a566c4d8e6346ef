"""The dask engine: workers on this machine, or on the nodes of a Slurm job."""

import os
import queue
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from distributed.utils import get_ip, get_ip_interface

from qdsweep.config.cluster import Cluster
from qdsweep.config.domain import Domain as DomainConfig
from qdsweep.engines.base import Batch, Outcome, nothing
from qdsweep.engines.connection import (
    Connection,
    remove_connection,
    temporary_credentials,
    write_connection,
)
from qdsweep.engines.crew import Crew
from qdsweep.engines.failures import NoWorkers
from qdsweep.engines.hub import Hub
from qdsweep.errors import BadInput
from qdsweep.records.run_dir import RunDir

# How long a run waits for its first worker, or for a new one after it has lost all [s].
PATIENCE = 300.0


class Dask:
    """Evaluates with workers that connect to this process by mutual TLS.

    Args:
        domain: The domain's config; each worker builds its own.
        cluster: How many workers, and on which network.
        run: The run's folder, with the connection file by which workers find this process.
        crew: The process that starts the workers.
        versions: Library -> version that every worker must have.
        objective_on_failure: See `evaluate_safely`.
        timeout: The experiment's `timeout` [s]. A run without workers must report that before
            this time is over.
    """

    name = "dask"

    def __init__(
        self,
        domain: DomainConfig,
        cluster: Cluster,
        run: Path,
        crew: Crew,
        versions: dict[str, str],
        objective_on_failure: float | None = None,
        timeout: float | None = None,
    ) -> None:
        self.workers = cluster.workers
        self._file = RunDir(run).state.connection
        self._crew = crew
        self._patience = PATIENCE if timeout is None else min(PATIENCE, timeout / 2)
        certificate, key = temporary_credentials()
        connection = Connection("", certificate, key, str(Path.cwd()))
        self._hub = Hub(
            domain,
            objective_on_failure,
            versions,
            connection.security(),
            f"tls://{_host(cluster.interface)}",
        )
        write_connection(self._file, connection._replace(address=self._hub.address))

    def wait(self) -> None:
        """Waits until the first worker is there."""
        while self._hub.workers == 0:
            self._check_workers(PATIENCE)
            time.sleep(0.01)

    def evaluate(
        self, batch: Batch, rows: list[slice], meanwhile: Callable[[], None] = nothing
    ) -> Iterator[tuple[slice, Outcome]]:
        """Evaluates with the workers; see `Engine.evaluate`."""
        left = sum(part.stop - part.start for part in rows)
        self._hub.begin(batch, rows)
        meanwhile()
        while left:
            try:
                result = self._hub.results.get(timeout=1.0)
            except queue.Empty:
                self._check_workers(self._patience)
                continue
            if isinstance(result, Exception):
                raise result
            part, _ = result
            left -= part.stop - part.start
            yield result

    def _check_workers(self, patience: float) -> None:
        since = self._hub.lonely_since
        if not self._hub.is_alive():
            raise NoWorkers("what connects the workers has ended: run.log says why")
        if since is None:
            return
        if self._crew.is_gone():
            raise NoWorkers(
                "the workers could not be started, or what starts them has ended: "
                f"{self._crew.logs} may say why; the same command starts them again"
            )
        if time.monotonic() - since > patience:
            raise NoWorkers(
                f"no worker connected to {self._hub.address} for {patience:.0f} s: see "
                f"{self._crew.logs} (the cluster's `interface` chooses the network)"
            )

    def close(self) -> None:
        """Makes the workers leave, also in the middle of an evaluation."""
        remove_connection(self._file)
        self._hub.close()
        self._crew.is_leaving = True


def _host(interface: str | None) -> str:
    """Returns where to listen: the chosen network, or loopback outside of a Slurm job."""
    if interface is not None:
        try:
            return get_ip_interface(interface)
        except ValueError as error:
            raise BadInput(f"cluster: interface = {interface!r}: {error}") from None
    return get_ip() if "SLURM_JOB_ID" in os.environ else "127.0.0.1"
