"""stable-baselines3's DQN and a synchronous Ape-X DQN; both learn while the next batch is played.

The replay buffer of stable-baselines3 is filled with whole episodes. Ape-X DQN has proportional
priorities in a sum tree (Schaul et al. 2016, section 3.3 and appendix B.2.1), and each row
explores differently.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import DQN as SB3DQN
from stable_baselines3.common.buffers import NStepReplayBuffer
from stable_baselines3.common.utils import polyak_update
from torch.nn import functional

from qdsweep.algorithms.pytorch import arrays
from qdsweep.domains.base import Actor, Exploration, Floats, Record
from qdsweep.errors import BadInput
from qdsweep.features.rl.learners import internals
from qdsweep.features.rl.learners.policy import Lagged
from qdsweep.features.rl.learners.sb3_learner import SB3Learner
from qdsweep.features.rl.learners.steps import Stacks, in_blocks, join
from qdsweep.host.machine import require_memory

Slots = NDArray[np.int64]
_ARRAYS = ("actions", "rewards", "dones", "timeouts")
_VECTORS = ("observations", "next_observations", *_ARRAYS)

_LEAST = 1e-6  # keeps transitions without error in the draw


class Frames:
    """The frames of the latest transitions of screens, each once.

    Args:
        capacity: The largest number of transitions.
        image: (k, height, width) of an observation, a stack of k frames.
    """

    def __init__(self, capacity: int, image: tuple[int, int, int]) -> None:
        self._image = image
        # The oldest transition also needs the frames before it.
        self.frames = np.zeros((capacity + image[0] - 1, image[1] * image[2]), np.uint8)
        # Frames of a transition's stack before its newest one, in its own episode and record.
        self.earlier = np.zeros(capacity, np.int64)
        self.after: dict[int, NDArray[np.uint8]] = {}  # slot of an end -> the frame after it
        # Slot of one of the first transitions of a continued episode -> the oldest frames of its
        # stack, which belong to an earlier record.
        self.lead: dict[int, NDArray[np.uint8]] = {}
        self.added = 0  # transitions so far; number i has frame i
        self._last = -1  # the slot of the latest one

    def add(
        self,
        seen: Stacks,
        following: Stacks,
        over: NDArray[np.bool_],
        slots: Slots,
        before: int = 0,
    ) -> None:
        """Adds the transitions of a record, of which the last ones get the slots.

        Args:
            seen: The observations before them.
            following: The observations after them.
            over: ``(t,)`` whether a transition is the last of its episode.
            slots: ``(n,)`` the slots of the last n.
            before: See `Record.before`.
        """
        size, count, kept = len(self.frames), len(over), len(slots)
        first = max(count - size, 0)
        numbers = self.added + np.arange(first, count)
        self.frames[numbers % size] = seen.frames[seen.rows[first:, -1]]
        oldest = seen.rows[-kept:, 0]
        self.earlier[slots] = seen.rows[-kept:, -1] - np.maximum(oldest, before)
        for slot, row, is_over in zip(slots, following.rows[-kept:, -1], over[-kept:], strict=True):
            self.after.pop(int(slot), None)
            self.lead.pop(int(slot), None)
            if is_over:
                self.after[int(slot)] = following.frames[row].copy()
        for index in np.flatnonzero(oldest < before):
            self.lead[int(slots[index])] = seen.frames[oldest[index] : before].copy()
        self.added, self._last = self.added + count, int(slots[-1])

    def __getstate__(self) -> dict[str, Any]:
        """Returns only what is filled."""
        filled = {name: getattr(self, name)[: self.added] for name in ("frames", "earlier")}
        return {**vars(self), **filled, "capacity": len(self.earlier)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Allocates the rest again."""
        frames, earlier = state.pop("frames"), state.pop("earlier")
        Frames.__init__(self, state.pop("capacity"), state["_image"])
        vars(self).update(state)
        self.frames[: len(frames)], self.earlier[: len(earlier)] = frames, earlier

    def stacks(self, slots: Slots, ahead: int) -> NDArray[np.uint8]:
        """Returns the stacks ``(n, k, height, width)`` before transitions, or after them.

        Args:
            slots: ``(n,)`` the slots of the transitions.
            ahead: 0 for the observations before them, 1 for those after them.
        """
        most, size = self._image[0] - 1, len(self.frames)
        numbers = self.added - 1 - (self._last - slots) % len(self.earlier) + ahead
        back = np.minimum(np.arange(most, -1, -1), (self.earlier[slots] + ahead)[:, np.newaxis])
        stacks = self.frames[(numbers[:, np.newaxis] - back) % size]
        for row, slot in enumerate(slots.tolist()):
            if (lead := self.lead.get(slot)) is not None:
                stacks[row, : len(lead) - ahead] = lead[ahead:]
            if ahead and (frame := self.after.get(slot)) is not None:
                stacks[row, most] = frame
        return stacks.reshape(-1, *self._image)


