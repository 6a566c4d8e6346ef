"""history.npz: every insertion into a run's archive, so that any earlier archive is known."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsweep.files import Appended, atomic, read_arrays
from qdsweep.records.paths import RunFiles, StateDir

ROW = np.dtype([("iteration", "<i4"), ("index", "<i4"), ("objective", "<f8")])
_NAMES = ("iteration", "index", "objective")
_REMEDY = (
    "remove it; figures of how archives filled then leave this run out, and where its archive.npz "
    "is of a release without seeds of elites, these can no longer be found"
)


@dataclass(frozen=True)
class History:
    """Every insertion into a run's result archive, in order.

    Attributes:
        iteration: ``(k,)`` the iteration of each, from 1.
        index: ``(k,)`` the cell.
        objective: ``(k,)`` the objective of the new elite.
    """

    iteration: NDArray[np.int32]
    index: NDArray[np.int64]
    objective: NDArray[np.float64]

    def at(self, iteration: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Returns the occupied cells, sorted, and their objectives after an iteration."""
        end = int(np.searchsorted(self.iteration, iteration, side="right"))
        # The last insertion of a cell is the first one from behind.
        cells, last = np.unique(self.index[:end][::-1], return_index=True)
        return cells, self.objective[:end][::-1][last]


def until(rows: NDArray[Any], iteration: int) -> NDArray[Any]:
    """Returns the rows of insertions up to an iteration."""
    return rows[: np.searchsorted(rows["iteration"], iteration, side="right")]


def checksum_of(rows: NDArray[Any]) -> str:
    """Returns the checksum of rows, which a reload file stores."""
    return hashlib.sha256(rows.tobytes()).hexdigest()


def read_history(files: RunFiles) -> History | None:
    """Reads `history.npz` of a run.

    Returns:
        The insertions; None for an archive without cells that stay, and for runs of older
        releases.

    Raises:
        BadInput: The file is damaged.
    """
    if not files.history.exists():
        return None
    arrays = read_arrays(files.history, *_NAMES, remedy=_REMEDY)
    return History(arrays["iteration"], arrays["index"].astype(np.int64), arrays["objective"])


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

    def finish(self) -> None:
        """Writes history.npz, which takes the other file's place."""
        if self._file is None:
            return
        self._file.close()
        rows = self.read()
        assert rows is not None, "it was just written"
        with atomic(self._final) as file:
            np.savez_compressed(file, **{name: rows[name] for name in _NAMES})  # type: ignore[arg-type]
        self._path.unlink(missing_ok=True)
        self._file = None

    def remove(self) -> None:
        """Removes the files: no run can resume from them."""
        for path in (self._path, self._final):
            path.unlink(missing_ok=True)
