"""Screens of Atari games as Mnih et al. (2015) have them: small, grey, four at a time."""

from math import gcd

import numpy as np
from ale_py import Action
from numpy.typing import NDArray

from qdsweep.domains.emulator import Emulator

SIZE, STACK = 84, 4
_WHITE = 255


class Screens:
    """The last screens of an episode: means over the area of each of 84 x 84 pixels, 0 to 1.

    All sums are of whole numbers below 2^24, which single precision has exactly.

    Args:
        emulator: The emulator.
        frame_skip: Frames that an action lasts.

    Attributes:
        inputs: Numbers of an observation.
        frame_skip: Frames that an action lasts.
    """

    inputs = STACK * SIZE * SIZE

    def __init__(self, emulator: Emulator, frame_skip: int) -> None:
        self._emulator, self._ale, self._skip = emulator, emulator.ale, frame_skip
        height, width = emulator.first_screen.shape
        rows, columns = _areas(height), _areas(width)
        self._frames = np.empty((2, height, width), dtype=np.uint8)
        self._bright = np.empty((height, width), dtype=np.float32)
        # Views of the same numbers: pixels of a group of rows, then groups of a row's pixels.
        self._groups = self._bright.reshape(-1, rows.shape[1], width)
        self._terms = [(out, row, rows[out, row]) for out, row in np.argwhere(rows)]
        self._low = np.empty((len(self._groups), len(rows), width), dtype=np.float32)
        self._narrow = self._low.reshape(-1, columns.shape[1]).dot
        self._columns = np.ascontiguousarray(columns.T)
        self._scale = np.float32(1 / (_WHITE * rows[0].sum() * columns[0].sum()))
        self._stack = np.empty((STACK, SIZE, SIZE), dtype=np.float32)
        self._flat = self._stack.reshape(-1)
        self._newest = self._stack[-1].reshape(-1, len(columns))

    def begin(self) -> None:
        """Begins an episode: its first screen, four times."""
        self._shrink(self._emulator.first_screen)
        self._stack[:-1] = self._stack[-1]

    def act(self, action: Action) -> int:
        """Plays an action for its frames, and returns the reward."""
        act, reward = self._ale.act, 0
        for left in range(self._skip - 1, -1, -1):
            reward += act(action)
            if left < 2:
                self._ale.getScreenGrayscale(self._frames[left])
        if self._skip > 1:
            np.maximum(self._frames[0], self._frames[1], out=self._frames[0])
        self._stack[:-1] = self._stack[1:]
        self._shrink(self._frames[0])
        return reward

    def look(self, memory: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Returns the observation ``(28224,)``, four screens from old to new; `act` changes it."""
        return self._flat

    def _shrink(self, frame: NDArray[np.uint8]) -> None:
        """Makes the newest screen of a frame."""
        self._bright[...] = frame
        self._low[...] = 0
        for out, row, weight in self._terms:
            self._low[:, out] += weight * self._groups[:, row]
        self._narrow(self._columns, self._newest)
        np.multiply(self._newest, self._scale, self._newest)


def _areas(size: int) -> NDArray[np.float32]:
    """Returns which part of each pixel lies in which of 84 wider ones, as whole numbers.

    Returns:
        ``(outputs, pixels)`` of a group of pixels that becomes a whole number of outputs.
    """
    groups = gcd(size, SIZE)
    pixels, outputs = size // groups, SIZE // groups
    end = np.minimum.outer((np.arange(outputs) + 1) * pixels, (np.arange(pixels) + 1) * outputs)
    start = np.maximum.outer(np.arange(outputs) * pixels, np.arange(pixels) * outputs)
    return np.maximum(end - start, 0).astype(np.float32)
