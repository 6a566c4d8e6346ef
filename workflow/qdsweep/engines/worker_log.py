"""What a worker says: kept in a file, and sent to the run's log."""

import faulthandler
import io
import logging
import os
import sys
from pathlib import Path

# Lines of one part that reach the run's log; the file has them all.
LIMIT = 20
# Of a worker's file.
MAX_BYTES = 10_000_000


class WorkerLog(io.TextIOBase):
    """A text stream that writes lines with a prefix to a file, and remembers them.

    Args:
        path: The file.

    Attributes:
        prefix: Before each line of the file; the worker's address.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.prefix = ""
        self._file = path.open("a", buffering=1, encoding="utf-8")
        self._unfinished = ""
        self._lines: list[str] = []

    def take_over_output(self) -> None:
        """Makes print, logging, warnings and what C libraries print end up here."""
        for descriptor in (1, 2):
            os.dup2(self._file.fileno(), descriptor)
        sys.stdout = sys.stderr = self
        faulthandler.enable(self._file)
        root = logging.getLogger()
        root.handlers[:] = [logging.StreamHandler(self)]
        root.handlers[0].setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        root.setLevel(logging.INFO)

    def write(self, text: str) -> int:
        """Takes text; whole lines go on."""
        *lines, self._unfinished = (self._unfinished + text).split("\n")
        for line in lines:
            if self._file.tell() < MAX_BYTES:
                self._file.write(f"{self.prefix}{line}\n")
        self._lines += lines[: LIMIT + 1]
        return len(text)

    def take(self) -> list[str]:
        """The lines since the last call, for the run's log; not all where there are many."""
        lines, self._lines = self._lines, []
        if len(lines) > LIMIT:
            lines[LIMIT:] = [f"... more in {self.path}"]
        return lines
