"""metrics.csv: a row an iteration, appended; cut to the reload file's row on a new start."""

import math
import os
from pathlib import Path
from typing import Any

from qdsweep.files import atomic

COLUMNS = (
    "iteration",
    "evaluations",
    "num_elites",
    "coverage",
    "qd_score",
    "norm_qd_score",
    "obj_max",
    "obj_mean",
    "restarts",
    "seconds_ask",
    "seconds_evaluate",
    "seconds_tell",
    "seconds_reload",
)


class Metrics:
    """The metrics file of a run.

    Args:
        path: `state/metrics.csv`.
        iteration: The iteration that the run goes on from; later rows are cut off.
    """

    def __init__(self, path: Path, iteration: int) -> None:
        self.path = path
        header = ",".join(COLUMNS)
        kept = [header, *read_rows(path)[:iteration]]
        with atomic(path, "w") as file:
            file.write("\n".join(kept) + "\n")
        self._file = path.open("a")

    def add(self, row: dict[str, Any]) -> None:
        """Adds a row; it may wait in memory for `flush`."""
        self._file.write(",".join(map(_text, map(row.__getitem__, COLUMNS))) + "\n")

    def flush(self, *, durable: bool = False) -> None:
        """Hands all rows to the system, and on demand waits until the disk has them."""
        self._file.flush()
        if durable:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Writes what waits and closes the file."""
        self._file.close()


def read_rows(path: Path) -> list[str]:
    """The whole rows of a metrics file, as text: 1, 2, 3, ... without a gap."""
    try:
        lines = path.read_text().splitlines(keepends=True)
    except (OSError, UnicodeDecodeError):
        return []
    rows: list[str] = []
    for number, line in enumerate(lines[1:], start=1):
        whole = line.endswith("\n") and line.count(",") == len(COLUMNS) - 1
        if not whole or not line.startswith(f"{number},"):
            break
        rows.append(line.rstrip("\n"))
    return rows


def _text(value: float | int | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ""
    return str(value)
