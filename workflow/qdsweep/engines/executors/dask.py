"""Dask: an actor on each worker of a Dask cluster, called directly, past Dask's scheduler.

A Dask task costs client and scheduler some milliseconds; a call of an actor costs little more than
its message. All else is Dask's: who comes, who goes, TLS, the dashboard.
"""

import asyncio
import contextlib
import logging
import os
import sys
import time
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from distributed import Client, get_worker
from distributed.client import Future as Task

from qdsweep.config import cluster as config
from qdsweep.engines.allocation import Helpers
from qdsweep.engines.base import Answer, Batch
from qdsweep.engines.children import Children, pack, unpack
from qdsweep.engines.evaluator import Order
from qdsweep.engines.executors.dask_cluster import Cluster, JoinedCluster, OwnCluster
from qdsweep.engines.executors.dask_worker import is_ours
from qdsweep.engines.failures import WorkerLost
from qdsweep.records.run_dir import StateDir

log = logging.getLogger("qdsweep")

# How often a worker looks whether the run is still there [s].
LOOK_SECONDS = 1.0
# How often a run without workers asks Dask's scheduler for them [s].
LOOK_AGAIN_SECONDS = 5.0
# How long workers of others may take to hear that the run has ended [s].
GOODBYE_SECONDS = 1.0


def connect(
    order: Order, cluster: config.Cluster, state: StateDir | None, helpers: Helpers | None
) -> "Dask":
    """Starts a cluster for the run, or joins the one that the cluster config names."""
    if helpers is None or state is None:
        return Dask(order, JoinedCluster(cluster.dask), cluster.workers)
    return Dask(order, OwnCluster(cluster, state, helpers), cluster.workers)


class Colleague:
    """An actor: what a run has on a Dask worker, with a process per thread of the worker.

    They have the run's CPU settings, and leave nothing behind in the worker. Runs that share a
    worker take turns, a part each.
    """

    def __init__(self, order: Order) -> None:
        self._worker = worker = get_worker()
        self._slots = worker.state.nthreads
        self._threads = ThreadPoolExecutor(self._slots)
        self._children = Children(order, self._slots, worker.address)

    async def describe(self) -> tuple[str, str, int]:
        """Returns host and process, why it cannot work (empty if it can), parts at a time."""
        loop = asyncio.get_running_loop()
        problem = await loop.run_in_executor(self._threads, self._children.problem)
        if problem and is_ours():
            print(f"the run has turned this worker away: {problem}", file=sys.stderr)
            loop.call_later(0.5, os._exit, 1)  # when the answer is on its way
        return f"process {os.getpid()} on {os.uname().nodename}", problem, self._slots

    async def evaluate(self, question: bytes) -> bytes:
        """Has a part evaluated; see `Children.ask`."""
        async with _turns(self._slots):
            loop = asyncio.get_running_loop()
            answer = loop.run_in_executor(self._threads, self._children.ask, question)
            try:
                while not (await asyncio.wait((answer,), timeout=LOOK_SECONDS))[0]:
                    if self not in self._worker.state.actors.values():
                        self._children.close()  # the run was killed, or has lost this worker
            except asyncio.CancelledError:  # the Dask worker ends
                self._children.close()
                raise
            return answer.result()

    async def leave(self) -> None:
        """Ends the run's processes on this worker."""
        self._children.close()

    def __del__(self) -> None:  # the run was killed, and Dask forgets its actors
        self._children.close()


class _Worker(NamedTuple):
    """A worker, as the run sees it."""

    task: Task
    actor: Any
    slots: int
    calls: "set[asyncio.Task[Any]]"

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
        self._admissions: dict[str, asyncio.Task[None]] = {}
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
        return asyncio.run_coroutine_threadsafe(self._ask(pack(part, first)), self._loop)

    def problem(self) -> str | None:
        """Returns why no worker will ever come; None while one may."""
        now = time.monotonic()
        if now > self._looked_at + LOOK_AGAIN_SECONDS:  # the scheduler may have started again
            self._looked_at = now
            asyncio.run_coroutine_threadsafe(self._look(), self._loop)
        return self._cluster.problem()

    async def _ask(self, question: bytes) -> Answer:
        if not self._workers:
            raise WorkerLost("the last one")
        address, worker = min(self._workers.items(), key=lambda item: item[1].load)
        this = asyncio.current_task()
        assert this is not None
        worker.calls.add(this)
        try:
            answer = await worker.actor.evaluate(question)
        except asyncio.CancelledError:  # it has vanished and may never answer
            raise WorkerLost(address) from None
        except (OSError, RuntimeError) as error:  # as Dask has it: of the connection, of the actor
            self._dismiss(address, str(error))
            raise WorkerLost(address) from None
        except WorkerLost as error:
            log.warning("worker %s is lost, and replaced", error)
            raise
        finally:
            worker.calls.discard(this)
        return unpack(answer)

    def _notice(self, event: tuple[float, dict[str, Any]]) -> None:
        """Takes note of workers that come and go; Dask's scheduler tells it."""
        about = event[1]  # others may write anything there
        action = about.get("action") if isinstance(about, dict) else None
        if action == "add-worker":  # not awaited: its answers come the same way
            self._admit_soon(about["worker"])
        elif action == "remove-worker":
            self._dismiss(about["worker"], "Dask has lost it")
            if about["worker"] in self._admissions:
                self._admissions[about["worker"]].cancel()

    async def _look(self) -> None:
        there = await self._client.scheduler.identity(n_workers=-1)
        for address in there["workers"]:
            self._admit_soon(address)

    def _admit_soon(self, address: str) -> None:
        if address in self._workers or address in self._admissions or self._ending:
            return
        task = self._loop.create_task(self._admit(address))
        self._admissions[address] = task
        task.add_done_callback(lambda _: self._admissions.pop(address))

    async def _admit(self, address: str) -> None:
        key = f"qdsweep-{uuid.uuid4().hex}"
        task = self._client.submit(
            Colleague, self._order, actor=True, workers=[address], pure=False, key=key
        )
        try:
            actor = await task
            about, problem, slots = await actor.describe()
        except Exception as error:
            about, problem, slots = "?", f"{type(error).__name__}: {error}", 0
        if problem:
            task.release()
            log.warning("worker %s (%s) turned away: %s", address, about, problem)
            return
        self._workers[address] = _Worker(task, actor, slots, set())
        log.info("worker %s (%s), %d now", address, about, self.workers)

    def _dismiss(self, address: str, why: str) -> None:
        worker = self._workers.pop(address, None)
        if worker is None:
            return
        worker.task.release()
        for call in worker.calls - {asyncio.current_task()}:
            call.cancel()
        if not self._ending:
            log.warning("worker %s is lost, %d left (%s)", address, self.workers, why)

    def close(self) -> None:
        """Ends the run's part of the cluster, also in the middle of an evaluation."""
        self._ending = True
        with contextlib.suppress(Exception):
            if not self._cluster.is_own:
                self._client.sync(self._say_goodbye, callback_timeout=GOODBYE_SECONDS)
                self._client.unsubscribe_topic("all")
        self._cluster.close()

    async def _say_goodbye(self) -> None:
        calls = [worker.actor.leave() for worker in self._workers.values()]
        await asyncio.gather(*calls, return_exceptions=True)


_turn: asyncio.Semaphore | None = None


def _turns(slots: int) -> asyncio.Semaphore:
    """Returns the turns of a worker of others, which all runs there share."""
    global _turn
    if _turn is None:
        _turn = asyncio.Semaphore(slots)
    return _turn
