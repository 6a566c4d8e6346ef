"""history.npz: every change of an elite of a run, so that any earlier archive is known.

A row is an insertion into a cell, or has no objective (NaN) if the cell has become empty. Only an
algorithm with code of the user, or one that evaluates its elites again, empties cells. Its file has
a further array, `removals`. Earlier
releases recorded neither removals nor elites that changed where no new solution was.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsweep.files import Appended, atomic, damaged, read_arrays
from qdsweep.records.paths import RunFiles, StateDir

ROW = np.dtype([("iteration", "<i4"), ("index", "<i4"), ("objective", "<f8")])
_NAMES = ("iteration", "index", "objective")
_REMOVALS = "removals"
_REMEDY = (
    "remove it; figures of how archives filled then leave this run out, and where its archive.npz "
    "is of a release without seeds of elites, these can no longer be found"
)


@dataclass(frozen=True)
class History:
    """Every change of a run's result archive, in order.

    Attributes:
        iteration: ``(k,)`` the iteration of each, from 1.
        index: ``(k,)`` the cell.
        objective: ``(k,)`` the objective of the new elite; NaN if the cell is empty from then on.
        has_removals: Whether cells that became empty were recorded.
    """

    iteration: NDArray[np.int32]
    index: NDArray[np.int64]
    objective: NDArray[np.float64]
    has_removals: bool = True

    def at(self, iteration: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Returns the occupied cells, sorted, and their objectives after an iteration."""
        end = int(np.searchsorted(self.iteration, iteration, side="right"))
        # The last change of a cell is the first one from behind.
        cells, last = np.unique(self.index[:end][::-1], return_index=True)
        objective = self.objective[:end][::-1][last]
        is_filled = ~np.isnan(objective)
        return cells[is_filled], objective[is_filled]

    def is_approximate(self, algorithm: Any) -> bool:
        """Returns whether earlier archives may have lacked some of their elites, or had others.

        Args:
            algorithm: `algorithm` of the run's config.yaml. The archive of most algorithms only
                changes where new solutions are better, but the user's code may do anything.
        """
        if self.has_removals or not isinstance(algorithm, dict):
            return False
        parts = [algorithm, algorithm.get("archive"), algorithm.get("scheduler")]
        return any(isinstance(part, dict) and ":" in str(part.get("type")) for part in parts)


def until(rows: NDArray[Any], iteration: int) -> NDArray[Any]:
    """Returns the rows of insertions up to an iteration."""
    return rows[: np.searchsorted(rows["iteration"], iteration, side="right")]


def checksum_of(rows: NDArray[Any]) -> str:
    """Returns the checksum of rows, which a reload file stores."""
    return hashlib.sha256(rows.tobytes()).hexdigest()


def read_history(files: RunFiles) -> History | None:
    """Reads `history.npz` of a run.

    Returns:
        The changes; None for an archive without cells that stay, and for runs of older
        releases.

    Raises:
        BadInput: The file is damaged.
    """
    if not files.history.exists():
        return None
    arrays = read_arrays(files.history, remedy=_REMEDY)
    try:
        columns = arrays["iteration"], arrays["index"].astype(np.int64), arrays["objective"]
    except KeyError as error:
        raise damaged(files.history, error, _REMEDY) from error
    return History(*columns, _REMOVALS in arrays)


class HistoryFile:
    """The insertions of a run that is being computed, appended.

    While the run lasts they are in `state/history.bin`, afterwards in `state/history.npz`.

    Args:
        state: The run's `state/`.
    """

    def __init__(self, state: StateDir) -> None:
        self._path, self._final = state.insertions, state.history
        self._file: Appended | None = None
        self._sum = hashlib.sha256()

    @property
    def is_open(self) -> bool:
        """Whether insertions are recorded."""
        return self._file is not None

    def read(self) -> NDArray[Any] | None:
        """Reads the insertions, ``(k,)`` of the type `ROW`; None where there is no file.

        Raises:
            BadInput: history.npz is damaged.
            ValueError: Its arrays do not fit together.
        """
        if self._path.exists():
            content = self._path.read_bytes()
            return np.frombuffer(content[: len(content) // ROW.itemsize * ROW.itemsize], ROW)
        if self._final.exists():
            arrays = read_arrays(self._final, *_NAMES, remedy=_REMEDY)
            return np.rec.fromarrays([arrays[name] for name in _NAMES], dtype=ROW)
        return None

    def begin(self, rows: NDArray[Any]) -> None:
        """Writes the insertions up to now; others are appended from now on."""
        with atomic(self._path) as file:
            file.write(rows.tobytes())
        self._sum = hashlib.sha256(rows.tobytes())
        self._file = Appended(self._path, "ab")

    def append(self, rows: NDArray[Any]) -> None:
        """Adds insertions; they may wait in memory for `flush`."""
        assert self._file is not None, "begin() comes first"
        self._sum.update(rows.tobytes())
        self._file.write(rows.tobytes())

    @property
    def checksum(self) -> str | None:
        """Of all rows up to now, which a reload file remembers; None where none are recorded."""
        return self._sum.hexdigest() if self.is_open else None

    def flush(self, *, durable: bool = False) -> None:
        """Passes all rows to the system; a reload file waits until the disk has them."""
        if self._file is not None:
            self._file.flush(durable=durable)

    def close(self) -> None:
        """Writes what waits and closes the file."""
        if self._file is not None:
            self._file.close()

    def finish(self, *, has_removals: bool) -> None:
        """Writes history.npz, which takes the other file's place.

        Args:
            has_removals: Whether cells that have become empty are in it.
        """
        if self._file is None:
            return
        self._file.close()
        rows = self.read()
        assert rows is not None, "it was just written"
        arrays = {name: rows[name] for name in _NAMES}
        if has_removals:
            arrays[_REMOVALS] = np.array(True)
        with atomic(self._final) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        self._path.unlink(missing_ok=True)
        self._file = None

    def remove(self) -> None:
        """Removes the files: no run can resume from them."""
        for path in (self._path, self._final):
            path.unlink(missing_ok=True)
