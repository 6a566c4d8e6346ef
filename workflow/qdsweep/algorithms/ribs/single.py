"""A scheduler that adds the solutions of an iteration one after another, but quickly."""

import warnings
from typing import Any

from numpy.typing import NDArray
from ribs.schedulers import Scheduler

from qdsweep.algorithms.ribs.internals import add_in_turn, adds_in_turn


class SingleScheduler(Scheduler):
    """pyribs' Scheduler with `add_mode="single"`, and the same results. Reload files name it.

    pyribs calls `add_single` for each solution. This scheduler makes one pass over a batch if its
    archives are grid or CVT archives, which takes a hundredth of the time.
    """

    def _add_to_archives(self, data: dict[str, Any]) -> dict[str, NDArray[Any]]:
        archives = {"archive": self.archive, "result_archive": self._result_archive}
        if not all(map(adds_in_turn, archives.values())):
            added = super()._add_to_archives(data)
            # ProximityArchive returns an array of one value per solution, which emitters refuse.
            return {
                name: values[:, 0] if values.shape[1:] == (1,) else values
                for name, values in added.items()
            }
        infos = []
        for name, archive in archives.items():
            if archive is None:
                continue
            was_empty = archive.empty
            infos.append(add_in_turn(archive, data))
            if was_empty and archive.empty:
                warnings.warn(self._EMPTY_WARNING.format(name=name), stacklevel=3)
        return infos[0]
