"""A job's part: the warm process runs its command; the job passes on signals and the exit code.

The module imports almost nothing, as each of many short runs has to wait for it.
"""

import contextlib
import json
import os
import signal
import socket
import struct
import sys
from types import FrameType

from qdsweep.errors import STOPPED
from qdsweep.host.signals import SIGNALS

# The warm process's socket, set by the main Snakemake. `off`: start no warm process.
WARM_VARIABLE = "QDSWEEP_WARM"
LENGTH = struct.Struct("!I")


def run_warm(argv: list[str]) -> int | None:
    """Runs a command in a fork of the warm process, and returns its exit code.

    None if there is no warm process (any more): the command must then run here, and a run that
    had started resumes from its reload file.
    """
    path = os.environ.pop(WARM_VARIABLE, "off")
    if path == "off":
        return None
    _open_streams()
    child: list[int] = []

    def hand_on(number: int, frame: FrameType | None) -> None:
        if not child:
            os._exit(STOPPED)  # no command has started
        with contextlib.suppress(ProcessLookupError):
            os.kill(child[0], number)

    previous = {number: signal.signal(number, hand_on) for number in SIGNALS}
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            umask = os.umask(0)
            os.umask(umask)
            about = {
                "argv": argv,
                "cwd": os.getcwd(),  # noqa: PTH109 - importing pathlib takes longer than this
                "env": dict(os.environ),
                "umask": umask,
            }
            content = json.dumps(about).encode()
            socket.send_fds(connection, [LENGTH.pack(len(content))], [0, 1, 2])
            connection.sendall(content)
            answers = connection.makefile("r")
            child.append(int(answers.readline()))
            code = int(answers.readline())
    except (OSError, ValueError) as error:
        if isinstance(error, ConnectionRefusedError):  # it was killed, and left its socket
            from pathlib import Path

            with contextlib.suppress(OSError):
                Path(path).unlink()
                Path(path).parent.rmdir()
        print(
            "qdsweep: the sweep's warm process has ended, so this run starts without it, which "
            "takes some seconds longer",
            file=sys.stderr,
        )
        return None
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if code < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _open_streams() -> None:
    """Opens those of the streams 0, 1 and 2 that are closed: no socket may get their numbers."""
    number = 0
    while number <= 2:
        number = os.open(os.devnull, os.O_RDWR)
    os.close(number)
