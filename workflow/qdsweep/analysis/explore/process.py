"""The process that plays elites: a crash or a hang of a domain ends nothing else.

`python -m qdsweep.analysis.explore.process BASELINE` reads a line of JSON for each film and writes
its records. An empty line, or the next request, ends a film early. The module imports numpy only
after the CPU settings are made.
"""

import json
import os
import select
import signal
import sys
from typing import IO, Any

from qdsweep.host.machine import apply_baseline
from qdsweep.host.process import die_with_parent

KEPT = 4  # runs in memory


class Stopped(BaseException):
    """No reader waits for the film any more. A domain does not catch it, unlike an Exception."""


def main() -> None:
    """Makes films until the standard input ends."""
    die_with_parent(signal.SIGKILL)
    apply_baseline("native" if sys.argv[1] == "native" else "avx2")
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the output of a domain is not a record
    from qdsweep.elites.rollout import draw_without_a_screen

    draw_without_a_screen()
    import gymnasium  # noqa: F401 - the first film need not wait for it

    requests = open(0, "rb", buffering=0)  # noqa: SIM115 - `select` sees the rest
    runs: dict[tuple[str, str], Any] = {}
    while line := requests.readline():
        if not line.isspace():
            _answer(json.loads(line), runs, out)


def _answer(request: dict[str, Any], runs: dict[tuple[str, str], Any], out: IO[bytes]) -> None:
    from qdsweep.analysis.explore.film import film
    from qdsweep.analysis.explore.live import LIVE, open_saved
    from qdsweep.elites.stream import note, record
    from qdsweep.errors import BadInput, QdsweepError
    from qdsweep.experiment.load import load

    def write(content: bytes) -> None:
        out.write(content)
        out.flush()

    def send(content: bytes) -> None:
        if select.select([0], [], [], 0)[0]:
            raise Stopped
        write(content)

    key, is_complete = (request["run"], request["digest"]), False
    write(note(number=request["number"], cell=request["cell"]))
    try:
        if request["digest"] == LIVE:
            run = open_saved(request["run"])
        else:
            run = runs[key] = runs.pop(key, None) or load(request["run"])
            for oldest in list(runs)[:-KEPT]:
                del runs[oldest]
            if not run.summary["archive_digest"].startswith(request["digest"]):
                raise BadInput(f"{request['run']} has changed: load the page again")
        is_complete = film(run, request["cell"], send)
    except Stopped:
        pass
    except QdsweepError as error:
        write(note(error=str(error)))
    except Exception as error:  # of the user's domain
        write(note(error=f"{type(error).__name__}: {error}"))
    write(record(".", bytes([is_complete])))


if __name__ == "__main__":
    main()
