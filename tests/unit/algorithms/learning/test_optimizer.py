"""Adam is that of the paper."""

import pickle

import numpy as np

from qdsweep.algorithms.learning.td3 import Adam


def test_it_is_algorithm_1_of_the_paper():
    rng = np.random.default_rng(1)
    parameters = rng.standard_normal(9)
    expected, first, second = parameters.copy(), np.zeros(9), np.zeros(9)
    adam = Adam(9, 0.01, np.float64)
    for step in range(1, 30):
        gradient = rng.standard_normal(9) * 10.0 ** rng.integers(-6, 3, 9)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        bias1, bias2 = 1 - 0.9**step, 1 - 0.999**step
        expected -= 0.01 * (first / bias1) / (np.sqrt(second / bias2) + 1e-8)
        adam.step(parameters, gradient)
        adam = pickle.loads(pickle.dumps(adam))
        np.testing.assert_allclose(parameters, expected, rtol=1e-12)
