"""The emulator of Atari games: every episode starts as in one that was made for it alone."""

import struct
from typing import Any

import numpy as np
from ale_py import ALEInterface, ALEState, LoggerMode, roms
from numpy.typing import NDArray

from qdsweep.config.atari import Atari

# What the emulator takes as a seed: a C int that is not negative.
_SEEDS = 2**31
_SEED_OF_PATTERN, _SEED_OF_PROOF = 0, 1
# Where a state says how long its main part is, behind six integers.
_LENGTH = slice(24, 28)


class Emulator:
    """An emulator of one game.

    Only loading a game sets the seed of its random numbers, and takes longer than many an episode.
    So the state at the start is kept, and the numbers in it are replaced by those of the seed:
    std::mt19937 and numpy's RandomState begin alike. If that does not give the state that loading
    does, as may be with another version, the game is loaded for each episode.

    Args:
        game: The game and the emulator's settings.

    Attributes:
        ale: The emulator itself, whose `act` makes one frame: in some games the start is another
            where it makes more.
        first_screen: ``(h, w)`` the screen at the start of the episode in grey. It is no part of a
            state, and in some games another one after what was played before.
        is_fast: Whether the game need not be loaded for each episode.
    """

    def __init__(self, game: Atari) -> None:
        ALEInterface.setLoggerMode(LoggerMode.Error)
        self.ale = ALEInterface()
        self._rom = roms.get_rom_path(game.rom)
        self.ale.setInt("max_num_frames_per_episode", game.max_frames)
        self.ale.setFloat("repeat_action_probability", game.repeat_action_probability)
        self._pattern = self._load(_SEED_OF_PATTERN)
        proof = self._load(_SEED_OF_PROOF)
        self.is_fast = self._state(_SEED_OF_PROOF) == proof

    def start(self, seed: int) -> None:
        """Starts an episode.

        Args:
            seed: Its seed, of which the emulator takes the lower 31 bits.
        """
        seed %= _SEEDS
        if not self.is_fast:
            self._load(seed)
            return
        self.ale.reset_game()  # the action that may stick is not in a state
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
        """Returns the state at the start with a seed's random numbers; nothing if it has none."""
        before, found, after = self._pattern.partition(_numbers(_SEED_OF_PATTERN))
        if not found:
            return b""
        numbers = _numbers(seed)
        (length,) = struct.unpack("<I", before[_LENGTH])
        length += len(numbers) - len(found)
        head = before[: _LENGTH.start] + struct.pack("<I", length) + before[_LENGTH.stop : -4]
        return head + struct.pack("<I", len(numbers)) + numbers + after


def _numbers(seed: int) -> bytes:
    """Returns the state of std::mt19937 with a seed, in the words of its output operator."""
    _, key, position, *_ = np.random.RandomState(seed).get_state()
    return " ".join(map(str, [*np.asarray(key).tolist(), position])).encode()
