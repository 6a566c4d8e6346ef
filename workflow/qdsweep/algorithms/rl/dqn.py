"""stable-baselines3's DQN, which learns from the iteration before while the next one is played."""

from typing import Any

import numpy as np
from stable_baselines3 import DQN as SB3DQN
from stable_baselines3.common.utils import polyak_update

from qdsweep.algorithms.rl.base import Lagged
from qdsweep.algorithms.rl.learner import SB3Learner
from qdsweep.algorithms.rl.replay import Replay
from qdsweep.domains.base import Actor, Exploration, Floats, Record
from qdsweep.errors import BadInput


class DQNLearner(SB3Learner):
    """Learns the values of actions: the policy takes the best one.

    `gradient_steps` follow every `train_freq` environment steps, and the target network follows
    while these go by, as in stable-baselines3.

    Args:
        actor: The network of the policy, which is that of the values.
        settings: Those of the algorithm.
        seed: Of the first weights and of what is drawn from the replay buffer.

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
                "the domain's environment are vectors; take ppo, a2c, impala or td3, or a domain "
                "with discrete actions"
            )
        super().__init__(actor, settings, seed)
        self._pending = 0  # environment steps that no gradient steps have followed
        self._followed = 0  # those that some have
        inputs, outputs = actor.shapes[0][1], actor.shapes[-1][0]
        self.replay = Replay(
            settings.buffer_size, inputs, outputs, settings.n_steps, settings.gamma
        )

    @property
    def policy(self) -> Floats:
        """The weights ``(d,)`` of the network of the values."""
        return self._weights(self.model.q_net.q_net)

    def exploration(self, rows: int) -> Exploration:
        """Takes a random action with a probability that falls linearly, then stays."""
        settings = self._settings
        first, last = settings.exploration_initial_eps, settings.exploration_final_eps
        epsilon = first + (last - first) * min(self.steps / settings.exploration_steps, 1.0)
        return Exploration("epsilon", np.full((rows, 1), epsilon))

    def learn(self, episodes: list[Record]) -> None:
        """Adds episodes to the replay buffer, and trains in proportion to their steps."""
        settings = self._settings
        with self._generators.used():
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
        """Takes other settings; n-step returns of earlier episodes have the new discount too."""
        super().change(settings)
        self.replay.buffer.gamma = settings.gamma

    def _add(self, record: Record) -> None:
        """Adds the transitions of a record to the replay buffer."""
        self.replay.add(record)

    def _follow(self, steps: int) -> None:
        """Moves the target network at every `target_update_interval`-th of the next steps."""
        settings, before = self._settings, self._followed
        self._followed += steps
        interval = settings.target_update_interval
        for _ in range(self._followed // interval - before // interval):
            network, target = self.model.q_net, self.model.q_net_target
            polyak_update(network.parameters(), target.parameters(), settings.tau)

    def _train(self, gradient_steps: int) -> None:
        """Makes gradient steps."""
        self.model.replay_buffer = self.replay.buffer
        self.model.train(gradient_steps, self._settings.minibatch)

    def _make(self) -> Any:
        # Ours is the replay buffer: stable-baselines3's own has room for nothing.
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
