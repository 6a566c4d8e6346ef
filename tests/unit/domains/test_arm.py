"""The planar arm: published values."""

import numpy as np
import pytest
from domain_makers import NO_SEEDS, make


def test_golden_values_of_the_arm():
    domain = make(type="arm", solution_dim=2)
    straight, folded, bent = (0, 0), (0, np.pi), (np.pi / 2, -np.pi / 2)
    result = domain.evaluate(np.array([straight, folded, bent], dtype=float), NO_SEEDS)
    variance = [0, (np.pi / 2) ** 2, (np.pi / 2) ** 2]
    assert result.objective == pytest.approx(100 - 100 * np.array(variance))
    np.testing.assert_allclose(result.measures, [[2, 0], [0, 0], [1, 1]], atol=1e-12)
    assert list(domain.measures.values()) == [(-2, 2)] * 2
