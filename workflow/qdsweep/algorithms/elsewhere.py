"""An algorithm's iterations in another process, for `qdsweep check --algorithm`."""

import contextlib
import json
import os
import subprocess
import sys

from qdsweep.algorithms.check import Trace, first_trace
from qdsweep.config.experiment import Experiment
from qdsweep.errors import BadInput


def trace_elsewhere(experiment: Experiment) -> Trace:
    """Checks an algorithm in a process of its own, whose strings hash otherwise.

    Every process of Python hashes strings in its own way, so the order of a set of them is another
    one in each run. And what ends the process ends that one alone.

    Args:
        experiment: The experiment.

    Returns:
        What it asked for and what its archive was, for `check_algorithm` to compare with.

    Raises:
        BadInput: A promise is broken, or the process has ended; the message says why.
    """
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    done = subprocess.run(
        [sys.executable, "-m", "qdsweep.algorithms.elsewhere"],
        input=experiment.model_dump_json(),
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
    )
    if done.returncode == BadInput.exit_code and done.stdout:
        raise BadInput(done.stdout.strip())
    if done.returncode or not done.stdout:
        last = " ".join(done.stderr.strip().splitlines()[-1:])
        raise BadInput(
            f"{experiment.algorithm.name}: it ended its process with exit code {done.returncode}"
            f"{': ' * bool(last)}{last}. Usual causes: os._exit, exit(), a crash of a library"
        )
    return [(where, digest) for where, digest in json.loads(done.stdout)]


def main() -> int:
    """Checks the experiment of standard input; prints its trace as JSON, or what is wrong."""
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what it prints is no answer of ours
            trace = first_trace(Experiment.model_validate_json(sys.stdin.read()))
    except BadInput as error:
        print(error)
        return error.exit_code
    print(json.dumps(trace))
    return 0


if __name__ == "__main__":
    sys.exit(main())
