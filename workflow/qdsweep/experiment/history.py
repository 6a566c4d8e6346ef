"""history.npz: every insertion into the result archive, so that any earlier archive is known."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsweep.domains.base import Floats
from qdsweep.errors import BadInput
from qdsweep.files import atomic, read_arrays

ROW = np.dtype([("iteration", "<i4"), ("index", "<i4"), ("objective", "<f8")])
# Cells of others move, or are none.
KINDS = ("GridArchive", "CVTArchive")


class History:
    """The insertions of a run, appended; cut to the reload file's iteration on a new start.

    While the run lasts they are in `state/history.bin`, afterwards in `state/history.npz`.

    Args:
        folder: The run's `state/`.
        archive: Its result archive.
        iteration: The iteration that the run goes on from.
    """

    def __init__(self, folder: Path, archive: Any, iteration: int) -> None:
        self._path, self._final = folder / "history.bin", folder / "history.npz"
        self._archive = archive
        self._file: Any = None
        rows = self._read() if type(archive).__name__ in KINDS else None
        if rows is None and (iteration or type(archive).__name__ not in KINDS):
            return  # begun by an older release: what is lost cannot be known
        rows = np.empty(0, ROW) if rows is None else rows
        rows = rows[: np.searchsorted(rows["iteration"], iteration, side="right")]
        with atomic(self._path) as file:
            file.write(rows.tobytes())
        self._file = self._path.open("ab")
        self._best = np.full(archive.cells, np.nan)
        self._best[rows["index"]] = rows["objective"]  # in order: the last one stays
        # What was told in the iteration under way, before the reload file of its second batch.
        told = archive.data(["index", "objective"])
        self._touched = [told["index"][told["objective"] != self._best[told["index"]]]]

    def _read(self) -> NDArray[Any] | None:
        if self._path.exists():
            content = self._path.read_bytes()
            return np.frombuffer(content[: len(content) // ROW.itemsize * ROW.itemsize], ROW)
        if self._final.exists():
            with suppress(BadInput):  # damaged: as if there were none
                arrays = read_arrays(self._final)
                return np.rec.fromarrays([arrays[name] for name in ROW.names or ()], dtype=ROW)
        return None

    def told(self, measures: Floats) -> None:
        """Notes which cells a batch may have changed.

        Args:
            measures: ``(n, m)`` what the emitters were just told.
        """
        if self._file is not None:
            self._touched.append(self._archive.index_of(measures))

    def add(self, iteration: int) -> None:
        """Takes down what an iteration has inserted; of a cell, the last that stayed."""
        if self._file is None:
            return
        cells = np.unique(np.concatenate(self._touched))
        self._touched = []
        occupied, data = self._archive._store.retrieve(cells, fields=["objective"])
        cells, objective = cells[occupied], data["objective"][occupied]
        new = objective != self._best[cells]
        rows = np.empty(np.count_nonzero(new), ROW)
        rows["iteration"], rows["index"], rows["objective"] = iteration, cells[new], objective[new]
        self._best[rows["index"]] = rows["objective"]
        self._file.write(rows.tobytes())

    def flush(self) -> None:
        """Waits until the disk has all rows: a reload file counts on them."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Writes what waits and closes the file."""
        if self._file is not None:
            self._file.close()

    def finish(self) -> None:
        """Writes history.npz, which takes the other file's place."""
        if self._file is None:
            return
        self._file.close()
        rows = self._read()
        assert rows is not None, "it was just written"
        with atomic(self._final) as file:
            np.savez_compressed(file, **{name: rows[name] for name in ROW.names or ()})  # type: ignore[arg-type]
        self._path.unlink()
        self._file = None
