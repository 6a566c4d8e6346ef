"""Amdahl's law: the fit, its error and its recommendation."""

import math

import numpy as np
import pytest

from qdsweep.features.scale.study import (
    Fit,
    advise,
    efficiency,
    fit_amdahl,
    recommended_workers,
    speedup,
)


@pytest.mark.parametrize("serial", [0.0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.3, 1.0])
@pytest.mark.parametrize("most", [1, 7, 100])
def test_recommended_is_the_most_workers_above_the_bound(serial, most):
    fit = [n for n in range(1, most + 1) if efficiency(serial, n) >= 0.8 - 1e-12]
    assert recommended_workers(serial, most) == max(fit)


def test_the_fit_finds_the_law_again():
    workers = [1, 2, 4, 8]
    fit = fit_amdahl(workers, [20 * (0.1 + 0.9 / n) for n in workers])
    assert fit.serial == pytest.approx(0.1, abs=1e-6)
    assert fit.one_worker == pytest.approx(20, rel=1e-6)
    assert fit.error == pytest.approx(0, abs=1e-6)
    assert speedup(fit.serial, 4) == pytest.approx(1 / (0.1 + 0.9 / 4))


def test_the_standard_error_is_that_of_repeated_studies():
    """Over 300 synthetic studies with 3 % noise, the reported errors are true."""
    rng = np.random.default_rng(1)
    workers = np.repeat([1, 2, 4, 8], 3)
    scores = []
    for _ in range(300):
        seconds = 20 * (0.1 + 0.9 / workers) * (1 + 0.03 * rng.standard_normal(len(workers)))
        fit = fit_amdahl(list(workers), list(seconds))
        scores.append((fit.serial - 0.1) / fit.error)
    # Student's t with 10 degrees of freedom has the standard deviation 1.12.
    assert 1.0 < np.std(scores) < 1.25
    assert abs(np.mean(scores)) < 0.2


def test_no_error_is_known_of_two_times():
    fit = fit_amdahl([1, 2], [10.0, 6.0])
    assert fit.serial == pytest.approx(0.2, abs=1e-4)
    assert math.isnan(fit.error)


def test_a_recommendation_needs_times_that_tell_it(snapshot):
    cases = [
        (Fit(60, 0.01, 0.02), 5.0),
        (Fit(60, 0.01, 0.0), 5.0),
        (Fit(60, 0.9, 0.2), 5.0),
        (Fit(60, 0.0001, 0.0), 5.0),
        (Fit(60, 1.0, math.nan), 60.0),
        (Fit(0.4, 0.01, 0.001), 0.1),
        (Fit(60, 0.01, math.nan), 30.0),
        (Fit(60, 0.0, math.nan), 30.0),
    ]
    advice = [advise(fit, shortest, 64) for fit, shortest in cases]
    assert [workers for workers, _ in advice] == [6, 26, 1, 64, 1, None, None, None]
    assert [text for _, text in (advice[0], *advice[4:])] == snapshot
