"""Example of an archive of your own: a grid that takes nothing below an objective.

`config/experiments/arm_own_archive.yaml` uses it; `qdsweep check --algorithm floor:Floor` tests it.
"""

import numpy as np
from ribs.archives import GridArchive


class Floor(GridArchive):
    """A grid archive for which a solution worse than `least` does not count as found.

    It hands on what its signature leaves to `**space`: solution_dim, dims, ranges,
    qd_score_offset, extra_fields and seed. As `index_of` is the grid's, figures show its cells.

    Args:
        least: The lowest objective that is kept [objective units].
        space: What every grid archive is given.
    """

    def __init__(self, *, least=50.0, **space):
        super().__init__(**space)
        self.least = least

    def add(self, solution, objective, measures, **fields):
        """Adds what is good enough; emitters read a row of the answer for each solution."""
        rows = {"solution": solution, "objective": objective, "measures": measures, **fields}
        good = np.asarray(objective) >= self.least
        info = {
            "status": np.zeros(len(good), dtype=np.int32),  # 0: not added
            "value": np.asarray(objective, dtype=float) - self.least,
        }
        if good.any():
            added = super().add(**{name: np.asarray(each)[good] for name, each in rows.items()})
            for name in info:
                info[name][good] = added[name]
        return info
