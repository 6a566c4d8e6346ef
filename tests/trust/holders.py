"""Processes on several nodes that take the same lock: python holders.py ACT LOCK LOG SILENT.

ACT is `hold` (until killed) or `pass` (hold it briefly, again and again). LOG gets one line when
a process takes the lock and one when it releases it. SILENT is the time after which a silent
owner counts as dead [s].
"""

import os
import sys
import time
from pathlib import Path

from qdsweep.host import lock

TURNS = 4


def note(log: Path, word: str) -> None:
    """Appends a line in one write, so that other processes cannot split it."""
    with log.open("a") as file:
        file.write(f"{os.getpid()} {word}\n")


def main(act: str, path: Path, log: Path, silent: float) -> None:
    """Takes the lock, and holds it."""
    lock.DEAD_SECONDS, lock.BEAT_SECONDS = silent, silent / 10
    for _ in range(TURNS if act == "pass" else 1):
        with lock.Lock(path, wait=100):
            note(log, "has it")
            time.sleep(0.05 if act == "pass" else 100)
            note(log, "ends")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4]))
