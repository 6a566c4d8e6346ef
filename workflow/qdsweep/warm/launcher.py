"""The start of the warm process, for a sweep whose runs are computed on this machine.

It also tries algorithms that only code can check, before any job of a sweep starts.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from qdsweep.config.experiment import BUDGETS, Experiment
from qdsweep.errors import BadInput
from qdsweep.host.machine import apply_baseline, has_avx2
from qdsweep.warm.client import WARM_VARIABLE

# These keys change neither how an algorithm is made nor its first ask.
_APART = {"seed", *BUDGETS, "reload", "timeout"}
# After this time it prints what it waits for [s].
NOTICE_SECONDS = 15.0


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


def try_algorithms(experiments: Iterable[Experiment]) -> None:
    """Makes algorithms with user code, and learners, once in a separate process.

    An error of their constructors is then reported once, and not by every run: a learner refuses
    the actions of some environments. It costs a few seconds, and nothing if all parts are pyribs'.

    Args:
        experiments: Those of the runs to compute.

    Raises:
        BadInput: An algorithm cannot be made, pickled or asked; the message has the reason.
    """
    kinds = {
        json.dumps(experiment.model_dump(mode="json", exclude=_APART)): experiment
        for experiment in experiments
        if experiment.algorithm.own_parts or experiment.algorithm.needs_experience
    }
    if not kinds:
        return
    data = json.dumps([experiment.model_dump(mode="json") for experiment in kinds.values()])
    own = sorted({part for one in kinds.values() for part in _parts(one)})
    waits = f"qdsweep: still tries {', '.join(own)}, once before all runs"
    words = [sys.executable, "-P", "-m", "qdsweep.warm.launcher"]
    notice = threading.Timer(NOTICE_SECONDS, print, (waits,), {"file": sys.stderr})
    notice.daemon = True
    notice.start()
    try:
        done = subprocess.run(words, input=data, capture_output=True, text=True)
    except KeyboardInterrupt:
        raise BadInput("Ctrl-C: no run was started. The same command starts the sweep") from None
    finally:
        notice.cancel()
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        ended = f"it ended its process with exit code {done.returncode}: {' '.join(last)}"
        what = done.stdout.strip() or f"{', '.join(own)}: {ended}"
        raise BadInput(
            f"{what}\nNo run was started. `qdsweep check --algorithm NAME` tries it again"
        )


def _parts(experiment: Experiment) -> list[str]:
    return experiment.algorithm.plugins or [experiment.algorithm.name]


def main() -> int:
    """Tries the experiments of standard input (a JSON list); prints what is wrong, exits 2."""
    apply_baseline("avx2")  # before numpy is imported
    from qdsweep.algorithms.check import try_out

    tried = [Experiment.model_validate_json(json.dumps(data)) for data in json.load(sys.stdin)]
    several = len({experiment.domain.name for experiment in tried}) > 1
    for experiment in tried:
        try:
            with contextlib.redirect_stdout(sys.stderr):  # its output is not the message
                try_out(experiment)
        except BadInput as error:
            print(f"domain {experiment.domain.name}: {error}" if several else error)
            return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
