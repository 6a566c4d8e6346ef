"""Linear projection and the planar arm have published values and true gradients."""

import numpy as np
import pytest
from domain_makers import NO_SEEDS, linear_projection, make
from refusals import refused

from qdsweep.config.compose import compose


def objective(domain, *solutions):
    return domain.evaluate(np.array(solutions, dtype=float), NO_SEEDS).objective


def test_golden_values_of_the_arm():
    domain = make(type="arm", solution_dim=2)
    straight, folded, bent = (0, 0), (0, np.pi), (np.pi / 2, -np.pi / 2)
    result = domain.evaluate(np.array([straight, folded, bent], dtype=float), NO_SEEDS)
    variance = [0, (np.pi / 2) ** 2, (np.pi / 2) ** 2]
    assert result.objective == pytest.approx(100 - 100 * np.array(variance))
    np.testing.assert_allclose(result.measures, [[2, 0], [0, 0], [1, 1]], atol=1e-12)
    assert list(domain.measures.values()) == [(-2, 2)] * 2


@pytest.mark.parametrize("function", ["sphere", "rastrigin"])
@pytest.mark.parametrize("d", [2, 7, 100])
def test_linear_projection_is_scaled_from_corner_to_optimum(function, d):
    domain = linear_projection(function, d)
    best, corner = objective(domain, [2.048] * d, [-5.12] * d)
    assert best == 100
    assert corner == pytest.approx(0, abs=1e-10)
    assert domain.objective_range == (0, 100)


def test_golden_values_of_linear_projection():
    # Written by hand from the formulas of the papers.
    sphere, rastrigin, plateau = (
        linear_projection(f, 2) for f in ("sphere", "rastrigin", "plateau")
    )
    assert objective(sphere, [0, 0])[0] == pytest.approx(100 * (1 - (2.048 / 7.168) ** 2))
    worst = 7.168**2 - 10 * np.cos(2 * np.pi * 7.168) + 10
    middle = 1.0**2 + 0.5**2 - 10 * np.cos(2 * np.pi * 1.0) - 10 * np.cos(np.pi) + 20
    assert objective(rastrigin, [3.048, 1.548])[0] == pytest.approx(
        100 * (1 - middle / (2 * worst))
    )
    assert objective(plateau, [5.12, -5.12], [0, 3], [6.12, 0], [-8.12, 6.12]) == pytest.approx(
        [100, 100, 99.5, 100 - (9 + 1) / 2]
    )


def test_sphere_has_the_bits_of_the_pyribs_example():
    x = np.random.default_rng(0).normal(scale=3, size=(50, 100))
    shift = 5.12 * 0.4
    worst = (-5.12 - shift) ** 2 * 100
    raw = np.sum(np.square(x - shift), axis=1)
    clipped = x.copy()
    outside = (clipped < -5.12) | (clipped > 5.12)
    clipped[outside] = 5.12 / clipped[outside]
    result = linear_projection().evaluate(x, NO_SEEDS)
    np.testing.assert_array_equal(result.objective, (raw - worst) / (0.0 - worst) * 100)
    np.testing.assert_array_equal(result.measures[:, 0], clipped[:, :50].sum(axis=1))
    np.testing.assert_array_equal(result.measures[:, 1], clipped[:, 50:].sum(axis=1))


def test_k_measures_are_the_sums_of_k_groups():
    x = np.random.default_rng(0).normal(scale=4, size=(9, 100))
    domain = linear_projection(num_measures=10)
    clipped = np.where(np.abs(x) > 5.12, 5.12 / x, x)
    result = domain.evaluate(x, NO_SEEDS)
    np.testing.assert_allclose(result.measures, clipped.reshape(9, 10, 10).sum(axis=2))
    np.testing.assert_allclose(list(domain.measures.values()), [(-51.2, 51.2)] * 10)
    np.testing.assert_array_equal(
        result.objective, linear_projection().evaluate(x, NO_SEEDS).objective
    )


def test_more_measures_than_parameters_are_refused():
    sizes = {"solution_dim": 4, "num_measures": 5, "dims": [2] * 5}
    with refused("num_measures = 5", "solution_dim = 4"):
        compose("lp_sphere", sizes)
    with refused("archive.dims", "5 entries", "4 measures"):
        compose("lp_sphere", {**sizes, "num_measures": 4})


def test_measures_of_linear_projection_fold_back_outside_the_box():
    domain = linear_projection(d=4)
    measures = domain.evaluate(np.array([[5.12, 10.24, -1, -51.2]]), NO_SEEDS).measures
    assert measures[0] == pytest.approx([5.12 + 0.5, -1 - 0.1])
    assert list(domain.measures.values()) == [(-10.24, 10.24)] * 2


@pytest.mark.parametrize(
    "domain",
    [linear_projection(f, d) for f in ("sphere", "rastrigin", "plateau") for d in (2, 5, 20)]
    + [linear_projection(d=5, num_measures=k) for k in (1, 3)]
    + [make(type="arm", solution_dim=d) for d in (1, 2, 20)],
    ids=lambda domain: f"{type(domain).__name__}-{domain.solution_dim}",
)
def test_jacobian_agrees_with_finite_differences(domain):
    rng = np.random.default_rng(1)
    x = rng.normal(scale=6, size=(5, domain.solution_dim))  # inside and outside the box
    jacobian = domain.jacobian(x)
    assert jacobian.shape == (5, 1 + len(domain.measures), domain.solution_dim)
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
