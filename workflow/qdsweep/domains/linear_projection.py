"""The linear projection benchmark (Fontaine et al. 2020, arXiv:1912.02400, section 4).

Settings are those of the CMA-MAE paper (Fontaine and Nikolaidis 2023, arXiv:2205.10752) and its
code (icaros-usc/cma_mae, experiments/lin_proj). The best objective is 100. The objective is 0 in
the corner where every parameter is -5.12.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from qdsweep.domains.base import Evaluation, Floats, Seeds

BOUND = 5.12
OPTIMUM = BOUND * 0.4  # 2.048, off the centre of the measure space
_A = 10.0  # Rastrigin's amplitude

_CORNER = np.array(-BOUND)


class _Function(NamedTuple):
    """A sum of one term per parameter. The objective is 100 where the sum is 0.

    Attributes:
        term: ``(n, d) -> (n, d)``, the terms.
        slope: ``(n, d) -> (n, d)``, their derivatives.
        worst: The value of each term where the objective is 0.
    """

    term: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    worst: float


def _sphere(x: Floats) -> Floats:
    return np.square(x - OPTIMUM)


def _sphere_slope(x: Floats) -> Floats:
    return 2 * (x - OPTIMUM)


def _rastrigin(x: Floats) -> Floats:
    y = x - OPTIMUM
    return np.square(y) - _A * np.cos(2 * np.pi * y) + _A


def _rastrigin_slope(x: Floats) -> Floats:
    y = x - OPTIMUM
    return 2 * y + 2 * np.pi * _A * np.sin(2 * np.pi * y)


def _plateau(x: Floats) -> Floats:
    return np.square(np.maximum(np.abs(x) - BOUND, 0))


def _plateau_slope(x: Floats) -> Floats:
    return 2 * np.sign(x) * np.maximum(np.abs(x) - BOUND, 0)


_FUNCTIONS = {
    "sphere": _Function(_sphere, _sphere_slope, float(_sphere(_CORNER))),
    "rastrigin": _Function(_rastrigin, _rastrigin_slope, float(_rastrigin(_CORNER))),
    # The published plateau subtracts the mean of the penalties itself.
    "plateau": _Function(_plateau, _plateau_slope, 100.0),
}


class LinearProjection:
    """A function of d parameters. Each of the k measures is the sum of one of k clipped groups.

    The two measures of the benchmark are the halves; k equal groups are those of Tjanaka et al.
    (2026), arXiv:2601.01082. A parameter x counts as x inside [-5.12, 5.12] and as 5.12 / x
    outside. The edges of the measure space are therefore hard to reach: nearly all parameters of a
    group must be at a bound.

    Attributes: see `qdsweep.domains.base.Domain`.
    """

    def __init__(self, function: str, solution_dim: int, num_measures: int = 2) -> None:
        """Makes the domain.

        Args:
            function: sphere, rastrigin or plateau.
            solution_dim: Number of parameters, at least one for each measure.
            num_measures: Number of groups. The last ones are larger if they cannot be equal.
        """
        self.solution_dim = solution_dim
        ends = [place * solution_dim // num_measures for place in range(num_measures + 1)]
        self._groups = [slice(*pair) for pair in pairwise(ends)]
        numbers = range(1, num_measures + 1)
        names = (
            ["first half", "second half"] if num_measures == 2 else [f"group {n}" for n in numbers]
        )
        self.measures = {
            f"sum of {name}": (-BOUND * (last - first), BOUND * (last - first))
            for name, (first, last) in zip(names, pairwise(ends), strict=True)
        }
        self.objective_range = (0.0, 100.0)
        self.fields: dict[str, tuple[int, ...]] = {}
        self._function = _FUNCTIONS[function]
        self._worst = self._function.worst * solution_dim

    def evaluate(self, solutions: Floats, seeds: Seeds) -> Evaluation:
        """Evaluates a batch.

        Args:
            solutions: ``(n, d)`` solutions.
            seeds: Not used, as the evaluation is deterministic.

        Returns:
            Objectives ``(n,)`` and measures ``(n, k)``.
        """
        # numpy's order of summation within a row depends on the memory layout, so it is fixed.
        x = np.ascontiguousarray(solutions, dtype=np.float64)
        raw = np.sum(self._function.term(x), axis=1)
        objective = (raw - self._worst) / -self._worst * 100
        clipped = np.divide(BOUND, x, out=x.copy(), where=np.abs(x) > BOUND)
        sums = [clipped[:, group].sum(axis=1) for group in self._groups]
        return Evaluation(objective, np.stack(sums, axis=1))

    def jacobian(self, solutions: Floats) -> Floats:
        """Returns the true gradients of the objective and of each measure, in this order.

        The published code leaves out the objective's scale, which does not change normalised
        gradients. It has -2 for every parameter outside the plateau, which is not its gradient.

        Args:
            solutions: ``(n, d)`` solutions.

        Returns:
            ``(n, 1 + k, d)`` gradients.
        """
        x = np.ascontiguousarray(solutions, dtype=np.float64)
        result = np.zeros((len(x), 1 + len(self._groups), self.solution_dim))
        result[:, 0] = -100 / self._worst * self._function.slope(x)
        outside = np.abs(x) > BOUND
        slope = np.divide(-BOUND, np.square(x), out=np.ones_like(x), where=outside)
        for place, group in enumerate(self._groups, start=1):
            result[:, place, group] = slope[:, group]
        return result
