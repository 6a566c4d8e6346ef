"""The hub of a run: it accepts connections of workers and gives them parts of batches.

It uses Dask's communication (TLS, serialization, keep-alive) and not Dask's task scheduler, which
costs about 1.5 ms for each task; a part costs the hub a fifth of that. Workers connect to the hub
and never listen themselves.
"""

import asyncio
import contextlib
import logging
import pickle
import queue
import threading
import time
from collections import deque
from typing import Any

import dask
from distributed.comm import listen
from distributed.comm.core import Comm
from distributed.security import Security

from qdsweep.config.domain import Domain as DomainConfig
from qdsweep.engines.base import Batch, Outcome
from qdsweep.engines.failures import EvaluationFailed, WorkerDied
from qdsweep.engines.parts import PER_WORKER, Parts
from qdsweep.host.cpu import settings

log = logging.getLogger("qdsweep")

# Time for a worker to import the domain's libraries, from a file system that may be slow [s].
GREETING_SECONDS = 300.0
# At most so many lines of workers reach the run's log.
MAX_LINES = 1000
# A part that has lost so many workers ends the run, as it seems to kill them. Losses within some
# seconds count once: a node may be lost, or the workers taken away.
MAX_LOSSES = 3
INCIDENT_SECONDS = 3.0
# After so long without an answer, a worker counts as lost.
SILENCE = "30s"


