"""Ray's actors: one for each worker, with a process and a core of its own.

Ray finds the cores. For an actor whose process or node is lost there is another one.
"""

import logging
import os
import pickle
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import ObjectLostError, RayActorError

from qdsweep.engines.base import Answer, Batch
from qdsweep.engines.children import pack, unpack
from qdsweep.engines.evaluator import Evaluator, Order
from qdsweep.engines.failures import WorkerLost

if TYPE_CHECKING:
    from qdsweep.engines.executors.ray import Cluster

log = logging.getLogger("qdsweep")


class Colleague(Evaluator):
    """An actor: a worker, whose process Ray has started for it alone."""

    def __init__(self, order: Order) -> None:
        if Path(order.directory).is_dir():  # the user's plug-ins are there
            os.chdir(order.directory)
        super().__init__(order)

    def describe(self) -> tuple[str, str]:
        """Returns its name, and why it cannot work for the run (empty if it can)."""
        return self.name, self.problem

    def answer(self, question: bytes) -> bytes:
        """Answers a question of `pack`, for `unpack`: Ray is slow with anything but bytes."""
        return pickle.dumps(self.evaluate(*pickle.loads(question)), protocol=5)


class Ray:
    """The run's actors in a Ray cluster.

    Args:
        order: What the workers must know.
        cluster: The Ray cluster.
        wanted: How many workers the run has asked for.
    """

    name = "ray"

    def __init__(self, order: Order, cluster: "Cluster", wanted: int) -> None:
        self.wanted = wanted
        self.remedy = cluster.remedy
        self._order, self._cluster = order, cluster
        self._lock = threading.Lock()  # Ray answers in threads of its own
        self._load: dict[Any, int] = {}  # worker -> parts that it has
        self._names: dict[Any, str] = {}
        self._refusals: list[str] = []
        self._ending = False
        self._actors: set[Any] = set()  # those that Ray finds no core for yet, too
        self._hiring = ThreadPoolExecutor(1)  # in a thread that Ray answers in it would hang
        for _ in range(wanted):
            self._hiring.submit(self._hire)

    @property
    def workers(self) -> int:
        """How many there are now."""
        return 0 if self._cluster.problem() else len(self._load)

    def submit(self, part: Batch, first: int) -> "Future[Answer]":
        """Has a part evaluated; see `Executor.submit`."""
        future: Future[Answer] = Future()
        with self._lock:
            if not self._load:
                future.set_exception(WorkerLost("the last one"))
                return future
            worker = min(self._load, key=self._load.__getitem__)
            self._load[worker] += 1
        answer = worker.answer.remote(pack(part, first)).future()
        answer.add_done_callback(partial(self._done, worker, future))
        return future

    def problem(self) -> str | None:
        """Returns why no worker will ever come; None while one may."""
        if len(self._refusals) == self.wanted:
            return f"every worker was turned away: {self._refusals[-1]}"
        return self._cluster.problem()

    def _hire(self) -> None:
        actor = ray.remote(Colleague).options(
            num_cpus=1, enable_task_events=False, **self._cluster.options
        )
        worker = actor.remote(self._order)
        with self._lock:
            self._actors.add(worker)
        worker.describe.remote().future().add_done_callback(partial(self._admit, worker))

    def _admit(self, worker: Any, asked: "Future[tuple[str, str]]") -> None:
        try:
            name, problem = asked.result()
        except Exception as error:
            name, problem = "?", f"{type(error).__name__}: {error}"
        with self._lock:
            if self._ending:
                return
            if problem:
                self._refusals.append(problem)
                log.warning("worker %s turned away: %s", name, problem)
                self._actors.remove(worker)  # nobody has it any more: Ray ends it
                return
            self._load[worker] = 0
            self._names[worker] = name
            log.info("worker %s, %d now", name, len(self._load))

    def _done(self, worker: Any, future: "Future[Answer]", answer: "Future[bytes]") -> None:
        error: BaseException | None = answer.exception()
        with self._lock:
            if worker in self._load:
                self._load[worker] -= 1
                if isinstance(error, RayActorError) and not self._ending:
                    del self._load[worker]
                    name = self._names[worker]
                    log.warning("worker %s is lost, %d left", name, len(self._load))
                    self._actors.remove(worker)
                    self._hiring.submit(self._hire)
        if error is None:
            future.set_result(unpack(answer.result()))
        elif isinstance(error, (RayActorError, ObjectLostError)):
            future.set_exception(WorkerLost(str(error)))
        else:
            future.set_exception(error)

    def close(self) -> None:
        """Ends the workers, also in the middle of an evaluation."""
        with self._lock:
            self._ending = True
        self._hiring.shutdown(wait=False, cancel_futures=True)
        self._cluster.close(self._actors)
