"""The planar arm of the benchmark tasks for uncertain domains (arXiv:2304.12454)."""

import numpy as np

from qdsweep.domains.base import Evaluation, Floats, Seeds

# A standard normal number is above this in 15 % of all cases: the second mode.
_SECOND = 1.0364333894937898


class ArmWithNoise:
    """An arm of d links, of which one or the other result is random.

    A solution is its joint angles, each clipped to 0 to 1: from minus half a turn to half a turn.
    The objective is minus the standard deviation of these numbers. The measures are the position of
    the end effector, scaled to 0 to 1.

    Attributes: see `qdsweep.domains.base.Domain`.

    Example:
        The noise on the objective is that of the seed:

        >>> import numpy as np
        >>> from qdsweep.features.noise.noisy_arm import ArmWithNoise
        >>> arm = ArmWithNoise("objective", 8)
        >>> result = arm.evaluate(np.full((3, 8), 0.5), np.array([1, 2, 1], dtype=np.uint32))
        >>> result.objective.round(3), result.measures.round(3).tolist()
        (array([ 0.102, -0.065,  0.102]), [[1.0, 0.5], [1.0, 0.5], [1.0, 0.5]])
    """

    def __init__(self, noise: str, solution_dim: int) -> None:
        """Makes the domain.

        Args:
            noise: See `domains.NoisyArm`.
            solution_dim: Number of joints, at least 2.
        """
        self.solution_dim = solution_dim
        self.measures = {"end effector x": (0.0, 1.0), "end effector y": (0.0, 1.0)}
        lowest = {"objective": -1.2, "bimodal_objective": -2.02}  # as its published QD-score offset
        self.objective_range = (lowest.get(noise, -1.0), 0.0)
        self.x0 = np.full(solution_dim, 0.5)
        self.fields: dict[str, tuple[int, ...]] = {}
        self._noise = noise

    def evaluate(self, solutions: Floats, seeds: Seeds) -> Evaluation:
        """Evaluates a batch.

        Args:
            solutions: ``(n, d)`` joint angles, 0 to 1.
            seeds: ``(n,)`` seeds of the noise.

        Returns:
            Objectives ``(n,)`` and measures ``(n, 2)``.
        """
        angles = np.clip(np.ascontiguousarray(solutions, dtype=np.float64), 0, 1)
        generators = (np.random.Generator(np.random.Philox(key=int(seed))) for seed in seeds)
        drawn = np.array([each.standard_normal(4) for each in generators]).reshape(-1, 4)
        second = (drawn[:, 3] > _SECOND).astype(np.float64)
        spread = np.zeros((len(angles), 1))
        if self._noise == "joint":
            angles = angles.copy()
            angles[:, -2] = np.clip(angles[:, -2] + 0.1 * drawn[:, 0], 0, 1)
        objective = -np.std(angles, axis=1)
        headings = np.cumsum(2 * np.pi * angles - np.pi, axis=1)
        ends = [np.cos(headings).sum(axis=1), np.sin(headings).sum(axis=1)]
        measures = np.stack(ends, axis=1) / (2 * self.solution_dim) + 0.5
        match self._noise:
            case "objective":
                objective = objective + 0.1 * drawn[:, 0]
            case "bimodal_objective":
                objective = objective + 0.01 * drawn[:, 0] - second
            case "measures":
                spread[:] = 0.03
            case "bimodal_measures":
                spread[:] = 0.01
                measures = measures + second[:, np.newaxis]
            case "two_spreads":
                calm = np.prod(angles - 0.5, axis=1) >= 0
                spread[:, 0] = np.where(calm, 0.01, 0.1)
        return Evaluation(objective, measures + spread * drawn[:, 1:3])

    def draw(self, solution: Floats) -> list[Floats]:
        """Returns the arm without noise as a line through its joints.

        Args:
            solution: ``(d,)`` joint angles, 0 to 1.

        Returns:
            One line, ``(d + 1, 2)`` joints from the base to the end effector, as the measures.
        """
        headings = np.cumsum(2 * np.pi * np.clip(solution, 0, 1) - np.pi)
        steps = np.stack([np.cos(headings), np.sin(headings)], axis=1)
        joints = np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])
        return [joints / (2 * self.solution_dim) + 0.5]
