"""Records the new elites of the result archive in each iteration."""

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsweep.domains.base import Floats
from qdsweep.errors import BadInput
from qdsweep.experiment.state import State
from qdsweep.records.history import ROW, HistoryFile, checksum_of, until
from qdsweep.records.paths import RunDir

log = logging.getLogger("qdsweep")


class Insertions:
    """The insertions of a run. At its start, their file is cut to the reload file's iteration.

    A truncated file is dropped, because the run does not need it.

    Args:
        out: The run's folder.
        state: The state from which the run resumes.
        checksum: The value of `checksum` when the state was saved; None if it is unknown.
    """

    def __init__(self, out: RunDir, state: State, checksum: str | None = None) -> None:
        self._file = HistoryFile(out.state)
        self._archive = state.algorithm.archive
        self._touched: list[NDArray[np.int64]] = []
        if not self._archive.cells_stay:
            return
        try:
            rows = self._file.read()
            if rows is None and state.iterations:
                return  # the run was started by an older release, so earlier insertions are lost
            self._resume(np.empty(0, ROW) if rows is None else rows, state, checksum)
        except (BadInput, ValueError, IndexError) as error:
            log.warning(
                "%s is truncated (%s): the run resumes without it. Figures cannot show how its "
                "archive filled, but the results are the same",
                next(p for p in (out.state.insertions, out.state.history) if p.exists()),
                error,
            )
            self._file.remove()
            out.history.unlink(missing_ok=True)

    def _resume(self, rows: NDArray[Any], state: State, checksum: str | None) -> None:
        """Cuts the rows to the state's iteration, checks them, and opens their file."""
        rows = until(rows, state.iterations)
        if checksum not in (None, checksum_of(rows)):
            raise ValueError("its checksum differs")
        self._best = np.full(self._archive.cells or 0, np.nan)
        self._best[rows["index"]] = rows["objective"]  # in order, so the last one stays
        cells, objective = self._archive.objectives(np.arange(len(self._best)))
        self._touched = [cells[objective != self._best[cells]]]
        # In a reload file of an iteration's second batch, the elites of the first one are new.
        pending = state.pending
        is_later = pending is not None and state.asked > len(pending.batch.solutions)
        if len(self._touched[0]) and not is_later:
            raise ValueError(f"{len(self._touched[0])} elites are not in it")
        self._file.begin(rows)

    def told(self, measures: Floats) -> None:
        """Records the cells that a batch may have changed.

        Args:
            measures: ``(n, m)`` measures of the batch that the algorithm has just received.
        """
        if self._file.is_open:
            self._touched.append(self._archive.cells_of(measures))

    def add(self, iteration: int) -> None:
        """Records the last insertion of an iteration in each cell."""
        if not self._file.is_open:
            return
        cells = np.unique(np.concatenate(self._touched))
        self._touched = []
        cells, objective = self._archive.objectives(cells)
        new = objective != self._best[cells]
        rows = np.empty(np.count_nonzero(new), ROW)
        rows["iteration"], rows["index"], rows["objective"] = iteration, cells[new], objective[new]
        self._best[rows["index"]] = rows["objective"]
        self._file.append(rows)

    @property
    def checksum(self) -> str | None:
        """The checksum of the records, for a reload file; None if there are no records."""
        return self._file.checksum

    def flush(self, *, durable: bool = False) -> None:
        """Passes all rows to the system, and on demand waits until the disk has them."""
        self._file.flush(durable=durable)

    def close(self) -> None:
        """Writes the pending rows and closes the file."""
        self._file.close()

    def finish(self) -> None:
        """Writes history.npz."""
        self._file.finish()
