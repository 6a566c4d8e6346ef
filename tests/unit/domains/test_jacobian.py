"""Gradients agree with finite differences."""

import numpy as np
import pytest
from domain_makers import NO_SEEDS, linear_projection, make


@pytest.mark.parametrize(
    "domain",
    [linear_projection(f, d) for f in ("sphere", "rastrigin", "plateau") for d in (2, 5, 20)]
    + [make(type="arm", solution_dim=d) for d in (1, 2, 20)],
    ids=lambda domain: f"{type(domain).__name__}-{domain.solution_dim}",
)
def test_jacobian_agrees_with_finite_differences(domain):
    rng = np.random.default_rng(1)
    x = rng.normal(scale=6, size=(5, domain.solution_dim))  # inside and outside the box
    jacobian = domain.jacobian(x)
    assert jacobian.shape == (5, 3, domain.solution_dim)
    for i in range(domain.solution_dim):
        ends = []
        for width in (1e-6, -1e-6):
            moved = x.copy()
            moved[:, i] += width
            result = domain.evaluate(moved, NO_SEEDS)
            ends.append(np.column_stack([result.objective, result.measures]))
        np.testing.assert_allclose(
            jacobian[:, :, i], (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-5
        )