class Hub:
    """Serves workers in a thread of its own.

    Args:
        domain: The domain's config, sent to each worker.
        objective_on_failure: See `evaluate_safely`.
        versions: Library -> version; a worker with other versions is refused.
        security: The run's credentials.
        listen_at: The address to listen at, `tls://HOST`.
    """

    def __init__(
        self,
        domain: DomainConfig,
        objective_on_failure: float | None,
        versions: dict[str, str],
        security: Security,
        listen_at: str,
    ) -> None:
        self.results: queue.SimpleQueue[tuple[slice, Outcome] | Exception] = queue.SimpleQueue()
        self.workers = 0
        self.lonely_since: float | None = time.monotonic()
        self._welcome = {
            "domain": pickle.dumps(domain),
            "objective_on_failure": objective_on_failure,
            "libraries": list(versions),
        }
        self._expected = versions | settings()
        self._security = security
        self._lines = 0
        self._parts = Parts()
        self._batch: Batch | None = None
        self._losses: dict[int, tuple[int, float]] = {}  # row -> how often, time of the last
        self._peers: set[asyncio.Task[None]] = set()
        self._comms: set[Comm] = set()
        self._ending = False
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(listen_at,), daemon=True)
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def begin(self, batch: Batch, rows: list[slice]) -> None:
        """Gives some rows of a batch to the workers; what comes back is put into `results`."""
        self._loop.call_soon_threadsafe(self._begin, batch, rows)

    def is_alive(self) -> bool:
        """Returns whether it still serves."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Tells the workers to leave and ends the thread."""
        with contextlib.suppress(RuntimeError):  # its loop has already ended
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(10)

    def _run(self, listen_at: str) -> None:
        try:
            asyncio.run(self._serve(listen_at))
        except BaseException as error:
            self._failure = error
            log.exception("the hub has ended")
        finally:
            self._started.set()

    async def _serve(self, listen_at: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        self._more = asyncio.Event()
        with dask.config.set({"distributed.comm.timeouts.tcp": SILENCE}):
            listener = await listen(
                listen_at, self._greet, **self._security.get_listen_args("scheduler")
            )
            self.address: str = listener.contact_address
            self._started.set()
            await self._closing.wait()
        listener.stop()
        self._ending = True
        for comm in list(self._comms):  # first, as a cancelled read breaks the connection
            with contextlib.suppress(OSError, asyncio.TimeoutError):
                await asyncio.wait_for(comm.write({"leave": None}), 1.0)
                await comm.close()
        for peer in self._peers:
            peer.cancel()
        await asyncio.gather(*self._peers, return_exceptions=True)

    def _begin(self, batch: Batch, rows: list[slice]) -> None:
        self._batch = batch
        self._losses.clear()
        self._parts.begin(rows)
        self._more.set()

    async def _greet(self, comm: Comm) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._peers.add(task)
        try:
            name = await self._admit(comm)
            if name is not None:
                await self._employ(comm, name)
        except (TimeoutError, OSError, ValueError, KeyError, TypeError) as error:
            log.debug("no worker: %s: %r", comm.peer_address, error)
        finally:
            self._peers.discard(task)
            comm.abort()

    async def _admit(self, comm: Comm) -> str | None:
        """Welcomes a worker and returns its name, or refuses it and returns None."""
        await comm.write(self._welcome)
        answer = await asyncio.wait_for(comm.read(), GREETING_SECONDS)
        name = f"{comm.peer_address} (process {answer['pid']} on {answer['host']})"
        wrong = [
            f"{what} {answer['has'].get(what)} (the run has {value})"
            for what, value in self._expected.items()
            if answer["has"].get(what) != value
        ]
        if wrong:
            reason = f"it would give other results: {', '.join(wrong)}"
            log.warning("worker %s turned away: %s", name, reason)
            await comm.write({"leave": reason})
            return None
        made = await asyncio.wait_for(comm.read(), GREETING_SECONDS)
        if made["problem"] is not None:
            log.warning("worker %s cannot make the domain: %s", name, made["problem"])
            return None
        return name

    async def _employ(self, comm: Comm, name: str) -> None:
        """Keeps a worker busy until it is lost or the run ends."""
        running: deque[slice] = deque()
        self.workers += 1
        self.lonely_since = None
        log.info("worker %s, %d now", name, self.workers)
        self._comms.add(comm)
        try:
            while True:
                while self._parts and (
                    not running or (len(running) < PER_WORKER and self._parts.plenty(self.workers))
                ):
                    part = self._parts.take(self.workers)
                    running.append(part)
                    assert self._batch is not None
                    # Pickled here: Dask's choice of a serializer would cost more than the rest.
                    content = pickle.dumps(self._batch.part(part), protocol=5)
                    await comm.write({"batch": content, "first": part.start})
                if running:
                    answer = await comm.read()
                    self._finish(running[0], answer, comm.peer_address)
                    running.popleft()
                else:
                    self._more.clear()
                    await self._more.wait()
        except Exception as error:  # on any error: nobody may wait for these rows for ever
            if not self._ending:
                log.warning("worker %s is lost, %d left (%s)", name, self.workers - 1, error)
                self._give_back(running)
        finally:
            self._comms.discard(comm)
            self.workers -= 1
            if self.workers == 0:
                self.lonely_since = time.monotonic()

    def _finish(self, part: slice, answer: dict[str, Any], address: str) -> None:
        self._log(address, answer["lines"])
        if "failure" in answer:
            self.results.put(EvaluationFailed(pickle.loads(answer["failure"])))
            return
        outcome: Outcome = pickle.loads(answer["outcome"])
        self._parts.learn(part, outcome.seconds)
        self.results.put((part, outcome))

    def _log(self, address: str, lines: list[str]) -> None:
        for line in lines[: max(0, MAX_LINES - self._lines)]:
            log.info("[%s] %s", address, line)
        before, self._lines = self._lines, self._lines + len(lines)
        if before < MAX_LINES <= self._lines:
            log.info("what workers say from now on stands in state/workers alone")

    def _give_back(self, running: deque[slice]) -> None:
        """Gives the rows of a lost worker to others, with the same seeds."""
        for part in running:
            self._parts.give_back(part)
        if running:
            self._note_loss(running[0].start)  # it evaluated this one; the others only waited
        self._more.set()

    def _note_loss(self, row: int) -> None:
        losses, last = self._losses.get(row, (0, -INCIDENT_SECONDS))
        now = time.monotonic()
        if now - last < INCIDENT_SECONDS:
            return
        self._losses[row] = losses + 1, now
        if losses + 1 == MAX_LOSSES:
            self.results.put(WorkerDied(MAX_LOSSES, row))
