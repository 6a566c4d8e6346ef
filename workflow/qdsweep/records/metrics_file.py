"""metrics.csv: a row per iteration, appended; cut to the reload file's row on a new start.

Every reader goes by the header: other releases may have other columns.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qdsweep.config.own_metric import OwnMetric, own_metrics
from qdsweep.config.sweep import TABLE_COLUMNS
from qdsweep.errors import BadInput
from qdsweep.files import AGAIN, Appended, atomic, damaged, read_csv
from qdsweep.metrics import (
    ARCHIVE_METRICS,
    BY_NAME,
    COMPILE,
    OF_REEVALUATION,
    OTHER_CODE,
    OWN_SECONDS,
    PHASES,
    PLACES,
    RECORDED,
    RESULTS,
    SECONDS,
)
from qdsweep.records.results import Summary
from qdsweep.records.status import StatusFile
from qdsweep.records.sums import require_as_written

if TYPE_CHECKING:
    import pandas as pd

# The first release has them, and so every file; metrics that were declared since follow them.
_FIRST = ("iteration", "evaluations", *ARCHIVE_METRICS)
COLUMNS = (
    *_FIRST,
    *(metric.name for metric in RECORDED if metric.name not in _FIRST),
    *SECONDS,
    COMPILE,
)


def unit_column(unit: str) -> str:
    """Returns the column that counts a budget's unit."""
    return "iteration" if unit == "iterations" else unit


def taken_names() -> dict[str, str]:
    """Returns each name that no metric of the user may have, and the file that has it."""
    columns = {
        "summary.csv": (*RESULTS, *OF_REEVALUATION, OTHER_CODE, "id", "group"),
        "table.csv": ("runs", *TABLE_COLUMNS, *(metric.column for metric in BY_NAME.values())),
        "curves.csv": PLACES,
        "metrics.csv": (*COLUMNS, OWN_SECONDS),
        "status.json": StatusFile.__annotations__,
        "summary.json": Summary.__annotations__,
    }
    return {name: file for file, names in columns.items() for name in names}


def refuse_taken(metrics: Sequence[str | OwnMetric]) -> None:
    """Refuses metrics with the name of a number of qdsweep.

    Finished runs of an earlier release may have some, so it is only asked of a start.

    Args:
        metrics: The key of the experiment.

    Raises:
        BadInput: The message has the metric, the file with its name, and another name.
    """
    taken = taken_names()
    for number, metric in enumerate(own_metrics(metrics)):
        name = metric.column
        if name in taken or name.startswith(SECONDS[0].removesuffix(PHASES[0])):
            raise BadInput(
                f"metrics.{number} = {metric.function}: {name} is a name of"
                f" {taken.get(name, 'metrics.csv')}. Give the metric another name:"
                f' {{function: "{metric.function}", name: my_{name}}}'
            )


class Metrics:
    """The metrics file of a run.

    A file of another release keeps its columns, and gets those that it lacks; cells
    that were not measured are empty.

    Args:
        path: `state/metrics.csv`.
        iteration: The iteration that the run resumes from; later rows are cut off.
        own: The columns of the user's metrics; their cost is another one.
    """

    def __init__(self, path: Path, iteration: int, own: Sequence[str] = ()) -> None:
        self.path = path
        header, *rows = (read_lines(path) if iteration else []) or [""]
        known = header.split(",") if header else []
        wanted = (*COLUMNS, *own, OWN_SECONDS) if own else COLUMNS
        lacking = [name for name in wanted if name not in known]
        self._columns = [*known, *lacking]
        empty = "," * len(lacking)
        lines = [",".join(self._columns), *(f"{row}{empty}" for row in rows[:iteration])]
        self._sum = _sum(lines)
        with atomic(path, "w") as file:
            file.writelines(f"{line}\n" for line in lines)
        self._file = Appended(path, "a")

    def add(self, row: dict[str, Any]) -> None:
        """Adds a row; it may wait in memory for `flush`."""
        line = ",".join(map(_text, map(row.get, self._columns))) + "\n"
        self._sum.update(line.encode())
        self._file.write(line)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """Columns and digest of these lines, which a reload file stores (see `begins_with`)."""
        return {"columns": len(self._columns), "sha256": self._sum.hexdigest()}

    def flush(self, *, durable: bool = False) -> None:
        """Hands all rows to the system, and on demand waits until the disk has them."""
        self._file.flush(durable=durable)

    def close(self) -> None:
        """Writes what waits and closes the file."""
        self._file.close()


def read_lines(path: Path) -> list[str]:
    """Reads the header and the whole rows, as text: 1, 2, 3, ... without a gap.

    Returns:
        None of them where the file is missing, or has no whole header with `iteration` first.
    """
    try:
        header, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except (OSError, ValueError):
        return []
    if not header.startswith(f"{COLUMNS[0]},") or not header.endswith("\n"):
        return []
    whole_lines = [header.rstrip("\n")]
    commas = header.count(",")
    for number, line in enumerate(lines, start=1):
        whole = line.endswith("\n") and line.count(",") == commas
        if not whole or not line.startswith(f"{number},"):
            break
        whole_lines.append(line.rstrip("\n"))
    return whole_lines


def begins_with(lines: list[str], iterations: int, fingerprint: dict[str, Any] | None) -> bool:
    """Returns whether a file begins with the rows that a reload file counts on.

    Args:
        lines: Of `read_lines`. They may have got more columns since.
        iterations: Number of rows.
        fingerprint: `Metrics.fingerprint` then; reload files of earlier releases have none.
    """
    first = lines[: 1 + iterations]
    if len(first) < 1 + iterations or fingerprint is None:
        return len(first) == 1 + iterations or not iterations
    columns = fingerprint["columns"]
    cut = (",".join(line.split(",")[:columns]) for line in first)
    return _sum(cut).hexdigest() == fingerprint["sha256"]


def _sum(lines: Iterable[str]) -> "hashlib._Hash":
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode())


def read_rows(path: Path) -> list[str]:
    """Reads the whole rows, as text."""
    return read_lines(path)[1:]


def copy_rows(source: Path, target: Path, iterations: int) -> None:
    """Writes the rows of the first iterations into another file."""
    with atomic(target, "w") as file:
        file.writelines(f"{line}\n" for line in read_lines(source)[: 1 + iterations])


def read_metrics(path: Path) -> "pd.DataFrame":
    """Reads the table; a column of `COLUMNS` that the file lacks is empty.

    Raises:
        BadInput: The file is missing or damaged.
    """
    require_as_written(path)
    table = read_csv(path, AGAIN)
    kinds = {name: dtype.kind for name, dtype in table.dtypes.items()}
    for name in _FIRST:
        if name not in kinds:
            raise damaged(path, KeyError(name))
        if kinds[name] not in "iuf":
            raise damaged(path, ValueError(f"the column {name} has a value that is not a number"))
    lacking = {name: math.nan for name in COLUMNS if name not in kinds}
    return table.assign(**lacking) if lacking else table


def _text(value: float | int | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ""
    return str(value)
