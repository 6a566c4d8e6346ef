"""A worker process, which connects to the hub of a run from any node."""

import asyncio
import contextlib
import logging
import os
import pickle
import queue
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from distributed.comm import connect
from distributed.comm.core import Comm

from qdsweep.engines import worker
from qdsweep.engines.connection import read_connection
from qdsweep.engines.failures import EvaluationFailed
from qdsweep.engines.worker_log import WorkerLog
from qdsweep.host.cpu import settings
from qdsweep.records.run_dir import RunDir
from qdsweep.versions import installed_versions

# Exit codes: the run has ended or cannot be found; it refused this worker; the connection broke.
LEFT, TURNED_AWAY, LOST = 0, 4, 5


def serve(run: Path, logs: Path, patience: float) -> int:
    """Evaluates parts until the run tells the worker to leave; returns or exits with a code.

    Args:
        run: The run's folder.
        logs: Folder of the log file, `HOST-PID.log`.
        patience: How long to look for the run's main process [s].
    """
    lines = WorkerLog(logs / f"{socket.gethostname()}-{os.getpid()}.log")
    lines.take_over_output()
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    talk = _Talk(run, patience, lines, inbox)
    threading.Thread(target=asyncio.run, args=(talk.hold(),), daemon=True).start()
    welcome = inbox.get()
    os.chdir(welcome["directory"])  # the user's plug-ins are there
    try:
        worker.start(pickle.loads(welcome["domain"]), welcome["objective_on_failure"])
    except Exception as error:
        logging.exception("the domain cannot be made here")
        talk.answer({"problem": f"{type(error).__name__}: {error}"})
        return TURNED_AWAY
    talk.answer({"problem": None})
    while True:
        message = inbox.get()
        try:
            outcome = worker.evaluate(pickle.loads(message["batch"]), message["first"])
            answer = {"outcome": pickle.dumps(outcome, protocol=5)}
        except EvaluationFailed as error:
            answer = {"failure": pickle.dumps(error.failure)}
        talk.answer({**answer, "lines": lines.take()})


class _Talk:
    """The connection, in a thread of its own, which notices the end of the run at once."""

    def __init__(
        self, run: Path, patience: float, lines: WorkerLog, inbox: "queue.SimpleQueue[Any]"
    ) -> None:
        self._file = RunDir(run).state.connection
        self._patience = patience
        self._lines = lines
        self._inbox = inbox

    async def hold(self) -> None:
        """Reads messages until the end, which ends the process."""
        code = LOST
        try:
            self._loop = asyncio.get_running_loop()
            self._comm, directory = await self._connect()
            self._lines.prefix = f"{self._comm.local_address} "
            welcome = await self._comm.read()
            about = {
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "has": installed_versions(welcome["libraries"]) | settings(),
            }
            await self._comm.write(about)
            self._inbox.put({**welcome, "directory": directory})
            while True:
                message = await self._comm.read()
                if "leave" in message:
                    code = TURNED_AWAY if message["leave"] else LEFT
                    print(message["leave"] or "the run has ended", file=sys.stderr)
                    return
                self._inbox.put(message)
        except TimeoutError as error:
            code = LEFT
            print(error, file=sys.stderr)
        except OSError as error:
            print(f"lost the run: {error}", file=sys.stderr)
        except BaseException:
            logging.exception("the connection broke")
        finally:
            os._exit(code)  # also in the middle of an evaluation

    def answer(self, message: dict[str, Any]) -> None:
        """Sends a message from the main thread."""
        asyncio.run_coroutine_threadsafe(self._comm.write(message), self._loop).result()

    async def _connect(self) -> tuple[Comm, str]:
        """Connects. The file may be of an earlier attempt, so it is read again each time."""
        deadline = time.monotonic() + self._patience
        while time.monotonic() < deadline:
            connection = read_connection(self._file)
            if connection is not None:
                arguments = connection.security().get_connection_args("worker")
                with contextlib.suppress(OSError, asyncio.TimeoutError):
                    comm = await connect(connection.address, timeout=5, **arguments)
                    return comm, connection.directory
            await asyncio.sleep(0.1)
        raise TimeoutError(f"{self._file}: no main process found for {self._patience:.0f} s")
