"""Estimated gradients equal those of known functions, within their error."""

import numpy as np
import pytest

from qdsweep.features.learning.estimate import (
    centred_ranks,
    estimated_gradients,
    mirrored_samples,
)

DIM, PAIRS, SIGMA = 8, 2000, 0.1
RNG = np.random.default_rng(0)
MEAN, SLOPES = RNG.normal(size=DIM), RNG.normal(size=(3, DIM))
CURVES = RNG.normal(size=(3, DIM, DIM))


def samples(sigma=SIGMA, pairs=PAIRS):
    return mirrored_samples(np.random.default_rng(1), MEAN, sigma, 2 * pairs)


def linear(x):
    return x @ SLOPES.T


def quadratic(x):
    return linear(x) + np.einsum("ni,kij,nj->nk", x, CURVES, x)


GRADIENTS = {
    linear: SLOPES,
    quadratic: SLOPES + np.einsum("kij,j->ki", CURVES + CURVES.transpose(0, 2, 1), MEAN),
}


def test_half_of_the_samples_mirrors_the_other():
    points = samples(pairs=4)
    np.testing.assert_allclose((points[:4] + points[4:]) / 2, np.tile(MEAN, (4, 1)), atol=1e-15)
    assert np.std(samples() - MEAN) == pytest.approx(SIGMA, rel=0.02)
    odd = mirrored_samples(np.random.default_rng(1), MEAN, SIGMA, 7)
    np.testing.assert_array_equal(odd, points[:7])


@pytest.mark.parametrize("function", GRADIENTS)
def test_the_jacobian_of_a_known_function_is_within_its_sampling_error(function):
    """Pairs cancel what is even around the mean, so the error is that of a linear function.

    The mean of (g e) e over p pairs has the variance (|g|^2 + g_i^2) / p in component i.
    """
    exact, points = GRADIENTS[function], samples()
    estimate = estimated_gradients(MEAN, points, function(points), SIGMA)
    error = np.sqrt((np.sum(exact**2, axis=1, keepdims=True) + exact**2) / PAIRS)
    z = (estimate - exact) / error
    assert np.abs(z).max() < 4 and 0.7 < np.sqrt(np.mean(z**2)) < 1.3


def test_ranks_give_the_direction_and_a_known_length():
    """Ranks of a linear function are uniform: E[(Phi(z) - 1/2) z] = 1 / (2 sqrt(pi))."""
    points = samples()
    estimate = estimated_gradients(MEAN, points, centred_ranks(linear(points)), SIGMA)
    unit = SLOPES / np.linalg.norm(SLOPES, axis=1, keepdims=True)
    error = np.sqrt(1 / 12 / PAIRS) / SIGMA
    z = (estimate - unit / (2 * np.sqrt(np.pi) * SIGMA)) / error
    assert np.abs(z).max() < 4 and np.sqrt(np.mean(z**2)) < 1.3
    scaled = np.exp(linear(points))  # only the order matters
    assert np.array_equal(centred_ranks(scaled), centred_ranks(linear(points)))


def test_equal_values_share_their_rank():
    ranks = centred_ranks(np.array([[3.0, 7.0], [1.0, 7.0], [3.0, 7.0], [9.0, 7.0]]))
    np.testing.assert_allclose(ranks[:, 0], [0, -0.5, 0, 0.5], atol=1e-15)
    np.testing.assert_allclose(ranks[:, 1], 0, atol=1e-15)
