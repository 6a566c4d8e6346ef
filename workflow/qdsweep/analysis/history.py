"""The archive of a run at any earlier moment, from history.npz."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qdsweep.files import read_arrays


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
        # The last insertion into a cell is the first one counted from the end.
        cells, last = np.unique(self.index[:end][::-1], return_index=True)
        return cells, self.objective[:end][::-1][last]


def read_history(run_dir: Path) -> History | None:
    """Reads `history.npz` of a run.

    Returns:
        The insertions; None for an archive without cells that stay, and for runs of older
        releases.

    Raises:
        BadInput: The file is damaged.
    """
    path = run_dir / "history.npz"
    if not path.exists():
        return None
    remedy = "remove it; figures of how archives filled then leave this run out"
    arrays = read_arrays(path, "iteration", "index", "objective", remedy=remedy)
    return History(arrays["iteration"], arrays["index"].astype(np.int64), arrays["objective"])
