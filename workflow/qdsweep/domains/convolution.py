"""The convolutional network of Mnih et al. (2013), arXiv:1312.5602, in numpy."""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from qdsweep.domains.base import Floats
from qdsweep.domains.policies import Network, count_parameters, draw_xavier, split_layers
from qdsweep.domains.screens import SIZE, STACK

# (filters, kernel, stride) of each convolution, and the units of the dense layer behind them.
_CONVOLUTIONS = ((16, 8, 4), (32, 4, 2))
_UNITS = 256


class ConvolutionalPolicy:
    """Two convolutions without padding and a dense layer, each with biases and ReLU, and outputs.

    A solution has the weights and biases layer by layer, as torch's Conv2d and Linear have them.
    Each product is of one observation, so it cannot depend on the batch.

    Args:
        outputs: Size of the network's output.

    Attributes:
        solution_dim: Number of weights and biases, d.
    """

    def __init__(self, outputs: int) -> None:
        self._shapes, channels, size = [], STACK, SIZE
        for filters, kernel, stride in _CONVOLUTIONS:
            self._shapes.append((filters, channels * kernel**2))
            channels, size = filters, (size - kernel) // stride + 1
        self._shapes += [(_UNITS, channels * size**2), (outputs, _UNITS)]
        self.solution_dim = count_parameters(self._shapes, bias=True)

    def xavier(self, seed: np.random.SeedSequence) -> Floats:
        """Draws a solution; the inputs of a filter are those of its patch, see `draw_xavier`."""
        return draw_xavier(self._shapes, seed, bias=True)

    def network(self, solution: NDArray[Any]) -> Network:
        """Returns the network with a solution's weights.

        Args:
            solution: ``(d,)``, in the precision that it computes with.

        Returns:
            A function from the screens ``(4 * 84 * 84,)`` to the output ``(outputs,)``, which is
            overwritten by the next call.
        """
        layers: list[Any] = split_layers(solution, self._shapes, bias=True)
        image = np.empty((STACK, SIZE, SIZE), dtype=solution.dtype)
        first, steps = image.reshape(-1), []
        for (_, kernel, stride), (weights, biases) in zip(_CONVOLUTIONS, layers, strict=False):
            windows = sliding_window_view(image, (kernel, kernel), (1, 2))[:, ::stride, ::stride]
            windows = windows.transpose(1, 2, 0, 3, 4)
            patches = np.empty(windows.shape, dtype=solution.dtype)
            image = np.empty((len(weights), *patches.shape[:2]), dtype=solution.dtype)
            matrix = patches.reshape(-1, weights.shape[1]).T
            flat = image.reshape(len(weights), -1)
            steps.append((patches, windows, weights.dot, matrix, flat, biases[:, np.newaxis]))
        (dense, dense_biases), (last, last_biases) = layers[-2:]
        features = image.reshape(-1)
        units = np.empty(len(dense), dtype=solution.dtype)
        output = np.empty(len(last), dtype=solution.dtype)

        def forward(x: NDArray[Any]) -> Any:
            np.copyto(first, x)
            for patches, windows, product, matrix, flat, biases in steps:
                np.copyto(patches, windows)
                product(matrix, flat)
                np.add(flat, biases, flat)
                np.maximum(flat, 0, out=flat)
            dense.dot(features, units)
            np.add(units, dense_biases, units)
            np.maximum(units, 0, out=units)
            last.dot(units, output)
            return np.add(output, last_biases, output)

        return forward
