"""Networks have the layout of policies and true gradients, and Adam is that of the paper."""

import pickle

import numpy as np
import pytest

from qdsweep.config.domain_keys import MLP, Linear
from qdsweep.domains.policies import Policy
from qdsweep.features.learning.td3 import Adam, Network

SHAPES = ((5, 4), (6, 5), (2, 6))


@pytest.mark.parametrize(
    ("policy", "shapes"),
    [
        (MLP(type="mlp", hidden=[5, 6], activation="tanh"), SHAPES),
        (MLP(type="mlp", hidden=[5, 6], activation="relu"), SHAPES),
        (Linear(type="linear"), ((2, 4),)),
    ],
)
def test_a_solution_is_the_policy_of_the_domain(policy, shapes):
    of_the_domain, is_deep = Policy(policy, 4, 2), len(shapes) > 1
    activations = [policy.activation] * 2 + [""] if is_deep else [""]
    network = Network(shapes, activations, is_deep, 3, np.float64)
    assert network.size == of_the_domain.solution_dim
    solution = network.draw(np.random.default_rng(1))
    rows = np.random.default_rng(2).standard_normal((3, 4))
    expected = [of_the_domain.network(solution)(row).copy() for row in rows]
    np.testing.assert_allclose(network.forward(solution, rows), expected, rtol=1e-13)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "activations", [("tanh", "tanh", "tanh"), ("relu", "relu", ""), ("relu", "tanh", "")]
)
@pytest.mark.parametrize("outputs", [1, 2])
def test_gradients_are_finite_differences(activations: tuple[str, ...], bias: bool, outputs: int):
    rng = np.random.default_rng(3)
    shapes = (*SHAPES[:-1], (outputs, 6))
    network = Network(shapes, activations, bias, 7, np.float64)
    parameters, inputs = network.draw(rng), rng.standard_normal((7, 4))
    towards = rng.standard_normal((7, outputs))

    def loss(parameters: np.ndarray, inputs: np.ndarray) -> float:
        return float((network.forward(parameters, inputs) * towards).sum())

    network.forward(parameters, inputs)
    by_parameters = np.empty(network.size)
    by_inputs = network.backward(parameters, towards.copy(), out=by_parameters, columns=slice(1, 3))
    step = 1e-6
    for index, change in enumerate(step * np.eye(network.size)):
        change_of_loss = loss(parameters + change, inputs) - loss(parameters - change, inputs)
        assert by_parameters[index] == pytest.approx(change_of_loss / (2 * step), abs=1e-7)
    for row, column in np.ndindex(7, 2):
        change = np.zeros((7, 4))
        change[row, 1 + column] = step
        change_of_loss = loss(parameters, inputs + change) - loss(parameters, inputs - change)
        assert by_inputs[row, column] == pytest.approx(change_of_loss / (2 * step), abs=1e-7)


def test_first_parameters_fill_the_bounds_of_their_layer():
    network = Network(((100, 25), (100, 100)), ["tanh", "tanh"], True, 1)
    parameters = network.draw(np.random.default_rng(4))
    assert parameters.dtype == np.float32
    first, second = np.split(np.abs(parameters), [100 * 26])
    assert 0.19 < first.max() <= 0.2
    assert 0.099 < second.max() <= 0.1


def test_adam_is_algorithm_1_of_the_paper():
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
