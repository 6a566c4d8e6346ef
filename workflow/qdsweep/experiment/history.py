"""history.npz: every insertion into the result archive, so that any earlier archive is known."""

import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsweep.domains.base import Floats
from qdsweep.errors import BadInput
from qdsweep.experiment.state import State
from qdsweep.files import atomic, read_arrays

log = logging.getLogger("qdsweep")

ROW = np.dtype([("iteration", "<i4"), ("index", "<i4"), ("objective", "<f8")])


class History:
    """The insertions of a run, appended; cut to the reload file's iteration on a new start.

    One that is torn is given up: the run itself does not need it.

    While the run lasts they are in `state/history.bin`, afterwards in `state/history.npz`.

    Args:
        folder: The run's `state/`.
        state: The state that the run goes on from.
    """

    def __init__(self, folder: Path, state: State) -> None:
        self._path, self._final = folder / "history.bin", folder / "history.npz"
        self._archive = state.algorithm.archive
        self._file: Any = None
        self._touched: list[NDArray[np.int64]] = []
        if not self._archive.cells_stay:
            return
        try:
            rows = self._read()
            if rows is None and state.iterations:
                return  # begun by an older release: what is lost cannot be known
            self._go_on(np.empty(0, ROW) if rows is None else rows, state)
        except (BadInput, ValueError, IndexError) as error:
            log.warning(
                "%s is torn (%s): the run goes on without it, so its figures cannot show how its "
                "archive filled; the results are the same",
                self._path if self._path.exists() else self._final,
                error,
            )
            for path in (self._path, self._final, folder.parent / self._final.name):
                path.unlink(missing_ok=True)

    def _go_on(self, rows: NDArray[Any], state: State) -> None:
        """Cuts the rows to the state's iteration and opens their file, if they tell its archive."""
        rows = rows[: np.searchsorted(rows["iteration"], state.iterations, side="right")]
        self._best = np.full(self._archive.cells or 0, np.nan)
        self._best[rows["index"]] = rows["objective"]  # in order: the last one stays
        cells, objective = self._archive.objectives(np.arange(len(self._best)))
        self._touched = [cells[objective != self._best[cells]]]
        # Told in the iteration under way, before the reload file of its second batch.
        told = state.pending is not None and state.asked > len(state.pending.batch.solutions)
        if len(self._touched[0]) and not told:
            raise ValueError(f"{len(self._touched[0])} elites are not in it")
        with atomic(self._path) as file:
            file.write(rows.tobytes())
        self._file = self._path.open("ab")

    def _read(self) -> NDArray[Any] | None:
        if self._path.exists():
            content = self._path.read_bytes()
            return np.frombuffer(content[: len(content) // ROW.itemsize * ROW.itemsize], ROW)
        if self._final.exists():
            names = ROW.names or ()
            arrays = read_arrays(self._final, *names)
            return np.rec.fromarrays([arrays[name] for name in names], dtype=ROW)
        return None

    def told(self, measures: Floats) -> None:
        """Notes which cells a batch may have changed.

        Args:
            measures: ``(n, m)`` what the algorithm was just told.
        """
        if self._file is not None:
            self._touched.append(self._archive.cells_of(measures))

    def add(self, iteration: int) -> None:
        """Takes down what an iteration has inserted; of a cell, the last that stayed."""
        if self._file is None:
            return
        cells = np.unique(np.concatenate(self._touched))
        self._touched = []
        cells, objective = self._archive.objectives(cells)
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