class _Observations(NamedTuple):
    """The observations of `Frames` as an array of a replay buffer, by slot and environment."""

    frames: Frames
    ahead: int

    def __getitem__(self, place: Any) -> Any:
        return self.frames.stacks(place[0], self.ahead)


class NStepReplay:
    """A ring of the latest transitions of discrete actions, for n-step returns.

    Episodes are added whole, so a return never spans two of them. If the time limit has truncated
    an episode, the value of its last observation continues the return.

    Args:
        capacity: The largest number of transitions.
        inputs: Size of a recorded observation.
        outputs: Number of actions.
        n_steps: Number of rewards in a return.
        gamma: Discount of later rewards.
        image: (k, height, width) of an observation of screens, see `Actor.image`; else None.

    Raises:
        BadInput: The machine has too little memory for it.

    Attributes:
        buffer: The buffer of stable-baselines3.
        frames: The frames of screens, in place of the buffer's observations; else None.
    """

    def __init__(
        self,
        capacity: int,
        inputs: int,
        outputs: int,
        n_steps: int,
        gamma: float,
        image: tuple[int, int, int] | None = None,
    ) -> None:
        self._sizes: Any = (capacity, inputs, outputs, *([image] if image else ()))
        self._make(n_steps, gamma)

    def _make(self, n_steps: int, gamma: float, frames: Frames | None = None) -> None:
        capacity, inputs, outputs, *image = self._sizes
        asked = f"algorithm.buffer_size = {capacity}: a buffer of this many transitions"
        require_memory(((1 if image else 8) * inputs + 20) * capacity, asked)
        self._image = image[0] if image else None
        self.frames = frames or (Frames(capacity, self._image) if self._image else None)
        self.buffer: Any = NStepReplayBuffer(
            capacity,
            spaces.Box(-np.inf, np.inf, (0 if image else inputs,), np.float32),
            spaces.Discrete(outputs),
            device="cpu",
            n_steps=min(n_steps, capacity),
            gamma=gamma,
        )
        if self.frames:
            self.buffer.observations = _Observations(self.frames, 0)
            self.buffer.next_observations = _Observations(self.frames, 1)

    @property
    def size(self) -> int:
        """Number of transitions in it."""
        return int(self.buffer.size())

    def add(self, record: Record) -> Slots:
        """Adds the transitions of a record, or only the latest ones if the buffer is too small.

        Returns:
            Their slots.
        """
        buffer, capacity = self.buffer, self.buffer.buffer_size
        steps = join([record], discrete=True, image=self._image)
        observations, following = steps.observations, steps.following
        actions, rewards, over, cut = (values[-capacity:] for values in steps[2:6])
        slots = (buffer.pos + np.arange(len(rewards))) % capacity
        if self.frames:
            self.frames.add(observations, following, steps.over, slots, record.before)
        else:
            buffer.observations[slots, 0] = observations[-capacity:]
            buffer.next_observations[slots, 0] = following[-capacity:]
        buffer.actions[slots, 0, 0] = actions
        buffer.rewards[slots, 0] = rewards
        buffer.dones[slots, 0] = over
        buffer.timeouts[slots, 0] = cut
        buffer.full = buffer.full or buffer.pos + len(slots) >= capacity
        buffer.pos = (buffer.pos + len(slots)) % capacity
        return slots

    def __getstate__(self) -> dict[str, Any]:
        """Returns only the filled slots."""
        buffer, names = self.buffer, _ARRAYS if self.frames else _VECTORS
        return {
            "_sizes": self._sizes,
            "returns": (buffer.n_steps, buffer.gamma),
            "place": (buffer.pos, buffer.full),
            "filled": {name: getattr(buffer, name)[: self.size] for name in names},
            "frames": self.frames,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Allocates the empty slots again."""
        self._sizes = state["_sizes"]
        n_steps, gamma = state["returns"]
        self._make(n_steps, gamma, state.get("frames"))  # vectors have none
        self.buffer.pos, self.buffer.full = state["place"]
        for name, values in state["filled"].items():
            getattr(self.buffer, name)[: len(values)] = values


class DQNLearner(SB3Learner):
    """Learns the values of actions. The policy takes the action with the highest value.

    `gradient_steps` follow every `train_freq` decisions, which also update the target
    network, as in stable-baselines3.

    Args:
        actor: The network of the policy, which is the network of the values.
        settings: The settings of the algorithm.
        seed: The seed of the initial weights and of draws from the replay buffer.

    Raises:
        BadInput: The actions are not discrete.

    Attributes:
        replay: The transitions.
        model, steps: see `SB3Learner`.
    """

    def __init__(self, actor: Actor, settings: Any, seed: np.random.SeedSequence) -> None:
        if not actor.discrete:
            raise BadInput(
                f"algorithm {settings.name} learns the value of each action, and the actions of "
                "the domain's environment are vectors. Use ppo, a2c, impala or td3, or a domain "
                "with discrete actions"
            )
        super().__init__(actor, settings, seed)
        self._pending = 0  # decisions before their gradient steps
        self._followed = 0  # decisions with gradient steps
        sizes = settings.buffer_size, actor.inputs, actor.shapes[-1][0]
        self.replay = NStepReplay(*sizes, settings.n_steps, settings.gamma, actor.image)

    @property
    def policy(self) -> Floats:
        """The weights ``(d,)`` of the network of the values."""
        network = self.model.q_net
        return self._weights([*network.features_extractor.modules(), *network.q_net])

    def exploration(self, rows: int) -> Exploration:
        """Explores by epsilon, a probability that falls linearly and then stays constant."""
        settings = self._settings
        first, last = settings.exploration_initial_eps, settings.exploration_final_eps
        epsilon = first + (last - first) * min(self.steps / settings.exploration_steps, 1.0)
        return Exploration("epsilon", np.full((rows, 1), epsilon))

    def learn(self, episodes: list[Record]) -> None:
        """Adds episodes to the replay buffer, and trains in proportion to their steps."""
        settings = self._settings
        with self._training():
            for record in episodes:
                self._add(record)
                self._advance(len(record.rewards))
                self._pending += len(record.rewards)
            if self.steps <= settings.learning_starts:
                self._pending = 0
            while self._pending >= settings.train_freq:
                self._pending -= settings.train_freq
                self._follow(settings.train_freq)
                self._train(settings.gradient_steps)

    def change(self, settings: Any) -> None:
        """Changes the settings. N-step returns of earlier episodes get the new discount too."""
        super().change(settings)
        self.replay.buffer.gamma = settings.gamma

    def _add(self, record: Record) -> None:
        """Adds the transitions of a record to the replay buffer."""
        self.replay.add(record)

    def _follow(self, steps: int) -> None:
        """Updates the target network at every `target_update_interval`-th of the next steps."""
        settings, before = self._settings, self._followed
        self._followed += steps
        interval = settings.target_update_interval
        for _ in range(self._followed // interval - before // interval):
            network, target = self.model.q_net, self.model.q_net_target
            polyak_update(network.parameters(), target.parameters(), settings.tau)

    @property
    def _transitions(self) -> Any:
        """The replay buffer of stable-baselines3, whose samples are on the model's device."""
        buffer = self.replay.buffer
        buffer.device = self.model.device
        return buffer

    def _train(self, gradient_steps: int) -> None:
        """Makes gradient steps."""
        settings, buffer = self._settings, self._transitions
        if settings.learner_shares == 1:
            self.model.replay_buffer = buffer
            self.model.train(gradient_steps, settings.minibatch)
            return
        internals.update_learning_rate(self.model)
        for _ in range(gradient_steps):
            weights = np.ones(settings.minibatch, np.float32)
            self._fit(buffer.sample(settings.minibatch), weights)

    def _fit(self, drawn: Any, weights: NDArray[np.float32]) -> Any:
        """Makes a gradient step.

        Args:
            drawn: The n transitions, as stable-baselines3's buffer returns them.
            weights: ``(n,)`` the weights of their losses.

        Returns:
            ``(n,)`` the absolute errors before the step, as a tensor.
        """
        count, factors = len(weights), self._tensor(weights)

        def loss(rows: slice) -> tuple[Any, Any]:
            values, targets = self._values_and_targets(drawn, rows)
            losses = functional.smooth_l1_loss(values, targets, reduction="none")
            return (factors[rows] * losses).sum() / count, (values.detach() - targets).abs()

        errors = self._differentiate(count, loss)
        self._descend()
        return torch.cat(errors)

    def _values_and_targets(self, drawn: Any, rows: slice) -> tuple[Any, Any]:
        """Returns the values of the chosen actions and their targets, as tensors ``(n,)``."""
        drawn = type(drawn)(*(values[rows] for values in drawn))
        with torch.no_grad():
            later = self._values_of(drawn.next_observations)
            targets = drawn.rewards + (1 - drawn.dones) * drawn.discounts * later
        values = self.model.q_net(drawn.observations).gather(1, drawn.actions.long())
        return values[:, 0], targets[:, 0]

    def _values_of(self, observations: Any) -> Any:
        """Returns the values ``(n, 1)`` of observations, by the target network."""
        return self.model.q_net_target(observations).max(dim=1, keepdim=True).values

    def _make(self) -> Any:
        # `Replay` is the buffer, so the one that stable-baselines3 makes has one slot.
        model = self._model(SB3DQN, {"net_arch": self._hidden}, buffer_size=1)
        if not self._actor.bias:
            for network in (model.q_net, model.q_net_target):
                for name, values in network.named_parameters():
                    if name.endswith("bias"):
                        values.data.zero_()
                        values.requires_grad_(False)
        return model


class DQN(Lagged):
    """Deep Q-learning (Mnih et al. 2015).

    Args: see `RLAlgorithm`.
    """

    learner_type = DQNLearner


class Priorities:
    """The priority of each slot of a replay buffer. Slots are drawn in proportion to it.

    It is a binary tree of sums. The children of node i are 2 i and 2 i + 1, and the leaves are the
    slots. A sum is always computed from its two children and never updated by differences. So equal
    priorities give equal bits, with any history.

    Args:
        capacity: Number of slots, whose priorities are 0 at first.
    """

    def __init__(self, capacity: int) -> None:
        self._first = 1 << max(capacity - 1, 1).bit_length()
        self._sums = np.zeros(2 * self._first)

    def __getstate__(self) -> dict[str, Any]:
        """Returns only the priorities that are not 0."""
        held = np.flatnonzero(self._sums[self._first :])
        return {"first": self._first, "slots": held, "priorities": self[held]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Computes the sums again."""
        self._first = state["first"]
        self._sums = np.zeros(2 * self._first)
        self[state["slots"]] = state["priorities"]

    def __getitem__(self, slots: Slots) -> Floats:
        """Returns the priorities of slots."""
        return self._sums[self._first + slots]

    def __setitem__(self, slots: Slots, priorities: Floats) -> None:
        """Sets the priorities of slots. If a slot is given twice, the last priority counts."""
        nodes = self._first + slots
        self._sums[nodes] = priorities
        while len(nodes) and nodes[0] > 1:
            nodes = np.unique(nodes // 2)
            self._sums[nodes] = self._sums[2 * nodes] + self._sums[2 * nodes + 1]

    def draw(self, uniform: Floats) -> Slots:
        """Draws slots, one from each of n equal parts of the sum of all priorities.

        Args:
            uniform: ``(n,)`` random numbers in [0, 1), the position in each part.
        """
        count = len(uniform)
        sums = (np.arange(count) + uniform) * (self._sums[1] / count)
        nodes = np.ones(count, dtype=np.int64)
        while nodes[0] < self._first:
            left = self._sums[2 * nodes]
            # Takes the other half where rounding would lead into an empty one.
            right = (sums >= left) & (self._sums[2 * nodes + 1] > 0)
            sums = np.where(right, sums - left, sums)
            nodes = 2 * nodes + right
        return nodes - self._first


class ApexDQNLearner(DQNLearner):
    """Double Q-learning from n-step returns, drawn in proportion to their errors.

    The learner computes the error of new transitions for their priority, so actors need no target
    network.

    Args: see `DQNLearner`.

    Attributes:
        priorities: The priority of each transition in the replay buffer.
        model, replay, steps: see `DQNLearner`.
    """

    def __init__(self, actor: Actor, settings: Any, seed: np.random.SeedSequence) -> None:
        super().__init__(actor, settings, seed)
        self.priorities = Priorities(settings.buffer_size)

    def exploration(self, rows: int) -> Exploration:
        """Explores by epsilon, with the probability eps^(1 + alpha i / (N - 1)) in row i of N."""
        exponents = 1 + self._settings.eps_alpha * np.arange(rows) / max(rows - 1, 1)
        return Exploration("epsilon", (self._settings.eps**exponents)[:, None])

    def _add(self, record: Record) -> None:
        slots = self.replay.add(record)
        for part in in_blocks(slots, bool(self._actor.image)):
            drawn = internals.transitions(self._transitions, part)
            pairs = self._in_shares(len(part), partial(self._values_and_targets, drawn))
            self._prioritise(part, torch.cat([(one - other).abs() for one, other in pairs]))

    def _train(self, gradient_steps: int) -> None:
        settings = self._settings
        internals.update_learning_rate(self.model)
        for _ in range(gradient_steps):
            slots = self.priorities.draw(np.random.random_sample(settings.minibatch))
            weights = self.priorities[slots] ** -settings.importance_exponent
            drawn = internals.transitions(self._transitions, slots)
            self._prioritise(slots, self._fit(drawn, (weights / weights.max()).astype(np.float32)))

    def _values_of(self, observations: Any) -> Any:
        """Returns values ``(n, 1)``: the network chooses, the target network evaluates."""
        best = self.model.q_net(observations).argmax(dim=1, keepdim=True)
        return self.model.q_net_target(observations).gather(1, best)

    def _prioritise(self, slots: Slots, errors: Any) -> None:
        errors = arrays(errors).astype(np.float64)
        self.priorities[slots] = (errors + _LEAST) ** self._settings.priority_exponent


class ApexDQN(Lagged):
    """Distributed prioritised experience replay (Horgan et al. 2018), synchronous with its actors.

    Args: see `RLAlgorithm`.
    """

    learner_type = ApexDQNLearner
