"""Ray's actors, one per worker, each with its own process and core.

Ray finds the cores. Another actor replaces an actor whose process or node is lost.
"""

import logging
import os
import pickle
import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import ray
from ray.exceptions import ObjectLostError, RayActorError

from qdsweep.engines.batch import Answer, Batch
from qdsweep.engines.children import pack_part, unpack
from qdsweep.engines.failures import WorkerLost
from qdsweep.engines.worker import Evaluator, Order

log = logging.getLogger("qdsweep")

# This many workers may be lost before they start. Each further one counts as rejected.
MAX_EARLY_LOSSES = 3


class RayService(Protocol):
    """A Ray cluster, for the run's actors.

    Attributes:
        options: The options of each actor.
        remedy: The advice to the user if no worker comes.
    """

    options: dict[str, Any]
    remedy: str

    def problem(self) -> str | None:
        """Returns why no worker will ever come; None while one may."""
        ...

    def close(self, actors: Iterable[Any]) -> None:
        """Ends the actors, and the cluster if it is the run's own."""
        ...


class Colleague(Evaluator):
    """An actor, that is, a worker with its own process of Ray."""

    def __init__(self, order: Order) -> None:
        if Path(order.directory).is_dir():  # the user's plug-ins are there
            os.chdir(order.directory)
        super().__init__(order)

    def describe(self) -> tuple[str, str]:
        """Returns its name, and the reason why it cannot work for the run (empty if it can)."""
        return self.name, self.problem

    def answer(self, question: bytes) -> bytes:
        """Answers a question of `pack`, for `unpack`. Ray is only fast with bytes."""
        return pickle.dumps(self.evaluate(*pickle.loads(question)), protocol=5)


@dataclass(eq=False)
class _Worker:
    """A worker, for the run, which is compared by identity.

    In a run that is not a node of the cluster, an actor's own comparison would wait for the thread
    that receives answers.
    """

    actor: Any
    name: str = "?"
    load: int = 0  # number of parts that it has


class Ray:
    """The run's actors in a Ray cluster.

    Args:
        order: The settings of all workers.
        cluster: The Ray cluster.
        wanted: Number of workers that the run has asked for.
    """

    name = "ray"

    def __init__(self, order: Order, cluster: RayService, wanted: int) -> None:
        self.wanted = wanted
        self.remedy = cluster.remedy
        self._order, self._cluster = order, cluster
        self._lock = threading.Lock()  # Ray answers in its own threads
        self._hired: set[_Worker] = set()  # includes those that still wait for a core
        self._ready: list[_Worker] = []
        self._refusals: list[str] = []
        self._early_losses = 0
        self._ending = False
        self._hiring = ThreadPoolExecutor(1)  # it would hang in a thread in which Ray answers
        for _ in range(wanted):
            self._hiring.submit(self._hire)

    @property
    def workers(self) -> int:
        """The current number of workers."""
        return 0 if self._cluster.problem() else len(self._ready)

    def submit(self, part: Batch, first: int, home: int | None = None) -> "Future[Answer]":
        """Submits a part; see `Executor.submit`."""
        future: Future[Answer] = Future()
        with self._lock:
            if not self._ready:
                future.set_exception(WorkerLost("the last one"))
                return future
            worker = min(self._ready, key=lambda worker: worker.load)
            if home is not None:
                worker = self._ready[home % len(self._ready)]
            worker.load += 1
        answer = worker.actor.answer.remote(pack_part(part, first)).future()
        answer.add_done_callback(partial(self._done, worker, future))
        return future

    def problem(self) -> str | None:
        """Returns why no worker will ever come; None while one may."""
        if len(self._refusals) == self.wanted:
            return f"every worker was rejected: {self._refusals[-1]}"
        return self._cluster.problem()

    def _hire(self) -> None:
        actor = ray.remote(Colleague).options(
            num_cpus=1, enable_task_events=False, **self._cluster.options
        )
        worker = _Worker(actor.remote(self._order))
        with self._lock:
            self._hired.add(worker)
        worker.actor.describe.remote().future().add_done_callback(partial(self._admit, worker))

    def _admit(self, worker: _Worker, asked: "Future[tuple[str, str]]") -> None:
        lost = False
        try:
            worker.name, problem = asked.result()
        except Exception as error:
            lost = isinstance(error, RayActorError) and not error.actor_init_failed
            problem = f"{type(error).__name__}: {error}"
        with self._lock:
            if self._ending:
                return
            if lost and self._early_losses < MAX_EARLY_LOSSES:
                self._early_losses += 1
                log.warning("a worker was lost before it started; asking for another one")
                self._hired.remove(worker)
                self._hiring.submit(self._hire)
                return
            if problem:
                self._refusals.append(problem)
                log.warning("worker %s rejected: %s", worker.name, problem)
                self._hired.remove(worker)  # Ray ends it, as this was the last reference
                return
            self._ready.append(worker)
            log.info("worker %s, %d now", worker.name, len(self._ready))

    def _done(self, worker: _Worker, future: "Future[Answer]", answer: "Future[bytes]") -> None:
        error: BaseException | None = answer.exception()
        content = unpack(answer.result()) if error is None else None
        is_short = content is not None and bool(content.lacks)
        with self._lock:
            worker.load -= 1
            is_lost = isinstance(error, RayActorError) or is_short
            if is_lost and worker in self._ready and not self._ending:
                self._ready.remove(worker)
                self._hired.remove(worker)
                log.warning("worker %s is lost, %d left", worker.name, len(self._ready))
                self._hiring.submit(self._hire)
        if content is not None:
            future.set_result(content)
        elif isinstance(error, (RayActorError, ObjectLostError)):
            future.set_exception(WorkerLost(str(error)))
        else:
            future.set_exception(error)

    def close(self) -> None:
        """Ends the workers, also in the middle of an evaluation."""
        self._hiring.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._ending = True
            actors = [worker.actor for worker in self._hired]
        self._cluster.close(actors)
