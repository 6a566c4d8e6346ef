"""The answer of a check in a separate process: a check that ends its process ends nothing else."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping

from qdsweep.errors import BadInput, raised
from qdsweep.host.process import ending


def answer_of(module: str, about: str, name: str, env: Mapping[str, str]) -> str:
    """Runs a module in a separate process, and returns its answer; see `answer`.

    Args:
        module: The module, which calls `answer`.
        about: The text of its standard input.
        name: The name of the checked thing, for the message.
        env: Further variables of its environment.

    Raises:
        BadInput: It has found something wrong, or its process has ended without an answer.
    """
    done = subprocess.run(
        [sys.executable, "-P", "-m", module],
        input=about,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
    )
    if done.returncode and done.stdout:
        is_refusal = done.returncode == BadInput.exit_code
        raise BadInput(f"{f'{name}: ' * (not is_refusal)}{done.stdout.strip()}")
    if done.returncode or not done.stdout:
        last = " ".join(done.stderr.strip().splitlines()[-1:])
        raise BadInput(
            f"{name}: it ended its process with {ending(done.returncode)}"
            f"{': ' * bool(last)}{last}. Usual causes: os._exit, exit(), a crash of a library"
        )
    sys.stderr.write(done.stderr)  # output and warnings of the process
    return done.stdout


def answer(check: Callable[[str], str]) -> int:
    """Checks the text on standard input; prints the answer, or the error.

    Args:
        check: Is given standard input, and returns the answer, or raises BadInput. Another error
            is printed with the line of the user's code.

    Returns:
        The exit code.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):  # its output is not the answer
            result = check(sys.stdin.read())
    except BadInput as error:
        print(error)
        return error.exit_code
    except Exception as error:
        print(raised(error))
        return 1
    print(result)
    return 0
