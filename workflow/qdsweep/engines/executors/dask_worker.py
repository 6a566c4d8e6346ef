"""The processes of a run on a Dask worker, and `qdsweep worker`, a Dask worker for one run."""

import asyncio
import contextlib
import json
import logging
import os
import pickle
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import dask
from distributed import Worker, WorkerPlugin
from distributed.comm import Comm, connect
from distributed.core import Status
from distributed.security import Security

from qdsweep.engines.children import Children
from qdsweep.engines.failures import WorkerLost
from qdsweep.errors import QdsweepError
from qdsweep.records.paths import RunDir, StateDir

# Dask has no tasks to watch here, and no memory to manage.
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
    # Workers stay to the end of the run, with any Dask config of the user for other clusters.
    "distributed.worker.lifetime.duration": None,
    "distributed.scheduler.idle-timeout": None,  # evaluations are not tasks of Dask
    "distributed.comm.timeouts.tcp": "30s",  # a node that is silent for this time is lost
    "distributed.scheduler.worker-ttl": None,  # a suspended worker is not lost
}

# The name of a Dask worker's operation for a run.
OPERATION = "qdsweep"

_is_ours = False  # whether this process is a worker of `qdsweep worker`
_turn: asyncio.Semaphore | None = None


def introduce(dask_worker: Worker) -> None:
    """Adds the operation for runs to a Dask worker, in whose process it is called."""

    async def serve(comm: Comm, order: bytes) -> Status:
        await _serve(dask_worker, comm, order)
        return Status.dont_reply

    dask_worker.handlers[OPERATION] = serve


async def _serve(dask_worker: Worker, comm: Comm, order: bytes) -> None:
    """Works for a run until the connection ends, with one process per thread of the worker.

    The processes have the run's CPU settings, and leave no state in the worker.
    """
    slots = dask_worker.state.nthreads
    loop, threads = asyncio.get_running_loop(), ThreadPoolExecutor(slots)
    children = Children(pickle.loads(order), slots, dask_worker.address)

    async def answer(number: int, question: bytes, place: int | None) -> None:
        async with _turns(slots):
            try:
                content = await loop.run_in_executor(threads, children.ask, question, place)
            except WorkerLost as error:
                content = pickle.dumps(error)
        await send(comm, number, content)

    tasks, problem = set(), ""
    try:
        problem = await loop.run_in_executor(threads, children.problem)
        about = f"process {os.getpid()} on {os.uname().nodename}"
        await comm.write([about, problem, slots])
        while True:
            task = asyncio.create_task(answer(*await comm.read()))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
    finally:
        children.close()
        if problem and _is_ours:
            print(f"the run has rejected this worker: {problem}", file=sys.stderr, flush=True)
            os._exit(1)


async def send(comm: Comm, number: int, content: bytes, *place: int | None) -> None:
    """Sends a question for a process, or the answer with its number. The reader sees failures."""
    with contextlib.suppress(OSError):
        await comm.write([number, content, *place])


def _turns(slots: int) -> asyncio.Semaphore:
    """Returns the turns of a shared worker. Its runs take them in turn, for one part each."""
    global _turn
    if _turn is None:
        _turn = asyncio.Semaphore(slots)
    return _turn


def credentials(folder: Path) -> Security:
    """Returns a run's credentials. Both sides show them and accept no others (mutual TLS)."""
    pem = str(folder / "tls.pem")
    names = [f"tls_{role}_{what}" for role in ("scheduler", "worker") for what in ("cert", "key")]
    return Security(require_encryption=True, tls_ca_file=pem, **dict.fromkeys(names, pem))


class _Leave(WorkerPlugin):
    """Ends the process as soon as Dask does, also in the middle of an evaluation."""

    def teardown(self, worker: Worker) -> None:
        """Ends the process when the scheduler asks for it, or has ended."""
        os._exit(0)


class _Scheduler(NamedTuple):
    address: str
    security: Security
    host: str  # this process's address on the network that reaches the scheduler


def work_with_dask(run: Path, workers: int, patience: float) -> None:
    """Evaluates for a run until the run ends, and then ends this process.

    Args:
        run: The run's folder.
        workers: Number of worker processes.
        patience: How long to look for the run's main process [s].

    Raises:
        QdsweepError: There is no main process.
    """
    global _is_ours
    _is_ours = True
    dask.config.set(SETTINGS)
    logging.getLogger("distributed").setLevel(logging.ERROR)
    asyncio.run(_work(RunDir(run).state, workers, patience))


async def _work(state: StateDir, workers: int, patience: float) -> None:
    scheduler = await _find_scheduler(state.connection, patience)
    print(f"qdsweep: {workers} process(es) evaluate for the run {state.path.parent}", flush=True)
    worker = await Worker(
        scheduler.address,
        security=scheduler.security,
        host=scheduler.host,
        nthreads=workers,
        memory_limit=0,  # none, see SETTINGS
        dashboard=False,
        dashboard_address="127.0.0.1:0",
        local_directory=str(state.workers),
        plugins=(_Leave(),),
    )
    worker.http_server.stop()
    await worker.finished()


async def _find_scheduler(file: Path, patience: float) -> _Scheduler:
    """Waits for the main process. The files may come from an earlier attempt, so they are tried."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            address = json.loads(file.read_text(encoding="utf-8"))["address"]
            security = credentials(file.parent)
            comm = await connect(address, timeout=5, **security.get_connection_args("worker"))
        except (OSError, ValueError, KeyError, TimeoutError):
            await asyncio.sleep(0.1)
            continue
        host = comm.local_address.rpartition("://")[2].rpartition(":")[0]
        await comm.close()
        return _Scheduler(address, security, host)
    raise QdsweepError(f"{file}: no main process found for {patience:.0f} s")
