"""The planar arm (arm repertoire), as in the CMA-MAE paper (arXiv:2205.10752, section 5)."""

import numpy as np

from qdsweep.domains.base import Evaluation, Floats, Seeds


class Arm:
    """An arm of d unit links in the plane. A solution is its joint angles [rad].

    The objective is (1 - variance of the angles) * 100. It is 100 for equal angles, and below 0
    where the variance exceeds 1. The measures are the position (x, y) of the end effector [link
    lengths]. The settings are those of icaros-usc/cma_mae, experiments/arm.

    Attributes: see `qdsweep.domains.base.Domain`.
    """

    def __init__(self, solution_dim: int) -> None:
        """Makes the domain.

        Args:
            solution_dim: Number of joints, at least 1.
        """
        self.solution_dim = solution_dim
        reach = float(solution_dim)
        self.measures = {"end effector x": (-reach, reach), "end effector y": (-reach, reach)}
        self.objective_range = (0.0, 100.0)
        self.fields: dict[str, tuple[int, ...]] = {}

    def evaluate(self, solutions: Floats, seeds: Seeds) -> Evaluation:
        """Evaluates a batch.

        Args:
            solutions: ``(n, d)`` joint angles [rad].
            seeds: Not used, as the evaluation is deterministic.

        Returns:
            Objectives ``(n,)`` and measures ``(n, 2)``.
        """
        # numpy's order of summation within a row depends on the memory layout, so it is fixed.
        angles = np.ascontiguousarray(solutions, dtype=np.float64)
        headings = np.cumsum(angles, axis=1)
        ends = [np.cos(headings).sum(axis=1), np.sin(headings).sum(axis=1)]
        return Evaluation((1 - np.var(angles, axis=1)) * 100, np.stack(ends, axis=1))

    def draw(self, solution: Floats) -> list[Floats]:
        """Returns the arm as a line through its joints.

        Args:
            solution: ``(d,)`` joint angles [rad].

        Returns:
            One line, ``(d + 1, 2)`` joints from the base to the end effector [link lengths].
        """
        headings = np.cumsum(solution)
        steps = np.stack([np.cos(headings), np.sin(headings)], axis=1)
        return [np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])]

    def jacobian(self, solutions: Floats) -> Floats:
        """Returns the gradients of the objective and of each measure, in this order.

        Args:
            solutions: ``(n, d)`` joint angles [rad].

        Returns:
            ``(n, 3, d)`` gradients.
        """
        angles = np.ascontiguousarray(solutions, dtype=np.float64)
        headings = np.cumsum(angles, axis=1)
        result = np.empty((len(angles), 3, self.solution_dim))
        mean = angles.mean(axis=1, keepdims=True)
        result[:, 0] = -200 / self.solution_dim * (angles - mean)
        # Joint i turns link i and every link after it.
        result[:, 1] = -np.cumsum(np.sin(headings)[:, ::-1], axis=1)[:, ::-1]
        result[:, 2] = np.cumsum(np.cos(headings)[:, ::-1], axis=1)[:, ::-1]
        return result
