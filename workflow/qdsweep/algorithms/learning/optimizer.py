"""Adam (Kingma & Ba 2015), in place."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Adam:
    """Descends by gradients, with PyTorch's default settings.

    Args:
        size: Number of parameters.
        lr: Learning rate [parameter units].
        dtype: Of parameters and gradients.
    """

    beta1, beta2, epsilon = 0.9, 0.999, 1e-8

    def __init__(self, size: int, lr: float, dtype: Any = np.float32) -> None:
        self.lr = lr
        self._steps = 0
        # Sums that decay: the paper's moments over 1 - beta, which saves two products a step.
        self._first = np.zeros(size, dtype)
        self._second = np.zeros(size, dtype)

    def step(self, parameters: NDArray[Any], gradient: NDArray[Any]) -> None:
        """Makes a step.

        Args:
            parameters: ``(size,)``; changed.
            gradient: ``(size,)`` of what is to become less; overwritten.
        """
        self._steps += 1
        scale1 = (1 - self.beta1) / (1 - self.beta1**self._steps)
        scale2 = math.sqrt((1 - self.beta2) / (1 - self.beta2**self._steps))
        rate, epsilon = self.lr * scale1 / scale2, self.epsilon / scale2
        first, second, work = self._first, self._second, gradient
        first *= self.beta1
        first += work
        work *= work
        second *= self.beta2
        second += work
        np.sqrt(second, out=work)
        work += epsilon
        np.divide(first, work, out=work)
        work *= rate
        parameters -= work
