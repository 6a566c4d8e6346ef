"""The replay buffer of stable-baselines3, filled with whole episodes."""

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import NStepReplayBuffer

from qdsweep.algorithms.rl.steps import join
from qdsweep.domains.base import Record
from qdsweep.host.memory import require_memory

Slots = NDArray[np.int64]
_ARRAYS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


class Replay:
    """A ring of the latest transitions of discrete actions, for n-step returns.

    Episodes are added whole, so that a return never reaches from one into another, and of one that
    the time limit has cut the value of the last observation goes on.

    Args:
        capacity: The most transitions that are kept.
        inputs: Size of an observation.
        outputs: Number of actions.
        n_steps: Rewards of a return [steps].
        gamma: Discount of later rewards.

    Raises:
        BadInput: There is no memory for it.

    Attributes:
        buffer: stable-baselines3's.
    """

    def __init__(
        self, capacity: int, inputs: int, outputs: int, n_steps: int, gamma: float
    ) -> None:
        self._sizes = capacity, inputs, outputs
        self._make(n_steps, gamma)

    def _make(self, n_steps: int, gamma: float) -> None:
        capacity, inputs, outputs = self._sizes
        asked = f"algorithm.buffer_size = {capacity}: a buffer of so many transitions"
        require_memory((8 * inputs + 20) * capacity, asked)
        self.buffer: Any = NStepReplayBuffer(
            capacity,
            spaces.Box(-np.inf, np.inf, (inputs,), np.float32),
            spaces.Discrete(outputs),
            device="cpu",
            n_steps=n_steps,
            gamma=gamma,
        )

    @property
    def size(self) -> int:
        """Transitions that it holds."""
        return int(self.buffer.size())

    def add(self, record: Record) -> Slots:
        """Takes the transitions of a record, the latest ones where there is no room for all.

        Returns:
            Their slots.
        """
        buffer, capacity = self.buffer, self.buffer.buffer_size
        steps = [values[-capacity:] for values in join([record], discrete=True)]
        observations, following, actions, rewards, over, cut = steps
        slots = (buffer.pos + np.arange(len(rewards))) % capacity
        buffer.observations[slots, 0] = observations
        buffer.next_observations[slots, 0] = following
        buffer.actions[slots, 0, 0] = actions
        buffer.rewards[slots, 0] = rewards
        buffer.dones[slots, 0] = over
        buffer.timeouts[slots, 0] = cut
        buffer.full = buffer.full or buffer.pos + len(slots) >= capacity
        buffer.pos = (buffer.pos + len(slots)) % capacity
        return slots

    def __getstate__(self) -> dict[str, Any]:
        """What is filled alone."""
        buffer = self.buffer
        return {
            "_sizes": self._sizes,
            "returns": (buffer.n_steps, buffer.gamma),
            "place": (buffer.pos, buffer.full),
            "filled": {name: getattr(buffer, name)[: self.size] for name in _ARRAYS},
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Makes room again for what is not filled."""
        self._sizes = state["_sizes"]
        self._make(*state["returns"])
        self.buffer.pos, self.buffer.full = state["place"]
        for name, values in state["filled"].items():
            getattr(self.buffer, name)[: len(values)] = values
