"""An algorithm's iterations in another process, for `qdsweep check --algorithm`."""

import json
import os
import sys

from qdsweep.algorithms.check import Trace, first_trace
from qdsweep.config.experiment import Experiment
from qdsweep.host.apart import answer, answer_of


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
    name, about = experiment.algorithm.name, experiment.model_dump_json()
    found = answer_of("qdsweep.algorithms.elsewhere", about, name, {"PYTHONHASHSEED": seed})
    return [(where, digest) for where, digest in json.loads(found)]


def _trace(about: str) -> str:
    return json.dumps(first_trace(Experiment.model_validate_json(about)))


if __name__ == "__main__":
    sys.exit(answer(_trace))
