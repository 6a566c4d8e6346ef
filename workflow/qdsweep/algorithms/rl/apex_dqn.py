"""Ape-X DQN without the race: prioritised replay, and rows that explore each in its own way."""

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from qdsweep.algorithms.rl.base import Lagged
from qdsweep.algorithms.rl.dqn import DQNLearner
from qdsweep.algorithms.rl.priorities import Priorities
from qdsweep.algorithms.rl.replay import Slots
from qdsweep.domains.base import Actor, Exploration, Record

_LEAST = 1e-6  # the priority of a transition without any error, so that it is still drawn


class ApexDQNLearner(DQNLearner):
    """Double Q-learning from n-step returns, which are drawn by how much was wrong with them.

    New transitions have the priority of their error as the learner sees it, so that actors need no
    target network.

    Args: see `DQNLearner`.

    Attributes:
        priorities: The priority of each transition in the replay buffer.
        model, replay, steps: see `DQNLearner`.
    """

    def __init__(self, actor: Actor, settings: Any, seed: np.random.SeedSequence) -> None:
        super().__init__(actor, settings, seed)
        self.priorities = Priorities(settings.buffer_size)

    def exploration(self, rows: int) -> Exploration:
        """Row i of N takes a random action with the probability eps^(1 + alpha i / (N - 1))."""
        exponents = 1 + self._settings.eps_alpha * np.arange(rows) / max(rows - 1, 1)
        return Exploration("epsilon", (self._settings.eps**exponents)[:, None])

    def _add(self, record: Record) -> None:
        slots = self.replay.add(record)
        with torch.no_grad():
            values, targets = self._values_and_targets(slots)
        self._prioritise(slots, values, targets)

    def _train(self, gradient_steps: int) -> None:
        settings = self._settings
        self.model._update_learning_rate(self.model.policy.optimizer)
        for _ in range(gradient_steps):
            slots = self.priorities.draw(np.random.random_sample(settings.minibatch))
            weights = self.priorities[slots] ** -settings.importance_exponent
            values, targets = self._values_and_targets(slots)
            errors = functional.smooth_l1_loss(values, targets, reduction="none")
            loss = (torch.from_numpy((weights / weights.max()).astype(np.float32)) * errors).mean()
            self._descend(loss)
            self._prioritise(slots, values, targets)

    def _values_and_targets(self, slots: Slots) -> tuple[Any, Any]:
        """Returns, as tensors ``(n,)``, the values of what was done and what they should be."""
        network, target = self.model.q_net, self.model.q_net_target
        drawn = self.replay.buffer._get_samples(slots)
        with torch.no_grad():  # the network says what is best, the target network what it is worth
            best = network(drawn.next_observations).argmax(dim=1, keepdim=True)
            later = target(drawn.next_observations).gather(1, best)
            targets = drawn.rewards + (1 - drawn.dones) * drawn.discounts * later
        values = network(drawn.observations).gather(1, drawn.actions.long())
        return values[:, 0], targets[:, 0]

    def _prioritise(self, slots: Slots, values: Any, targets: Any) -> None:
        errors = (values.detach() - targets).abs().numpy().astype(np.float64)
        self.priorities[slots] = (errors + _LEAST) ** self._settings.priority_exponent


class ApexDQN(Lagged):
    """Distributed prioritised experience replay (Horgan et al. 2018), in step with its actors.

    Args: see `RLAlgorithm`.
    """

    learner_type = ApexDQNLearner
