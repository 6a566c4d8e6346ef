"""Example of your own domain: a point that finds its way through a maze.

`config/domains/maze.yaml` names it as `maze:Maze`; `qdsweep check maze:Maze` tests it.
"""

import numpy as np

from qdsweep.domains.base import Evaluation

GOAL = np.array([0.9, 0.9])


class Maze:
    """A unit square with two walls, each with one gap; a solution is a heading [rad] per step.

    Objective: 0 in the farthest corner, 100 at the goal. Measures: the final point. The way
    to the goal first leads away from it, so a search for the objective only ends at a wall.
    """

    def __init__(self, steps: int = 40) -> None:
        self.solution_dim = steps
        self.measures = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
        self.objective_range = (0.0, 100.0)
        self.fields = {}  # an elite has no further values
        self.step = 1.0  # mutation scale [rad]; the search starts at 0

    def evaluate(self, solutions, seeds):
        """Walks all n points at once; no row depends on another one.

        All randomness would come from `seeds` (n,): `np.random.default_rng(int(seed))` for a row.
        """
        points = np.full((len(solutions), 2), 0.1)
        for headings in np.asarray(solutions).T:
            moved = points + 0.1 * np.stack([np.cos(headings), np.sin(headings)], axis=1)
            points = np.where(self._blocked(points, moved)[:, None], points, moved)
        distance = np.sqrt(np.square(points - GOAL).sum(axis=1))
        return Evaluation(100 * (1 - distance / np.sqrt(2 * 0.9**2)), points)

    @staticmethod
    def _blocked(points, moved):
        outside = (moved < 0).any(axis=1) | (moved > 1).any(axis=1)
        crossed = [(points[:, 0] < x) != (moved[:, 0] < x) for x in (1 / 3, 2 / 3)]
        gaps = [moved[:, 1] > 0.6, moved[:, 1] < 0.4]
        return outside | (crossed[0] & ~gaps[0]) | (crossed[1] & ~gaps[1])
