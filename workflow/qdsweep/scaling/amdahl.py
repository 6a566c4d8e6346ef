"""Amdahl's law: what more workers bring to an experiment."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

Workers = TypeVar("Workers", float, np.ndarray)

# The efficiency from which on one more worker is worth its core.
WORTHWHILE = 0.8


@dataclass(frozen=True)
class Fit:
    """Amdahl's law fitted to measured times: ``T(n) = T(1) (s + (1 - s) / n)``.

    Attributes:
        one_worker: Time with one worker, T(1) [s].
        serial: Serial fraction s, between 0 and 1.
        error: Its standard error; nan where it is unknown: with no more times than
            parameters, or at 0 or 1.
    """

    one_worker: float
    serial: float
    error: float


def speedup(serial: float, workers: Workers) -> Workers:
    """Returns the speed-up over one worker (Amdahl 1967), of a serial fraction of its time."""
    return 1 / (serial + (1 - serial) / workers)


def efficiency(serial: float, workers: Workers) -> Workers:
    """Returns the speed-up divided by the number of workers."""
    return speedup(serial, workers) / workers


def recommended_workers(serial: float, most: int) -> int:
    """Returns the largest number of workers with an efficiency of at least `WORTHWHILE`.

    At most as many as an iteration has solutions: further ones have nothing to do.
    """
    if serial <= 0:
        return most
    # The efficiency is 1 / (1 + s (n - 1)).
    workers = 1 + (1 / WORTHWHILE - 1) / serial
    return max(1, min(most, math.floor(workers + 1e-9)))


def fit_amdahl(workers: Sequence[int], seconds: Sequence[float]) -> Fit:
    """Fits Amdahl's law by least squares of the relative errors.

    Args:
        workers: Number of workers of each measurement, at least two different ones.
        seconds: Its time [s].
    """
    from scipy.optimize import OptimizeWarning, curve_fit

    n, times = np.asarray(workers, dtype=float), np.asarray(seconds, dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OptimizeWarning)  # too few times: the error is nan then
        (one_worker, serial), covariance = curve_fit(
            lambda n, one, s: one * (s + (1 - s) / n),
            n,
            times,
            p0=(times[n.argmin()] * n.min(), 0.1),
            sigma=times,
            bounds=([0, 0], [np.inf, 1]),
        )
    # At a bound (1: more workers make it slower) the error is unknown.
    known = len(times) > 2 and 1e-6 < serial < 1 - 1e-6
    error = math.sqrt(covariance[1, 1]) if known else math.nan
    return Fit(float(one_worker), float(serial), error)
