"""Atari games: the emulator, small grey screens, and convolutional networks in numpy.

The screens are those of Mnih et al. (2015). The networks are those of Mnih et al. (2013),
arXiv:1312.5602, and (2015), doi:10.1038/nature14236.
"""

import struct
from math import gcd
from typing import Any

import numpy as np
from ale_py import Action, ALEInterface, ALEState, LoggerMode, roms
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from qdsweep.domains.base import Actor, Floats
from qdsweep.domains.policies import Forward, count_parameters, draw_xavier, split_layers
from qdsweep.errors import BadInput
from qdsweep.features.atari.domains import Atari

# A seed of the emulator is a non-negative C int.
_SEEDS = 2**31
_SEED_OF_PATTERN, _SEED_OF_PROOF = 0, 1
# The bytes of a state that hold the length of its main part, after six integers.
_LENGTH = slice(24, 28)

_WHITE = 255
# (filters, kernel, stride) of each convolution, and the units of the dense layer after them.
_NETWORKS = {
    "mnih2013": (((16, 8, 4), (32, 4, 2)), 256),
    "mnih2015": (((32, 8, 4), (64, 4, 2), (64, 3, 1)), 512),
}

SIZE, STACK = 84, 4


class Emulator:
    """An emulator of one game, whose episodes equal those of a new emulator.

    Only loading a game sets the seed of its random numbers, and this takes longer than many
    episodes. The state at the start is therefore stored, and its random numbers are replaced by
    those of the seed. This works because std::mt19937 and numpy's RandomState start equally. Where
    such a state differs from a loaded one (in another version), each episode loads the game.

    Args:
        game: The game and the emulator's settings.

    Attributes:
        ale: The emulator itself, whose `act` plays one frame. With more frames per `act`, some
            games start differently.
        first_screen: ``(h, w)`` the grey screen at the start of the episode. The state does not
            contain it, and in some games it depends on earlier episodes.
        is_fast: Whether the game need not be loaded for each episode.

    Raises:
        BadInput: The game starts after the last frame of an episode.
    """

    def __init__(self, game: Atari) -> None:
        ALEInterface.setLoggerMode(LoggerMode.Error)
        self.ale = ALEInterface()
        self._rom = roms.get_rom_path(game.rom)
        self.ale.setFloat("repeat_action_probability", game.repeat_action_probability)
        proof = self._load(_SEED_OF_PROOF)
        # Some games play a menu first. DoubleDunk would never end with a limit within it.
        first = self.ale.getEpisodeFrameNumber()
        if game.max_frames <= first:
            raise BadInput(
                f"domain.max_frames = {game.max_frames}: {game.game} starts at frame {first}. Use "
                "a larger limit"
            )
        self.ale.setInt("max_num_frames_per_episode", game.max_frames)
        self._pattern = self._load(_SEED_OF_PATTERN)
        self.is_fast = self._state(_SEED_OF_PROOF) == proof

    def start(self, seed: int) -> None:
        """Starts an episode.

        Args:
            seed: Its seed; the emulator uses the lower 31 bits.
        """
        seed %= _SEEDS
        if not self.is_fast:
            self._load(seed)
            return
        self.ale.reset_game()  # the state does not contain the sticky action
        state: Any = ALEState.__new__(ALEState)
        state.__setstate__(self._state(seed))
        self.ale.restoreState(state)

    def _load(self, seed: int) -> bytes:
        """Loads the game, and returns its state."""
        self.ale.setInt("random_seed", seed)
        self.ale.loadROM(self._rom)
        self.first_screen: NDArray[np.uint8] = self.ale.getScreenGrayscale()
        return bytes(self.ale.cloneState(include_rng=True).__getstate__())

    def _state(self, seed: int) -> bytes:
        """Returns the state at the start with a seed's random numbers; empty if it has none."""
        before, pattern, after = self._pattern.partition(_numbers(_SEED_OF_PATTERN))
        if not pattern:
            return b""
        numbers = _numbers(seed)
        (length,) = struct.unpack("<I", before[_LENGTH])
        length += len(numbers) - len(pattern)
        head = before[: _LENGTH.start] + struct.pack("<I", length) + before[_LENGTH.stop : -4]
        return head + struct.pack("<I", len(numbers)) + numbers + after


def _numbers(seed: int) -> bytes:
    """Returns the state of std::mt19937 with a seed, in the format of its output operator."""
    _, key, position, *_ = np.random.RandomState(seed).get_state()
    return " ".join(map(str, [*np.asarray(key).tolist(), position])).encode()


