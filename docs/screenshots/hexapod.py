"""The domain with six measures of the screenshots: the gait of a robot with six legs."""

import numpy as np

from qdsweep.domains.base import Evaluation

TIMES = np.arange(60) / 60  # of one cycle of the gait
HIPS = np.array([(x, y) for x in (1, 0, -1) for y in (1, -1)])  # front to rear, left and right


class Hexapod:
    """A leg is on the ground for a share of each cycle. A solution has its start and its logit.

    Objective: 100 if the centre of the feet on the ground is always below the body; 0 if it is as
    far away as a foot, or if no foot is on the ground. Measures: the share of each leg. They are
    those of the hexapod of Cully et al., Robots that can adapt like animals (2015).
    """

    is_deterministic = True

    def __init__(self):
        sides = [f"{place} {side}" for place in ("front", "middle", "rear") for side in ("L", "R")]
        self.solution_dim = 12
        self.measures = dict.fromkeys(sides, (0.0, 1.0))
        self.objective_range = (0.0, 100.0)
        self.fields = {}
        self.step = 0.3

    def evaluate(self, solutions, seeds):
        """Evaluates each gait at all times of a cycle."""
        objective, measures = [], []
        for solution in solutions:
            starts, shares = _gait(solution)
            down = (TIMES[:, None] - starts) % 1 < shares
            feet = np.maximum(down.sum(axis=1, keepdims=True), 1)
            distance = np.hypot(*(down @ HIPS / feet).T)
            away = np.where(down.any(axis=1), np.minimum(distance, 1), 1)
            objective.append(100 * (1 - away.mean()))
            measures.append(shares)
        return Evaluation(np.array(objective), np.array(measures))

    def draw(self, solution):
        """Returns a line for each time that a leg is on the ground, one row per leg."""
        lines = []
        for leg, (start, share) in enumerate(zip(*_gait(solution), strict=True)):
            ends = [start, min(start + share, 1), 0, max(start + share - 1, 0)]
            parts = np.reshape(ends, (2, 2))
            lines += [np.array([(8 * x, 5 - leg) for x in part]) for part in parts if np.ptp(part)]
        return lines


def _gait(solution):
    """Returns start and share of each leg [cycles]."""
    starts, logits = np.split(np.asarray(solution), 2)
    return starts % 1, 1 / (1 + np.exp(-logits))
