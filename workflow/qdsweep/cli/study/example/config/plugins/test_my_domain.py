"""What the domain computes, and that it keeps the promises that runs rely on."""

import numpy as np
from my_domain import MyDomain

from qdsweep.domains.plugin import check_rows


def test_a_straight_path_is_the_best():
    """It ends at (1, 0); one that turns around at once ends at (-1, 0)."""
    solutions = np.zeros((2, 10))
    solutions[1, 0] = np.pi
    found = MyDomain().evaluate(solutions, seeds=np.zeros(2, dtype=int))
    np.testing.assert_allclose(found.objective, [100, 90])
    np.testing.assert_allclose(found.measures, [[1, 0], [-1, 0]], atol=1e-12)


def test_it_keeps_its_promises():
    """Shapes, reproducibility, and rows that do not depend on each other."""
    check_rows(MyDomain())
