"""Observation normalisation (Mania, Guy and Recht 2018, arXiv:1803.07055, algorithm 2, V2)."""

import numpy as np

from qdsweep.domains.base import Floats

# Keeps a component that was constant so far from becoming huge when it changes.
_VARIANCE_FLOOR = 1e-8
_LIMIT = 10.0
# This number of observations marks a context that stores mean and standard deviation instead.
_KNOWN = -1.0


class Normalizer:
    """Normalises observations by the mean and standard deviation of all earlier ones.

    Args:
        context: ``(1 + 2 o,)`` number, sum and sum of squares of the earlier observations. If
            there are none, observations are unchanged. See also `context_of`.

    Attributes:
        mean: ``(o,)`` mean of each component.
        std: ``(o,)`` standard deviation of each component.
    """

    def __init__(self, context: Floats) -> None:
        size = len(context) // 2
        count, sums, squares = context[0], context[1 : 1 + size], context[1 + size :]
        self.mean, self.std = np.zeros(size), np.ones(size)
        if count == _KNOWN:
            self.mean, self.std = sums, squares
        elif count > 0:
            self.mean = sums / count
            variance = np.maximum(squares / count - self.mean**2, 0.0)
            self.std = np.sqrt(variance + _VARIANCE_FLOOR)
        self._scaled = np.empty(size)

    def __call__(self, observation: Floats) -> Floats:
        """Returns the normalised observation. The next call overwrites it."""
        np.subtract(observation, self.mean, self._scaled)
        np.divide(self._scaled, self.std, self._scaled)
        return np.clip(self._scaled, -_LIMIT, _LIMIT, out=self._scaled)


def tally(observations: Floats) -> Floats:
    """Returns the term ``(1 + 2 o,)`` that ``(T, o)`` observations add to the context."""
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
