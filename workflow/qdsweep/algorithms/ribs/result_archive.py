"""A pyribs archive as the loop, the history and the results see it."""

from typing import Any

import numpy as np
from ribs.archives import ArchiveBase

from qdsweep.algorithms.base import Archive, Arrays, Cells
from qdsweep.algorithms.ribs import internals
from qdsweep.algorithms.ribs.archives import KINDS, kind_of
from qdsweep.config.archives import ARCHIVES, FIXED
from qdsweep.domains.base import Floats
from qdsweep.records.archive import archive_rows


class ResultArchive(Archive):
    """A pyribs archive.

    Args:
        archive: The archive.

    Attributes:
        ribs_archive: The same, for whoever needs pyribs.
    """

    def __init__(self, archive: ArchiveBase) -> None:
        self.ribs_archive: Any = archive
        self._name = kind_of(archive)
        facts = ARCHIVES[self._name]
        self.cells = None if facts.cells is None else int(archive.cells)
        self.cells_stay = facts.cells in FIXED

    def rows(self) -> Arrays:
        """Sorted by cell; without cells by the bytes of the solution."""
        elites = {name: np.asarray(rows) for name, rows in self.ribs_archive.data().items()}
        elites.pop("threshold", None)  # pyribs' own, of its cells
        return archive_rows(elites, indexed=self.cells is not None)

    def describe(self) -> dict[str, Any]:
        """Type, number of cells and, of a grid, its dims."""
        dims = getattr(self.ribs_archive, "dims", None)
        dims = None if dims is None else [int(n) for n in dims]
        return {"type": self._name, "cells": self.cells, "dims": dims}

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
        stats = self.ribs_archive.stats
        structured = self.cells is not None
        return {
            "num_elites": int(stats.num_elites),
            "coverage": float(stats.coverage) if structured else None,
            "qd_score": float(stats.qd_score),
            "norm_qd_score": float(stats.norm_qd_score) if structured else None,
            "obj_max": None if stats.obj_max is None else float(stats.obj_max),
            "obj_mean": None if stats.obj_mean is None else float(stats.obj_mean),
        }
