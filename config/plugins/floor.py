"""Example of your own archive: a grid that rejects solutions below a minimum objective.

`config/experiments/arm_own_archive.yaml` uses it; `qdsweep check --algorithm floor:Floor` tests it.
"""

import numpy as np
from ribs.archives import GridArchive


class Floor(GridArchive):
    """A grid archive that rejects solutions with an objective below `least`.

    Its `**space` are the arguments of the grid: solution_dim, dims, ranges, qd_score_offset,
    extra_fields and seed. `index_of` is the grid's, so figures show its cells.

    Args:
        least: The minimum objective [objective units].
        space: The arguments of every grid archive.
    """

    def __init__(self, *, least=50.0, **space):
        super().__init__(**space)
        self.least = least

    def add(self, solution, objective, measures, **fields):
        """Adds good solutions. Emitters read one row of the result per solution."""
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
