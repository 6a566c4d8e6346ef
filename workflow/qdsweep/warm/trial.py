"""A quick look at algorithms that only code can judge, before any job of a sweep starts."""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterable

from qdsweep.config.experiment import BUDGETS, Experiment
from qdsweep.errors import BadInput
from qdsweep.host.cpu import apply_baseline

# What tells neither how an algorithm is made nor what it is asked first.
_APART = {"seed", *BUDGETS, "reload", "timeout"}

# After so long it says what it waits for [s].
NOTICE_SECONDS = 15.0


def try_algorithms(experiments: Iterable[Experiment]) -> None:
    """Makes algorithms with parts of the user's, and learners, once in a process of its own.

    What their constructors refuse (a learner refuses the actions of some environments) is then
    said once, and not by every run and each of its retries. It costs nothing where all parts are
    pyribs', else a few seconds.

    Args:
        experiments: Those of the runs that are to be computed.

    Raises:
        BadInput: An algorithm cannot be made, pickled or asked; the message says why.
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
    waits = f"qdsweep: still makes {', '.join(own)}, once before any run (Ctrl-C ends it)"
    words = [sys.executable, "-m", "qdsweep.warm.trial"]
    notice = threading.Timer(NOTICE_SECONDS, print, (waits,), {"file": sys.stderr})
    notice.daemon = True
    notice.start()
    try:
        done = subprocess.run(words, input=data, capture_output=True, text=True)
    finally:
        notice.cancel()
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        ended = f"it ended its process with exit code {done.returncode}: {' '.join(last)}"
        what = done.stdout.strip() or f"{', '.join(own)}: {ended}"
        raise BadInput(
            f"{what}\nNothing was started. `qdsweep check --algorithm NAME` tries it again"
        )


def _parts(experiment: Experiment) -> list[str]:
    return experiment.algorithm.plugins or [experiment.algorithm.name]


def main() -> int:
    """Tries the experiments of standard input (a JSON list); prints what is wrong, exits 2."""
    apply_baseline("avx2")  # before numpy is imported
    from qdsweep.algorithms.check import try_out

    for data in json.loads(sys.stdin.read()):
        try:
            with contextlib.redirect_stdout(sys.stderr):  # what it prints is no message of ours
                try_out(Experiment.model_validate_json(json.dumps(data)))
        except BadInput as error:
            print(error)
            return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
