"""A pyribs archive as the loop, the history and the results see it."""

from typing import Any

import numpy as np
from ribs.archives import ArchiveBase

from qdsweep.algorithms.base import Archive, Arrays, Cells
from qdsweep.algorithms.ribs import internals
from qdsweep.algorithms.ribs.archives import KINDS, kind_of, nearest_kind
from qdsweep.algorithms.ribs.own_archive import statistics
from qdsweep.config.archives import ARCHIVES, FIXED
from qdsweep.domains.base import Floats
from qdsweep.records.archive import archive_rows


class ResultArchive(Archive):
    """An archive of pyribs, or one of the user's with pyribs' interface.

    Args:
        archive: The archive.
        qd_score_offset: The offset of the QD score; None for the archive's own.

    Attributes:
        ribs_archive: The same, for whoever needs pyribs.
    """

    _offset: float | None = None

    def __init__(self, archive: ArchiveBase, qd_score_offset: float | None = None) -> None:
        self.ribs_archive: Any = archive
        self._name = nearest_kind(archive)
        self._offset = qd_score_offset
        facts = ARCHIVES[self._name]
        self.cells = None if facts.cells is None else int(archive.cells)
        # What inserts in its own way may change cells that no new solution is in.
        inserts = type(archive).add is KINDS[self._name].ribs.add
        self.cells_stay = facts.cells in FIXED and inserts

    def rows(self) -> Arrays:
        """Sorted by cell; without cells by the bytes of the solution."""
        elites = {name: np.asarray(rows) for name, rows in self.ribs_archive.data().items()}
        elites.pop("threshold", None)  # pyribs' own, of its cells
        elites.setdefault("index", np.arange(len(elites["objective"])))
        return archive_rows(elites, indexed=self.cells is not None)

    def describe(self) -> dict[str, Any]:
        """Type, number of cells and, of a grid, its dims."""
        dims = getattr(self.ribs_archive, "dims", None)
        dims = None if dims is None else [int(n) for n in dims]
        about = {"type": self._name, "cells": self.cells, "dims": dims}
        own = type(self.ribs_archive)
        return about if kind_of(self.ribs_archive) else {**about, "class": own.__name__}

    def geometry(self) -> Arrays:
        """Centroids or boundaries."""
        return KINDS[self._name].geometry(self.ribs_archive)

    def cells_of(self, measures: Floats) -> Cells:
        """Pyribs' `index_of`."""
        return self.ribs_archive.index_of(measures)

    def objectives(self, cells: Cells) -> tuple[Cells, Floats]:
        """From pyribs' store."""
        return internals.objectives(self.ribs_archive, cells)

    def metrics(self) -> dict[str, Any]:
        """The metrics of the archive, from what pyribs keeps; None where one needs cells."""
        found = statistics(self.ribs_archive, self._offset)
        coverage = norm = None
        if self.cells is not None:
            coverage = found["num_elites"] / self.cells
            norm = found["qd_score"] / self.cells
        return {**found, "coverage": coverage, "norm_qd_score": norm}
