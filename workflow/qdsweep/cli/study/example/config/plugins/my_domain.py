"""The domain of this study: its objective and its measures.

`qdsweep check my_domain:MyDomain` tests its interface. `python -m pytest config/plugins` (after
`pip install pytest`) tests its values.
"""

import numpy as np

from qdsweep.domains.base import Evaluation


class MyDomain:
    """A solution is a list of turns [rad]: a path of steps of one length, starting at the origin.

    The objective is 100 for a straight path and falls with its turns, down to 0. The measures are
    the point where it ends. So the archive has the smoothest path to every point.
    """

    is_deterministic = True  # the seeds have no effect; remove this line if they do

    def __init__(self, steps: int = 10) -> None:
        self.solution_dim = steps
        self.measures = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}
        self.objective_range = (0.0, 100.0)
        self.fields = {}  # further values to keep with an elite: none
        self.step = 0.3  # natural size of a mutation [rad]

    def evaluate(self, solutions, seeds):
        """Evaluates n solutions (n, d) at once; each row is independent of the others.

        All randomness must come from `seeds` (n,): `np.random.default_rng(int(seed))` for a row.
        """
        turns = np.asarray(solutions)
        headings = np.cumsum(turns, axis=1)
        ends = np.stack([np.cos(headings).mean(axis=1), np.sin(headings).mean(axis=1)], axis=1)
        objective = 100 - 100 * np.square(turns / np.pi).mean(axis=1)
        return Evaluation(np.maximum(objective, 0), ends)
