"""The output of a worker: kept in a file, and sent to the run's log."""

import faulthandler
import io
import logging
import os
import sys
from pathlib import Path

# At most so many lines of a part reach the run's log; the file has all of them.
LIMIT = 20
# A line is cut after so many characters.
LONGEST = 2000
# The largest size of a worker's file.
MAX_BYTES = 10_000_000


class WorkerLog(io.TextIOBase):
    """A text stream that writes lines with a prefix to a file, and remembers them.

    Args:
        path: The file; None for a worker that cannot write there.
        prefix: The start of each line of the file: the worker's name.
    """

    def __init__(self, path: Path | None, prefix: str) -> None:
        self.path = path or Path(os.devnull)
        self.prefix = prefix
        self._file = self.path.open("a", buffering=1, encoding="utf-8", errors="backslashreplace")
        self._unfinished = ""
        self._lines: list[str] = []

    def take_over_output(self) -> None:
        """Redirects print, logging, warnings and the output of C libraries to this log."""
        for descriptor in (1, 2):
            os.dup2(self._file.fileno(), descriptor)
        sys.stdout = sys.stderr = self
        faulthandler.enable(self._file)
        root = logging.getLogger()
        root.handlers[:] = [logging.StreamHandler(self)]
        root.handlers[0].setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        root.setLevel(logging.INFO)

    def write(self, text: str) -> int:
        """Takes text, and writes the lines that are complete."""
        *lines, self._unfinished = (self._unfinished + text.replace("\r", "\n")).split("\n")
        if len(self._unfinished) > LONGEST:
            lines, self._unfinished = [*lines, self._unfinished], ""
        lines = [line[:LONGEST] for line in lines]
        for line in lines:
            if self._file.tell() < MAX_BYTES:
                self._file.write(f"{self.prefix} {line}\n")
        self._lines += lines[: LIMIT + 1]
        return len(text)

    def take(self) -> list[str]:
        """Returns the lines since the last call, for the run's log: at most some of them."""
        lines, self._lines = self._lines, []
        if len(lines) > LIMIT:
            lines[LIMIT:] = [f"... more in {self.path}"]
        return lines
