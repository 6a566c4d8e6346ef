"""The rows of history.npz: the elites of an archive that an iteration has changed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsweep.algorithms.base import Archive, Cells
from qdsweep.domains.base import Floats
from qdsweep.records.history import ROW


class Changes:
    """Compares an archive with the one after the last iteration.

    Most archives only change in the cells of new solutions, and only to a better objective. In
    those that the user's code may change, every cell is compared. An elite is another one if its
    objective, its measures or its evaluation seed is another.

    Args:
        archive: The archive, whose cells stay. Methods take it again, because a pickle replaces it.
        is_own: Whether the user's code may change it.
    """

    def __init__(self, archive: Archive, *, is_own: bool) -> None:
        self.is_own = is_own
        self._touched: list[Cells] = []
        self._cells = np.arange(archive.cells or 0)
        # (cells,) objective or (cells, k) marks of the elites after the last iteration, NaN where
        # a cell is empty.
        self._elites = self._look(archive)

    def told(self, archive: Archive, measures: Floats) -> None:
        """Records the cells that a batch may have changed, by its ``(n, m)`` measures."""
        if not self.is_own:
            self._touched.append(archive.touched(measures))

    def resume(self, archive: Archive, best: Floats, before: tuple[Cells, Floats] | None) -> Cells:
        """Continues from the elites after the last iteration.

        Args:
            archive: The archive, which may have changed since.
            best: ``(cells,)`` objective of each of these elites, NaN where a cell was empty.
            before: The value of `before` when the archive was saved.

        Returns:
            The cells in which the archive has another objective now.
        """
        now = self._look(archive)
        differing = np.flatnonzero(_differ(now.reshape(len(now), -1)[:, 0], best))
        self._elites = now
        if now.ndim > 1:
            self._elites[differing, 1:] = np.nan
            self._elites[differing, 0] = best[differing]
        else:
            self._elites[differing] = best[differing]
        self._touched = [differing]
        if before is not None:
            cells, elites = before
            self._elites[cells] = elites
            self._touched.append(cells)
        return differing

    def before(self, archive: Archive) -> tuple[Cells, Floats] | None:
        """Returns the cells that have changed since the last iteration, and their elites then.

        It is None where the objectives of the elites tell as much.
        """
        if self._elites.ndim == 1:
            return None
        cells, _ = self._changed(archive)
        return cells, self._elites[cells]

    def rows(self, archive: Archive, iteration: int) -> NDArray[Any]:
        """Returns the rows ``(k,)`` of the type `ROW` of an iteration that has just ended."""
        cells, elites = self._changed(archive)
        self._touched = []
        self._elites[cells] = elites
        rows = np.empty(len(cells), ROW)
        rows["iteration"], rows["index"] = iteration, cells
        rows["objective"] = elites if elites.ndim == 1 else elites[:, 0]
        return rows

    def _changed(self, archive: Archive) -> tuple[Cells, Floats]:
        """Returns the cells that have changed, and the present elites there."""
        if self.is_own:
            now = self._look(archive)
            changed = _any(_differ(now, self._elites))
            return self._cells[changed], now[changed]
        cells = np.unique(np.concatenate(self._touched)) if self._touched else self._cells[:0]
        if archive.loses_elites:
            elites = self._look(archive, cells)
            changed = _any(_differ(elites, self._elites[cells]))
        else:
            cells, elites = self._look_in(archive, cells)
            changed = _any(elites != self._elites[cells])
        return cells[changed], elites[changed]

    def _look(self, archive: Archive, cells: Cells | None = None) -> Floats:
        """Returns the present elites of some sorted cells, or of all, NaN where one is empty."""
        cells = self._cells if cells is None else cells
        occupied, elites = self._look_in(archive, cells)
        every = np.full((len(cells), *elites.shape[1:]), np.nan)
        every[np.searchsorted(cells, occupied)] = elites
        return every

    def _look_in(self, archive: Archive, cells: Cells) -> tuple[Cells, Floats]:
        """Returns the occupied cells among these, and their elites."""
        is_marked = self.is_own or archive.replaces_ties
        return archive.marks(cells) if is_marked else archive.objectives(cells)


def _differ(now: Floats, before: Floats) -> NDArray[np.bool_]:
    return (now != before) & ~(np.isnan(now) & np.isnan(before))


def _any(differ: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Returns whether each elite, ``(n,)`` or ``(n, k)``, differs."""
    return differ if differ.ndim == 1 else np.logical_or.reduce(differ, axis=1)
