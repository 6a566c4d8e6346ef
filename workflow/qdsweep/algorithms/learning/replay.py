"""The replay buffer: the latest transitions, from which a learner draws."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsweep.domains.base import GOES_ON, Record
from qdsweep.host.memory import require_memory

Array = NDArray[np.float32]


class Transitions(NamedTuple):
    """n transitions.

    Attributes:
        inputs: ``(n, s + a)`` observation and action, as critics take them.
        rewards: ``(n,)``.
        following: ``(n, s)`` the observation that followed.
        ends: ``(n,)`` as `Record.ends` has them.
    """

    inputs: Array
    rewards: Array
    following: Array
    ends: Array


class Replay:
    """A ring of transitions: the oldest make room for new ones.

    A transition is one row of float32, 4 (2 s + a + 2) bytes: 264 of Ant's. The system gives memory
    to rows that are written, so a buffer that is far from full is small.

    Args:
        capacity: The most transitions that are kept.
        observation: Size s of an observation.
        action: Size a of an action.

    Raises:
        BadInput: There is no memory for it.

    Attributes:
        size: Transitions that it holds.
    """

    def __init__(self, capacity: int, observation: int, action: int) -> None:
        self.size = 0
        self._next = 0
        self._s, self._sa = observation, observation + action
        width = self._sa + observation + 2
        asked = f"algorithm.learner.replay_size = {capacity}: a buffer of so many transitions"
        require_memory(4 * width * capacity, asked)
        self._rows = np.empty((capacity, width), np.float32)

    def __getstate__(self) -> dict[str, Any]:
        """What is filled alone."""
        return {**vars(self), "_rows": self._rows[: self.size], "capacity": len(self._rows)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Makes room again for what is not filled."""
        capacity, rows = state.pop("capacity"), state["_rows"]
        vars(self).update(state)
        if len(rows) < capacity:
            self._rows = np.empty((capacity, rows.shape[1]), np.float32)
            self._rows[: self.size] = rows

    def add(self, record: Record) -> None:
        """Takes the transitions of a record."""
        capacity, steps = len(self._rows), len(record.rewards)
        # The observation before a step: one more of each episode that has ended by then.
        before = np.arange(steps) + np.cumsum(record.ends != GOES_ON) - (record.ends != GOES_ON)
        kept = slice(max(steps - capacity, 0), steps)
        before = before[kept]
        slots = (self._next + np.arange(len(before))) % capacity
        s, sa = self._s, self._sa
        self._rows[slots, :s] = record.observations[before]
        self._rows[slots, s:sa] = record.actions[kept]
        self._rows[slots, sa:-2] = record.observations[before + 1]
        self._rows[slots, -2] = record.rewards[kept]
        self._rows[slots, -1] = record.ends[kept]
        self._next = (self._next + len(before)) % capacity
        self.size = min(self.size + len(before), capacity)

    def draw(self, rng: np.random.Generator, count: int) -> Transitions:
        """Draws transitions uniformly, with replacement; the buffer is not empty."""
        rows = self._rows[rng.integers(0, self.size, count)]
        sa = self._sa
        return Transitions(rows[:, :sa], rows[:, -2], rows[:, sa:-2], rows[:, -1])

    def draw_observations(self, rng: np.random.Generator, count: int) -> Array:
        """Draws ``(count, s)`` observations likewise."""
        return self._rows[:, : self._s][rng.integers(0, self.size, count)]
