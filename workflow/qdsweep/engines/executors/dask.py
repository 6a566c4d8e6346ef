"""Dask: a direct connection to each worker of a Dask cluster, past Dask's scheduler.

A Dask task costs client and scheduler some milliseconds, and a message costs less. Dask provides
everything else: arrival and loss of workers, TLS, and the dashboard. A Dask cluster belongs to the
run and has the scheduler in the main process, or it already exists.

Anyone who has the credentials of a run can run code as its user. The credentials are in a folder of
mode 0700, in files of mode 0600, and are removed at the end of the run.
"""

import asyncio
import contextlib
import itertools
import json
import logging
import os
import pickle
import shutil
import time
from collections import Counter
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import dask
from distributed import Client, LocalCluster
from distributed.comm import Comm
from distributed.comm import connect as connect_to
from distributed.security import Security
from distributed.utils import get_ip, get_ip_interface

from qdsweep.config import cluster as config
from qdsweep.engines.allocation import Helpers
from qdsweep.engines.batch import Answer, Batch
from qdsweep.engines.children import pack_part, unpack
from qdsweep.engines.executors.dask_worker import OPERATION, SETTINGS, introduce, send
from qdsweep.engines.failures import NoWorkers, WorkerLost
from qdsweep.engines.worker import Order
from qdsweep.errors import BadInput
from qdsweep.files import write_private
from qdsweep.ornaments import ornament
from qdsweep.records.paths import StateDir

log = logging.getLogger("qdsweep")

# The interval at which a run without workers asks Dask's scheduler for them [s].
LOOK_AGAIN_SECONDS = 5.0


class DaskService(Protocol):
    """A Dask cluster, for the executor.

    Attributes:
        client: The client that is connected to it.
        is_own: Whether it works only for this run and ends with it.
        remedy: The advice to the user if no worker comes.
    """

    client: Client
    is_own: bool
    remedy: str

    def problem(self) -> str | None:
        """Returns why no worker will ever come; None while one may."""
        ...

    def close(self) -> None:
        """Leaves the cluster, or ends the run's own."""
        ...


