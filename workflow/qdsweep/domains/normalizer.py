"""Observation normalisation (Mania, Guy and Recht 2018, arXiv:1803.07055, algorithm 2, V2)."""

import numpy as np

from qdsweep.domains.base import Floats

# Keeps a component that was constant so far from becoming huge when it changes.
_VARIANCE_FLOOR = 1e-8
# Normalised numbers are clipped at this distance from 0.
CLIP = 10.0
# This number of observations marks a context that stores mean and standard deviation instead.
_KNOWN = -1.0


class Normalizer:
    """Normalises observations by the mean and standard deviation of all earlier ones.

    Args:
        context: ``(1 + 2 o,)`` number, mean and sum of squared deviations of the earlier
            observations. If there are none, observations are unchanged. See also `context_of`.
        adds_squares: Whether it has sum and sum of squares instead, as in earlier releases.

    Attributes:
        mean: ``(o,)`` mean of each component.
        std: ``(o,)`` standard deviation of each component.
    """

    def __init__(self, context: Floats, *, adds_squares: bool = False) -> None:
        size = len(context) // 2
        count, first, second = context[0], context[1 : 1 + size], context[1 + size :]
        self.mean, self.std = np.zeros(size), np.ones(size)
        if count == _KNOWN:
            self.mean, self.std = first, second
        elif count > 0:
            self.mean, variance = first, second / count
            if adds_squares:
                self.mean = first / count
                variance = np.maximum(variance - self.mean**2, 0.0)
            self.std = np.sqrt(variance + _VARIANCE_FLOOR)
        self._scaled = np.empty(size)

    def __call__(self, observation: Floats) -> Floats:
        """Returns the normalised observation. The next call overwrites it."""
        np.subtract(observation, self.mean, self._scaled)
        np.divide(self._scaled, self.std, self._scaled)
        return np.clip(self._scaled, -CLIP, CLIP, out=self._scaled)

    def all(self, observations: Floats) -> Floats:
        """Returns ``(T, o)`` normalised observations, with the bits that a call gives each."""
        return np.clip((observations - self.mean) / self.std, -CLIP, CLIP)


def tally(observations: Floats) -> Floats:
    """Returns the context ``(1 + 2 o,)`` of ``(T, o)`` observations without others."""
    shifted = observations - observations[0]  # exact for a large offset, such as Unix time
    mean = shifted.mean(axis=0)
    deviations = ((shifted - mean) ** 2).sum(axis=0)
    return np.concatenate(([len(observations)], observations[0] + mean, deviations))


def merge(context: Floats, other: Floats) -> Floats:
    """Returns the context ``(1 + 2 o,)`` of the observations of two (Chan et al. 1979)."""
    size, count = len(context) // 2, context[0] + other[0]
    if not other[0]:
        return context
    between, share = other[1 : 1 + size] - context[1 : 1 + size], other[0] / count
    merged = context + other
    merged[1 : 1 + size] = context[1 : 1 + size] + share * between
    merged[1 + size :] += between**2 * context[0] * share
    return merged


def tally_of_squares(observations: Floats) -> Floats:
    """Returns number, sum and sum of squares, the tally of earlier releases; they are added."""
    sums, squares = observations.sum(axis=0), (observations**2).sum(axis=0)
    return np.concatenate(([len(observations)], sums, squares))


def context_of(mean: Floats, std: Floats) -> Floats:
    """Returns contexts that give a `Normalizer` exactly these means and deviations.

    Args:
        mean: ``(n, o)`` means.
        std: ``(n, o)`` standard deviations, as in `Normalizer.std`.

    Returns:
        ``(n, 1 + 2 o)`` contexts.
    """
    return np.concatenate((np.full((len(mean), 1), _KNOWN), mean, std), axis=1)
