"""Dask: a connection of Dask's to each worker of a Dask cluster, past Dask's scheduler.

A Dask task costs client and scheduler some milliseconds, a message little. All else is Dask's: who
comes, who goes, TLS, the dashboard.
"""

import asyncio
import contextlib
import itertools
import logging
import pickle
import time
from concurrent.futures import Future
from typing import Any, NamedTuple

from distributed import Client
from distributed.comm import Comm
from distributed.comm import connect as connect_to

from qdsweep.config import cluster as config
from qdsweep.engines.allocation import Helpers
from qdsweep.engines.base import Answer, Batch
from qdsweep.engines.children import pack, unpack
from qdsweep.engines.evaluator import Order
from qdsweep.engines.executors.dask_cluster import Cluster, JoinedCluster, OwnCluster
from qdsweep.engines.executors.dask_worker import OPERATION, introduce, send
from qdsweep.engines.failures import WorkerLost
from qdsweep.records.run_dir import StateDir

log = logging.getLogger("qdsweep")

# How often a run without workers asks Dask's scheduler for them [s].
LOOK_AGAIN_SECONDS = 5.0


def connect(
    order: Order, cluster: config.Cluster, state: StateDir | None, helpers: Helpers | None
) -> "Dask":
    """Starts a cluster for the run, or joins the one that the cluster config names."""
    if helpers is None or state is None:
        return Dask(order, JoinedCluster(cluster.dask), cluster.workers)
    return Dask(order, OwnCluster(cluster, state, helpers), cluster.workers)


class _Worker(NamedTuple):
    """A worker, as the run sees it."""

    comm: Comm
    slots: int
    calls: "dict[int, Future[Answer]]"

    @property
    def load(self) -> float:
        """Parts that it has, per part that it can evaluate at a time."""
        return len(self.calls) / self.slots


class Dask:
    """The workers of a Dask cluster, those that come later too.

    Args:
        order: What the workers must know.
        cluster: The Dask cluster.
        wanted: How many workers the run has asked for.
    """

    name = "dask"

    def __init__(self, order: Order, cluster: Cluster, wanted: int) -> None:
        self.wanted = wanted
        self.remedy = cluster.remedy
        self._order, self._cluster = order, cluster
        self._client: Client = cluster.client
        self._loop = self._client.loop.asyncio_loop
        self._workers: dict[str, _Worker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._numbers = itertools.count()
        self._ending = False
        self._looked_at = time.monotonic()
        self._client.subscribe_topic("all", self._notice)
        self._client.sync(self._look)

    @property
    def workers(self) -> int:
        """How many parts can be evaluated at a time now."""
        return sum(worker.slots for worker in list(self._workers.values()))

    def submit(self, part: Batch, first: int) -> "Future[Answer]":
        """Has a part evaluated; see `Executor.submit`."""
        future: Future[Answer] = Future()
        self._loop.call_soon_threadsafe(self._ask, pack(part, first), future)
        return future

    def problem(self) -> str | None:
        """Returns why no worker will ever come; None while one may."""
        now = time.monotonic()
        if now > self._looked_at + LOOK_AGAIN_SECONDS:  # the scheduler may have started again
            self._looked_at = now
            asyncio.run_coroutine_threadsafe(self._look(), self._loop)
        return self._cluster.problem()

    def _ask(self, question: bytes, future: "Future[Answer]") -> None:
        if not self._workers:
            future.set_exception(WorkerLost("the last one"))
            return
        worker = min(self._workers.values(), key=lambda worker: worker.load)
        number = next(self._numbers)
        worker.calls[number] = future
        self._loop.create_task(send(worker.comm, number, question))

    def _notice(self, event: tuple[float, dict[str, Any]]) -> None:
        """Takes note of workers that come; Dask's scheduler tells it."""
        about = event[1]  # others may write anything there
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
            log.warning("worker %s (%s) turned away: %s", address, about, problem)
            return
        worker = self._workers[address] = _Worker(comm, slots, {})
        log.info("worker %s (%s), %d now", address, about, self.workers)
        try:
            while True:
                number, answer = await comm.read()
                self._take(worker.calls.pop(number), answer)
        except OSError as error:  # as Dask has it, of the connection
            del self._workers[address]
            if not self._ending:
                log.warning("worker %s is lost, %d left (%s)", address, self.workers, error)
            for call in worker.calls.values():
                call.set_exception(WorkerLost(address))

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
        with contextlib.suppress(Exception):
            if not self._cluster.is_own:
                self._client.sync(self._leave)
        self._cluster.close()

    async def _leave(self) -> None:
        for worker in self._workers.values():
            worker.comm.abort()
        self._client.unsubscribe_topic("all")
