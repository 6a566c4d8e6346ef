"""Processes that want one lock, on several nodes; python holders.py ACT LOCK LOG SILENT.

ACT is `hold` (until killed), or `pass`: hold it for a moment, again and again. LOG gets a line when
a process has the lock and when it gives it back. SILENT is after how long an owner of whom nobody
knows counts as dead [s].
"""

import os
import sys
import time
from pathlib import Path

from qdsweep.host import lock

TURNS = 4


def note(log: Path, word: str) -> None:
    """Adds a line, which no other can tear."""
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
