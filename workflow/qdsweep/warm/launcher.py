"""The start of the warm process, for a sweep whose runs are computed on this machine."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from qdsweep.config.experiment import Experiment
from qdsweep.host.machine import has_avx2
from qdsweep.warm.client import WARM_VARIABLE


def start_warm(
    experiments: Iterable[Experiment], left: Sequence[Experiment], command: str, log: Path
) -> None:
    """Starts the warm process, which ends with this one. Jobs find it by an environment variable.

    All runs and the stages after them then share one start-up. The first ones wait no longer than
    without it. No result depends on it: if it is missing or has ended, each job starts on its own.

    Args:
        experiments: Those of all runs of the sweep.
        left: Those of the runs to compute; maybe none. A single run starts on its own.
        command: The function `MODULE:NAME` that runs the words of a command.
        log: The file of its output.
    """
    native = any(experiment.cpu_baseline != "avx2" for experiment in experiments)
    if len(left) == 1 or native or not has_avx2() or WARM_VARIABLE in os.environ:
        return
    kinds = {_kind(experiment): experiment for experiment in left}
    data = [experiment.model_dump(mode="json") for experiment in kinds.values()]
    folder = None
    try:
        folder = Path(tempfile.mkdtemp(prefix="qdsweep-"))  # only this user can read it (0700)
        _start(folder / "warm", json.dumps(data).encode(), command, log)
    except OSError as error:  # such as a full disk, or a path that is too long for a socket
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        print(
            f"qdsweep: warning: no warm start ({folder or 'no folder'}: {error})", file=sys.stderr
        )
    else:
        os.environ[WARM_VARIABLE] = str(folder / "warm")


def _kind(experiment: Experiment) -> tuple[str, str]:
    """Returns what is equal for runs that import and compile the same: numbers do not matter."""
    algorithm = experiment.algorithm.model_dump_json()
    without = json.loads(algorithm, parse_int=lambda _: None, parse_float=lambda _: None)
    return experiment.domain.name, json.dumps(without)


def _start(path: Path, experiments: bytes, command: str, log: Path) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    reads, writes = os.pipe()  # `writes` stays open until this process ends
    with socket.socket(socket.AF_UNIX) as listener, log.open("wb") as output:
        listener.bind(str(path))
        listener.listen(1024)
        words = [sys.executable, "-P", "-m", "qdsweep.warm.server", str(listener.fileno())]
        subprocess.Popen(
            [*words, command],
            stdin=reads,
            stdout=output,
            stderr=output,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
    os.close(reads)
    # After the start of its reader, as a pipe holds only 64 KiB.
    with open(writes, "wb", closefd=False) as pipe:
        pipe.write(experiments + b"\n")