class OwnDaskCluster:
    """A cluster for one run, with the scheduler in this process. Its workers connect on their own.

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
        # No other user can read the credentials at any moment.
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
            f"see {helpers.logs}. Workers connect to {address}; the cluster's `interface` selects "
            "the network"
        )
        write_private(self._file, json.dumps({"address": address, "directory": str(Path.cwd())}))

    def problem(self) -> str | None:
        """Returns why no worker will ever come; None while one may."""
        if not self._helpers.are_gone():
            return None
        return (
            "the workers could not be started, or the process that starts them has ended; see "
            f"{self._helpers.logs}. The same command starts them again"
        )

    def close(self) -> None:
        """Makes the workers leave, and removes the credentials."""
        shutil.rmtree(self._file.parent, ignore_errors=True)
        self._helpers.are_leaving = True
        self._cluster.close(timeout=2)


class JoinedDaskCluster:
    """An existing cluster, which stays unchanged.

    Args:
        keys: The keys `dask:` of the cluster config, which have its address.
    """

    is_own = False

    def __init__(self, keys: config.DaskCluster) -> None:
        _quieten()
        address, security = _find(keys)
        self.remedy = f"the Dask cluster at {address} has no worker, or none that fits"
        try:
            self.client = Client(address, security=security, direct_to_workers=True, timeout=30)
        except OSError as error:  # it may be running again at the next attempt
            raise NoWorkers(f"cluster: dask: no scheduler answers at {address} ({error})") from None
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise BadInput(f"cluster: dask: {address} is not a Dask scheduler ({what})") from None

    def problem(self) -> None:
        """Returns None, because more workers may always come."""

    def close(self) -> None:
        """Leaves it."""
        self.client.close(timeout=2)


def _quieten() -> None:
    """Keeps Dask's tracebacks out of the run's log, where qdsweep reports arrivals and losses."""
    for name in ("distributed", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _find(keys: config.DaskCluster) -> tuple[str, Security | None]:
    """Returns the address of an existing Dask scheduler, and the credentials for it."""
    named, address = f"address = {keys.address!r}", keys.address
    if keys.scheduler_file is not None:
        named = f"scheduler_file = {keys.scheduler_file!r}"
        try:
            address = json.loads(Path(keys.scheduler_file).read_text(encoding="utf-8"))["address"]
        except FileNotFoundError:
            raise BadInput(f"cluster: dask: {named}: there is no such file") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadInput(
                f"cluster: dask: {named}: it is not a file of `dask scheduler --scheduler-file` "
                f"({type(error).__name__}: {error})"
            ) from None
    tls = {name: getattr(keys, name) for name in ("tls_ca_file", "tls_cert", "tls_key")}
    if str(address).startswith("tls://") != all(tls.values()):
        need = "needs" if not any(tls.values()) else "does not use TLS, and takes no"
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
    """Returns the address to listen on: the chosen network, or loopback outside a Slurm job."""
    if interface is not None:
        try:
            return get_ip_interface(interface)
        except ValueError as error:
            raise BadInput(f"cluster: interface = {interface!r}: {error}") from None
    return get_ip() if "SLURM_JOB_ID" in os.environ else "127.0.0.1"


@ornament("the address of Dask's dashboard")
def _say_where(link: str | None) -> None:
    if link:
        port = link.partition("://")[2].rpartition(":")[2].split("/")[0]
        log.info(
            "Dask's dashboard: %s (from elsewhere: ssh -L %s:127.0.0.1:%s %s)",
            *(link, port, port, os.uname().nodename),
        )


def connect_dask(
    order: Order, cluster: config.Cluster, state: StateDir | None, helpers: Helpers | None
) -> "Dask":
    """Starts a cluster for the run, or joins the one that the cluster config names."""
    if helpers is None or state is None:
        return Dask(order, JoinedDaskCluster(cluster.dask), cluster.workers)
    return Dask(order, OwnDaskCluster(cluster, state, helpers), cluster.workers)


class _Worker(NamedTuple):
    """A worker, for the run."""

    comm: Comm
    slots: int
    calls: "dict[int, Future[Answer]]"

    @property
    def load(self) -> float:
        """The number of parts that it has, divided by the number that it can evaluate at a time."""
        return len(self.calls) / self.slots


class Dask:
    """The workers of a Dask cluster, including those that come later.

    Args:
        order: The settings of all workers.
        cluster: The Dask cluster.
        wanted: Number of workers that the run has asked for.
    """

    name = "dask"

    def __init__(self, order: Order, cluster: DaskService, wanted: int) -> None:
        self.wanted = wanted
        self.remedy = cluster.remedy
        self._order, self._cluster = order, cluster
        self._client: Client = cluster.client
        self._loop = self._client.loop.asyncio_loop
        self._workers: dict[str, _Worker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._rejected: Counter[str] = Counter()
        self._numbers = itertools.count()
        self._ending = False
        self._looked_at = time.monotonic()
        self._client.subscribe_topic("all", self._notice)
        self._client.sync(self._look)

    @property
    def workers(self) -> int:
        """The number of parts that can currently be evaluated at a time."""
        return sum(worker.slots for worker in list(self._workers.values()))

    def submit(self, part: Batch, first: int, home: int | None = None) -> "Future[Answer]":
        """Submits a part; see `Executor.submit`."""
        future: Future[Answer] = Future()
        self._loop.call_soon_threadsafe(self._ask, pack_part(part, first), future, home)
        return future

    def problem(self) -> str | None:
        """Returns why no worker will ever come; None while one may."""
        now = time.monotonic()
        if now > self._looked_at + LOOK_AGAIN_SECONDS:  # the scheduler may have restarted
            self._looked_at = now
            asyncio.run_coroutine_threadsafe(self._look(), self._loop)
        return self._cluster.problem()

    def _ask(self, question: bytes, future: "Future[Answer]", home: int | None) -> None:
        if not self._workers:
            future.set_exception(WorkerLost("the last one"))
            return
        worker, place = min(self._workers.values(), key=lambda worker: worker.load), None
        if home is not None:
            places = [
                (each, place)
                for each in self._workers.values()
                for place in range(1, each.slots + 1)
            ]
            worker, place = places[home % len(places)]
        number = next(self._numbers)
        worker.calls[number] = future
        self._loop.create_task(send(worker.comm, number, question, place))

    def _notice(self, event: tuple[float, dict[str, Any]]) -> None:
        """Registers a new worker that Dask's scheduler reports."""
        about = event[1]  # other clients may write anything here
        if isinstance(about, dict) and about.get("action") == "add-worker":
            self._employ_soon(about["worker"])

    async def _look(self) -> None:
        there = await self._client.scheduler.identity(n_workers=-1)
        for address in there["workers"]:
            self._employ_soon(address)

    def _employ_soon(self, address: str) -> None:
        if address not in self._tasks and not self._ending:
            task = self._tasks[address] = self._loop.create_task(self._employ(address))
            task.add_done_callback(lambda _: self._tasks.pop(address))

    async def _employ(self, address: str) -> None:
        """Keeps a worker until it is lost or the run ends."""
        about = "?"
        try:
            await self._client.run(introduce, workers=[address])
            security = self._client.security.get_connection_args("client")
            comm = await connect_to(address, **security)
            order = pickle.dumps(self._order)
            await comm.write({"op": OPERATION, "reply": False, "order": order})
            about, problem, slots = await comm.read()
            if problem:
                comm.abort()
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        if problem:
            self._reject(f"{address} ({about}) rejected: {problem}")
            return
        worker = self._workers[address] = _Worker(comm, slots, {})
        log.info("worker %s (%s), %d now", address, about, self.workers)
        try:
            while True:
                number, answer = await comm.read()
                self._take(worker.calls.pop(number), answer)
        except OSError as error:  # Dask's error of a lost connection
            del self._workers[address]
            if not self._ending:
                log.warning("worker %s is lost, %d left (%s)", address, self.workers, error)
            for call in worker.calls.values():
                call.set_exception(WorkerLost(address))

    def _reject(self, why: str) -> None:
        """Logs once why a worker is not used; a run without workers asks it again and again."""
        if not self._rejected[why]:
            log.warning("worker %s", why)
        self._rejected[why] += 1

    def _take(self, call: "Future[Answer]", answer: bytes) -> None:
        try:
            call.set_result(unpack(answer))
        except Exception as error:
            if isinstance(error, WorkerLost):
                log.warning("worker %s is lost, and replaced", error)
            call.set_exception(error)

    def close(self) -> None:
        """Ends the run's part of the cluster, also in the middle of an evaluation."""
        self._ending = True
        for why, times in self._rejected.items():
            if times > 1:
                log.warning("%d times: worker %s", times, why)
        with contextlib.suppress(Exception):
            if not self._cluster.is_own:
                self._client.sync(self._leave)
        self._cluster.close()

    async def _leave(self) -> None:
        for worker in self._workers.values():
            worker.comm.abort()
        self._client.unsubscribe_topic("all")
