"""A check in a process of its own: what ends that process ends nothing else, and is said."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping

from qdsweep.errors import BadInput


def answer_of(module: str, about: str, name: str, env: Mapping[str, str]) -> str:
    """Runs a module in a process of its own, and returns its answer; see `answer`.

    Args:
        module: The module, which calls `answer`.
        about: What it is given on its standard input.
        name: What is checked, for the message.
        env: Further variables of its environment.

    Raises:
        BadInput: It has found something wrong, or its process has ended without an answer.
    """
    done = subprocess.run(
        [sys.executable, "-m", module],
        input=about,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
    )
    if done.returncode == BadInput.exit_code and done.stdout:
        raise BadInput(done.stdout.strip())
    if done.returncode or not done.stdout:
        last = " ".join(done.stderr.strip().splitlines()[-1:])
        raise BadInput(
            f"{name}: it ended its process with exit code {done.returncode}"
            f"{': ' * bool(last)}{last}. Usual causes: os._exit, exit(), a crash of a library"
        )
    sys.stderr.write(done.stderr)  # what it printed, and warnings
    return done.stdout


def answer(check: Callable[[str], str]) -> int:
    """Checks what is on standard input; prints the answer, or what is wrong.

    Args:
        check: Is given standard input, and returns the answer, or raises BadInput.

    Returns:
        The exit code.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what it prints is no answer of ours
            found = check(sys.stdin.read())
    except BadInput as error:
        print(error)
        return error.exit_code
    print(found)
    return 0
