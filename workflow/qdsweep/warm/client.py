"""What a job does: it has the warm process run its command, and passes signals and exit code on.

Imports next to nothing: this is what each of many short runs pays.
"""

import contextlib
import json
import os
import signal
import socket
import struct
import sys
from types import FrameType

# The warm process's socket, set by the controlling Snakemake. `off`: start no warm process.
VARIABLE = "QDSWEEP_WARM"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
STOPPED = 75
LENGTH = struct.Struct("!I")


def run_warm(argv: list[str]) -> int | None:
    """Has a command run in a fork of the warm process.

    Args:
        argv: The command's words.

    Returns:
        Its exit code; None where there is no warm process (any more), so that the command has to
        be run here. One that was begun goes on from its reload file.
    """
    path = os.environ.pop(VARIABLE, "off")
    if path == "off":
        return None
    _open_streams()
    child: list[int] = []

    def hand_on(number: int, frame: FrameType | None) -> None:
        if not child:
            os._exit(STOPPED)  # nothing has begun
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
                "cwd": os.getcwd(),  # noqa: PTH109 - pathlib takes longer to import than all this
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
        if isinstance(error, ConnectionRefusedError):  # it was killed, and left this behind
            from pathlib import Path

            with contextlib.suppress(OSError):
                Path(path).unlink()
                Path(path).parent.rmdir()
        print(
            "qdsweep: the sweep's warm process is gone: this run starts by itself, which takes "
            "some seconds more",
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
    """Opens what is closed of 0, 1 and 2, so that no socket gets such a number."""
    number = 0
    while number <= 2:
        number = os.open(os.devnull, os.O_RDWR)
    os.close(number)