class Screens:
    """The last four screens of an episode, each reduced to 84 x 84 pixels from 0 to 1.

    A pixel is the mean over its area. All sums are whole numbers below 2^24, which single
    precision represents exactly. It may then be rounded to a byte and divided by 255, as torch
    does with `x.float() / 255`.

    Args:
        emulator: The emulator.
        frame_skip: Frames that an action lasts.
        rounds: Whether pixels are rounded to bytes.

    Attributes:
        inputs: Size of an observation.
        kept: The screens of this episode as bytes, ``(84 * 84,)`` each, if `begin` was asked to
            keep them.
    """

    inputs = STACK * SIZE * SIZE
    stack = STACK

    def __init__(self, emulator: Emulator, frame_skip: int, *, rounds: bool = False) -> None:
        self._emulator, self._ale, self._skip = emulator, emulator.ale, frame_skip
        height, width = emulator.first_screen.shape
        rows, columns = _areas(height), _areas(width)
        self._frames = np.empty((2, height, width), dtype=np.uint8)
        self._bright = np.empty((height, width), dtype=np.float32)
        # Views of the same array: pixels of a group of rows, then groups of a row's pixels.
        self._groups = self._bright.reshape(-1, rows.shape[1], width)
        self._terms = [(out, row, rows[out, row]) for out, row in np.argwhere(rows)]
        self._low = np.empty((len(self._groups), len(rows), width), dtype=np.float32)
        self._narrow = self._low.reshape(-1, columns.shape[1]).dot
        self._columns = np.ascontiguousarray(columns.T)
        white = 1 if rounds else _WHITE
        self._scale = np.float32(1 / (white * rows[0].sum() * columns[0].sum()))
        self._stack = np.empty((STACK, SIZE, SIZE), dtype=np.float32)
        self._flat = self._stack.reshape(-1)
        self._newest = self._stack[-1].reshape(-1, len(columns))
        self._rounds, self._keeps = rounds, False
        self.kept: list[NDArray[np.uint8]] = []

    def begin(self, *, keep: bool = False) -> None:
        """Starts an episode with its first screen, four times.

        Args:
            keep: Whether to keep the episode's screens, which must be bytes.
        """
        self._keeps, self.kept = keep, []
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

    def skip(self, action: Action) -> None:
        """Plays an action after whose screen at least `stack` others follow before a `look`."""
        act = self._ale.act
        for _ in range(self._skip):
            act(action)

    def keep(self) -> NDArray[np.uint8]:
        """Keeps screens from the newest one on, and returns the ones before it as bytes."""
        stack = np.rint(self._stack * _WHITE).astype(np.uint8).reshape(STACK, -1)
        self._keeps, self.kept = True, [stack[-1]]
        return stack[:-1]

    def look(self, memory: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Returns the observation ``(28224,)``, four screens from old to new; `act` changes it."""
        return self._flat

    def _shrink(self, frame: NDArray[np.uint8]) -> None:
        """Computes the newest screen from a frame."""
        self._bright[...] = frame
        self._low[...] = 0
        for out, row, weight in self._terms:
            self._low[:, out] += weight * self._groups[:, row]
        self._narrow(self._columns, self._newest)
        np.multiply(self._newest, self._scale, self._newest)
        if self._rounds:
            np.rint(self._newest, self._newest)
            if self._keeps:
                self.kept.append(self._newest.astype(np.uint8).reshape(-1))
            np.divide(self._newest, _WHITE, self._newest)


def _areas(size: int) -> NDArray[np.float32]:
    """Returns the overlaps of pixels with 84 wider output pixels, as whole numbers.

    Returns:
        ``(outputs, pixels)`` for a group of pixels that covers a whole number of outputs.
    """
    groups = gcd(size, SIZE)
    pixels, outputs = size // groups, SIZE // groups
    end = np.minimum.outer((np.arange(outputs) + 1) * pixels, (np.arange(pixels) + 1) * outputs)
    start = np.maximum.outer(np.arange(outputs) * pixels, np.arange(pixels) * outputs)
    return np.maximum(end - start, 0).astype(np.float32)


class ConvolutionalPolicy:
    """Convolutions without padding, a dense layer and the outputs, with biases and ReLU.

    A solution has the weights and biases layer by layer, in the layout of torch's Conv2d and
    Linear. Each product has only one observation, so it cannot depend on the batch.

    Args:
        network: The name of the network.
        outputs: Size of the network's output.

    Attributes:
        solution_dim: Number of weights and biases, d.
        actor: Its description for a learner.
    """

    def __init__(self, network: str, outputs: int) -> None:
        self._convolutions, units = _NETWORKS[network]
        self._shapes, channels, size = [], STACK, SIZE
        for filters, kernel, stride in self._convolutions:
            self._shapes.append((filters, channels * kernel**2))
            channels, size = filters, (size - kernel) // stride + 1
        dense = ((units, channels * size**2), (outputs, units))
        self._shapes += dense
        self.solution_dim = count_parameters(self._shapes, bias=True)
        image = (STACK, SIZE, SIZE)
        self.actor = Actor(dense, True, "relu", None, None, True, image, self._convolutions)

    def xavier(self, seed: np.random.SeedSequence) -> Floats:
        """Draws a solution, see `draw_xavier`; the inputs of a filter are those of its patch."""
        return draw_xavier(self._shapes, seed, bias=True)

    def network(self, solution: NDArray[Any]) -> Forward:
        """Returns the network with a solution's weights.

        Args:
            solution: ``(d,)`` weights and biases. The network computes in their precision.

        Returns:
            A function from the screens ``(4 * 84 * 84,)`` to the output ``(outputs,)``. The next
            call overwrites the output.
        """
        layers: list[Any] = split_layers(solution, self._shapes, bias=True)
        image = np.empty((STACK, SIZE, SIZE), dtype=solution.dtype)
        first, steps = image.reshape(-1), []
        convolutions = zip(self._convolutions, layers, strict=False)
        for (_, kernel, stride), (weights, biases) in convolutions:
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
