"""Records the changes of the result archive in each iteration."""

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsweep.algorithms.base import Cells
from qdsweep.algorithms.changes import Changes
from qdsweep.domains.base import Floats
from qdsweep.errors import BadInput
from qdsweep.experiment.state import State
from qdsweep.records.history import ROW, HistoryFile, checksum_of, until
from qdsweep.records.paths import RunDir

log = logging.getLogger("qdsweep")


class Insertions:
    """The history of a run. At its start, the file is cut to the reload file's iteration.

    A truncated file is dropped, because the run does not need it.

    Args:
        out: The run's folder.
        state: The state from which the run resumes.
        header: The header of its reload file, with what `described` was then; empty for a new run.
        is_own: Whether a part of the algorithm is the user's.
    """

    def __init__(
        self, out: RunDir, state: State, header: Mapping[str, Any], *, is_own: bool
    ) -> None:
        self._file = HistoryFile(out.state)
        self._archive = state.algorithm.archive
        if not self._archive.cells_stay:
            return
        self._changes = Changes(self._archive, is_own=is_own)
        # An earlier release did not record cells that have become empty.
        may_lose = is_own or self._archive.loses_elites
        self._has_removals = may_lose and (not state.iterations or bool(header.get("removals")))
        try:
            rows = self._file.read()
            if rows is None and state.iterations:
                return  # the run was started by an older release, so earlier insertions are lost
            self._resume(np.empty(0, ROW) if rows is None else rows, state, header.get("history"))
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
        best = np.full(self._archive.cells or 0, np.nan)
        best[rows["index"]] = rows["objective"]  # in order, so the last one stays
        differing = self._changes.resume(self._archive, best, state.current.elites)
        # In a reload file of an iteration's second batch, the elites of the first one are new.
        is_complete = self._has_removals or not self._changes.is_own
        if len(differing) and is_complete and not state.told_evaluations:
            raise ValueError(f"{len(differing)} elites are not in it")
        self._file.begin(rows)

    def told(self, measures: Floats) -> None:
        """Records the cells that a batch may have changed.

        Args:
            measures: ``(n, m)`` measures of the batch that the algorithm has just received.
        """
        if self._file.is_open:
            self._changes.told(self._archive, measures)

    def add(self, iteration: int) -> None:
        """Records the changes of an iteration, one for each cell."""
        if self._file.is_open:
            self._file.append(self._changes.rows(self._archive, iteration))

    def before(self, state: State) -> tuple[Cells, Floats] | None:
        """Returns the elites that the current iteration has changed so far, for a reload file."""
        if not self._file.is_open or not state.told_evaluations:
            return None
        return self._changes.before(self._archive)

    @property
    def described(self) -> dict[str, Any]:
        """What the header of a reload file needs, so that a run can resume with the history."""
        removals = {"removals": True} if self._file.is_open and self._has_removals else {}
        return {"history": self._file.checksum, **removals}

    def flush(self, *, durable: bool = False) -> None:
        """Passes all rows to the system, and on demand waits until the disk has them."""
        self._file.flush(durable=durable)

    def close(self) -> None:
        """Writes the pending rows and closes the file."""
        self._file.close()

    def finish(self) -> None:
        """Writes history.npz."""
        if self._file.is_open:
            self._file.finish(has_removals=self._has_removals)
