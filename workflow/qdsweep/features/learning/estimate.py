"""Gradients estimated from samples, as in evolution strategies (Salimans et al. 2017).

The gradient of the objective, smoothed by Gaussian noise, is the mean of objective times noise
divided by sigma. DQD-RL (Tjanaka et al. 2022, eq. 3) estimates the gradients of the measures in the
same way.
"""

import numpy as np

from qdsweep.domains.base import Floats


def mirrored_samples(rng: np.random.Generator, mean: Floats, sigma: float, count: int) -> Floats:
    """Returns samples around a solution, in pairs that mirror each other (antithetic sampling).

    Args:
        rng: Draws the noise.
        mean: ``(d,)`` the solution.
        sigma: Standard deviation of the noise [parameter units].
        count: Number of samples.

    Returns:
        ``(count, d)`` samples. The second half mirrors the first. If `count` is odd, one sample
        has no mirror.
    """
    half = count // 2
    noise = sigma * rng.standard_normal((count - half, len(mean)))
    return np.concatenate((mean + noise, mean - noise[:half]))


def centred_ranks(values: Floats) -> Floats:
    """Returns the rank of each value in its column, from -0.5 for the lowest to 0.5.

    Equal values share the mean of their ranks, so a flat function has no gradient.

    Args:
        values: ``(n, k)`` values, n of at least 2.
    """
    ranks = np.empty(values.shape)
    for column, of_column in zip(values.T, ranks.T, strict=True):
        _, group, sizes = np.unique(column, return_inverse=True, return_counts=True)
        last = np.cumsum(sizes) - 1
        of_column[:] = (last - (sizes - 1) / 2)[group]
    return ranks / (len(values) - 1) - 0.5


def estimated_gradients(mean: Floats, samples: Floats, values: Floats, sigma: float) -> Floats:
    """Returns the estimated gradient of each column of values.

    Args:
        mean: ``(d,)`` the solution.
        samples: ``(n, d)`` from `mirrored_samples`.
        values: ``(n, k)`` function values at each sample, or their ranks. Monotone transformations
            do not change ranks.
        sigma: The standard deviation of the samples.

    Returns:
        ``(k, d)`` gradients [units of the values / parameter units].
    """
    return values.T @ (samples - mean) / (len(samples) * sigma**2)
