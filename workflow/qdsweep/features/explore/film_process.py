"""The process that plays elites: a crash or a hang of a domain ends nothing else.

`python -m qdsweep.features.explore.film_process BASELINE` reads a line of JSON for each film and
writes its records. An empty line, or the next request, ends a film early. The module imports numpy
only after the CPU settings are made.
"""

import functools
import json
import os
import select
import signal
import sys
from typing import IO, Any

from qdsweep.host.machine import apply_baseline
from qdsweep.host.process import die_with_parent


class FilmStopped(BaseException):
    """No reader waits for the film any more. A domain does not catch it, unlike an Exception."""


def main() -> None:
    """Makes films until the standard input ends."""
    die_with_parent(signal.SIGKILL)
    apply_baseline("native" if sys.argv[1] == "native" else "avx2")
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the output of a domain is not a record
    from qdsweep.features.rollouts.rollout import draw_without_a_screen

    draw_without_a_screen()
    import gymnasium  # noqa: F401 - the first film need not wait for it

    requests = open(0, "rb", buffering=0)  # noqa: SIM115 - `select` sees the rest
    while line := requests.readline():
        if not line.isspace():
            _answer(json.loads(line), out)


@functools.lru_cache(4)  # runs in memory
def _load(path: str, digest: str) -> Any:
    from qdsweep.errors import BadInput
    from qdsweep.runs.load import load

    run = load(path)
    if not run.summary["archive_digest"].startswith(digest):
        raise BadInput(f"{path} has changed: load the page again")
    return run


def _answer(request: dict[str, Any], out: IO[bytes]) -> None:
    from qdsweep.errors import QdsweepError
    from qdsweep.features.explore.cell_film import film
    from qdsweep.features.explore.live import LIVE, open_saved
    from qdsweep.features.rollouts.stream import note, record

    def write(content: bytes) -> None:
        out.write(content)
        out.flush()

    def send(content: bytes) -> None:
        if select.select([0], [], [], 0)[0]:
            raise FilmStopped
        write(content)

    path, digest, is_complete = request["run"], request["digest"], False
    write(note(number=request["number"], cell=request["cell"]))
    try:
        run = open_saved(path) if digest == LIVE else _load(path, digest)
        is_complete = film(run, request["cell"], send)
    except FilmStopped:
        pass
    except QdsweepError as error:
        write(note(error=str(error)))
    except Exception as error:  # of the user's domain
        write(note(error=f"{type(error).__name__}: {error}"))
    write(record(".", bytes([is_complete])))


if __name__ == "__main__":
    main()
