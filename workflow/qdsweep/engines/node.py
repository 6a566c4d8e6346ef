"""`qdsweep worker`: the workers of one node. One that crashes is started again."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from qdsweep.config.compose import compose
from qdsweep.config.domain import Domain as DomainConfig
from qdsweep.config.domain import Plugin
from qdsweep.errors import QdsweepError
from qdsweep.files import read_json_if_whole
from qdsweep.host.cpu import apply_baseline
from qdsweep.host.parent import die_with_parent
from qdsweep.records.run_dir import RunDir

# How long a worker that was started again looks for the run's main process [s].
PATIENCE = 5.0


def work(run: Path, workers: int, patience: float) -> None:
    """Evaluates for a run until it ends.

    It imports what workers need, then forks them: a node with 100 workers reads the shared file
    system once, and has the libraries in memory once.

    Args:
        run: The run's folder.
        workers: Number of worker processes.
        patience: How long to look for the run's main process at first [s].

    Raises:
        QdsweepError: The run refused the workers.
    """
    state = RunDir(run).state
    directory = read_json_if_whole(state.connection).get("directory")
    if isinstance(directory, str) and Path(directory).is_dir():  # the user's plug-ins are there
        os.chdir(directory)
    if state.config.exists():  # there is none before the first start of a run
        experiment = compose(str(state.config))
        apply_baseline(experiment.cpu_baseline)
        _import_libraries(experiment.domain)
    from qdsweep.engines.executors.dask_cluster import NO_RUN, TURNED_AWAY, serve

    state.workers.mkdir(parents=True, exist_ok=True)
    alive: dict[int, float] = {}

    def start(patience: float) -> None:
        pid = _fork(lambda: serve(run, patience))
        alive[pid] = time.monotonic()

    def leave(number: int, _frame: object) -> None:
        for pid in alive:
            os.kill(pid, signal.SIGKILL)
        os._exit(128 + number)  # the main process gives their parts to others

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave)
    for _ in range(workers):
        start(patience)
    codes = []
    while alive:
        pid, status = os.wait()
        seconds = time.monotonic() - alive.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        codes.append(code)
        if code in (NO_RUN, TURNED_AWAY) or not state.connection.exists():
            continue
        print(f"qdsweep: worker process {pid} ended ({code}): started again", file=sys.stderr)
        time.sleep(max(0.0, 1.0 - seconds))
        start(PATIENCE)
    if TURNED_AWAY in codes:
        raise QdsweepError(f"{run} turned workers away; its run.log says why")


def _import_libraries(domain: DomainConfig) -> None:
    """Imports what a worker needs, without starting a thread: this process is forked later."""
    from qdsweep.config.plugin import load_class
    from qdsweep.domains import make_domain

    if isinstance(domain, Plugin):
        load_class(domain.type)  # an instance of it could start threads
    else:
        make_domain(domain)


def _fork(run: Callable[[], int]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
        die_with_parent(signal.SIGKILL)
        code = run()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)
