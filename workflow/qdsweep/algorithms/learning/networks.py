"""Fully connected networks whose parameters are one vector: forward, and backward by hand."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsweep.domains.policies import split_layers

# Of floats: float32 in a learner.
Array = NDArray[Any]
NOTHING = slice(0)


class _Work(NamedTuple):
    """What the rows leave in a layer, allocated once; each ``(rows, outputs)``.

    Attributes:
        output: After the activation.
        slope: Of the activation there.
        gradient: Of the loss by each output, then by each sum before the activation.
    """

    output: Array
    slope: Array
    gradient: Array


class Network:
    """A fully connected network of fixed shape.

    `forward` may be followed by one `backward` about the same rows. A product is of all rows at
    once, so the last bits of a row depend on how many there are.

    Args:
        shapes: (outputs, inputs) of each layer.
        activations: Of each layer, "tanh", "relu" or "" for none.
        bias: Whether each layer has biases.
        rows: The most rows that it is given at once.
        dtype: Of parameters and rows.

    Attributes:
        size: Number of parameters, which lie as `split_layers` has them.
    """

    def __init__(
        self,
        shapes: Sequence[tuple[int, int]],
        activations: Sequence[str],
        bias: bool,
        rows: int,
        dtype: Any = np.float32,
    ) -> None:
        self._made_with = (shapes, activations, bias, rows, dtype)
        self._shapes, self._activations, self._bias, self._dtype = shapes, activations, bias, dtype
        self.size = sum(math.prod(shape) + bias * shape[0] for shape in shapes)
        self._work = [
            _Work(
                np.empty((rows, outputs), dtype),
                np.empty((rows, outputs), bool if activation == "relu" else dtype),
                np.empty((rows, outputs), dtype),
            )
            for (outputs, _), activation in zip(shapes, activations, strict=True)
        ]
        self._inputs: list[Array] = []  # of each layer in the last `forward`

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles what it was made with: what `forward` leaves is of no use later."""
        return Network, self._made_with

    def _layers(self, parameters: Array) -> list[tuple[Array, Array | None]]:
        return split_layers(parameters, self._shapes, bias=self._bias)

    def draw(self, rng: np.random.Generator) -> Array:
        """Draws parameters ``(size,)`` as PyTorch's `nn.Linear` does.

        Those of a layer are uniform in +-1 / sqrt(inputs).
        """
        parameters = np.empty(self.size, self._dtype)
        for (weights, biases), (_, inputs) in zip(
            self._layers(parameters), self._shapes, strict=True
        ):
            bound = 1 / math.sqrt(inputs)
            weights[:] = rng.uniform(-bound, bound, weights.shape)
            if biases is not None:
                biases[:] = rng.uniform(-bound, bound, biases.shape)
        return parameters

    def forward(self, parameters: Array, inputs: Array) -> Array:
        """Returns the outputs ``(n, outputs)`` of n rows; the next call overwrites them."""
        self._inputs = []
        x, rows = inputs, len(inputs)
        for (weights, biases), activation, work in zip(
            self._layers(parameters), self._activations, self._work, strict=True
        ):
            self._inputs.append(x)
            x = np.matmul(x, weights.T, out=work.output[:rows])
            if biases is not None:
                x += biases
            if activation == "tanh":
                np.tanh(x, out=x)
            elif activation == "relu":  # so it is quicker than by np.maximum
                x *= np.greater(x, 0, out=work.slope[:rows])
        return x

    def backward(
        self,
        parameters: Array,
        gradient: Array,
        out: Array | None = None,
        columns: slice = NOTHING,
    ) -> Array:
        """Carries the gradient of a loss from the outputs of the last `forward` back.

        Args:
            parameters: ``(size,)``, those of `forward`.
            gradient: ``(n, outputs)`` of the loss by each output; overwritten.
            out: ``(size,)`` takes the gradient by the parameters; None where it is not wanted.
            columns: Of the inputs by which the gradient is wanted too.

        Returns:
            ``(n, columns)`` the gradient by these inputs.
        """
        layers, rows = self._layers(parameters), len(gradient)
        found = layers if out is None else self._layers(out)
        for index in reversed(range(len(layers))):
            activation, work = self._activations[index], self._work[index]
            slope = work.slope[:rows]
            if activation == "tanh":
                np.square(work.output[:rows], out=slope)
                np.subtract(1, slope, out=slope)
            if activation:
                gradient *= slope
            if out is not None:
                weights, biases = found[index]
                np.matmul(gradient.T, self._inputs[index], out=weights)
                if biases is not None:
                    np.add.reduce(gradient, axis=0, out=biases)
            weights = layers[index][0]
            if index:
                # A matmul takes four times as long for a single output.
                product = np.multiply if len(weights) == 1 else np.matmul
                gradient = product(gradient, weights, out=self._work[index - 1].gradient[:rows])
        return gradient @ weights[:, columns]
