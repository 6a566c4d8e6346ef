"""The trial of algorithms that only code can check, before any job of a sweep starts."""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterable

from qdsweep.config.experiment import BUDGETS, Experiment
from qdsweep.errors import BadInput
from qdsweep.host.machine import apply_baseline

# These keys change neither how an algorithm is made nor its first ask.
_APART = {"seed", *BUDGETS, "reload", "timeout"}
_HERE = "here"
# After this time it prints what it waits for [s].
NOTICE_SECONDS = 15.0


def try_algorithms(experiments: Iterable[Experiment], *, are_here: bool = True) -> None:
    """Makes algorithms with user code, and learners, once in a separate process.

    An error of their constructors is then reported once, and not by every run: a learner refuses
    the actions of some environments. It costs a few seconds, and nothing if all parts are pyribs'.

    Args:
        experiments: Those of the runs to compute.
        are_here: Whether the runs are computed on this machine, which then needs their GPU.

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
    words = [sys.executable, "-P", "-m", "qdsweep.warm.trial", *[_HERE] * are_here]
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
                if _HERE in sys.argv and experiment.algorithm.needs_gpu:
                    from qdsweep.algorithms.pytorch.gpu import gpu_versions

                    gpu_versions()
                try_out(experiment)
        except BadInput as error:
            print(f"domain {experiment.domain.name}: {error}" if several else error)
            return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
