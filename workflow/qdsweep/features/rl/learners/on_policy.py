"""stable-baselines3's PPO and A2C, with whole episodes in their rollout buffers."""

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.buffers import RolloutBuffer

from qdsweep.algorithms.base import Candidates
from qdsweep.algorithms.pytorch import arrays
from qdsweep.domains.base import Actor, Evaluation, Exploration, Floats, Record
from qdsweep.domains.policies import count_parameters, layer_shapes
from qdsweep.errors import BadInput
from qdsweep.features.rl.learners.policy import RLAlgorithm
from qdsweep.features.rl.learners.sb3_learner import SB3Learner
from qdsweep.features.rl.learners.steps import Stacks, Steps
from qdsweep.host.machine import require_memory

_KINDS: dict[str, Any] = {"ppo": PPO, "a2c": A2C, "impala": A2C}


class _Rollout(RolloutBuffer):
    """A rollout buffer whose observations may be `Stacks`.

    Attributes:
        minibatch: Transitions of A2C's gradient step; None for all.
    """

    minibatch: int | None

    def get(self, batch_size: int | None = None) -> Any:
        """Yields minibatches. stable-baselines3's A2C asks for all transitions at once."""
        for batch in super().get(batch_size or self.minibatch):
            # The deviation of a single advantage is NaN.
            if batch_size or len(batch.advantages) > 1 or self.buffer_size == 1:
                yield batch

    @staticmethod
    def swap_and_flatten(arr: Any) -> Any:
        return arr if isinstance(arr, Stacks) else RolloutBuffer.swap_and_flatten(arr)


class OnPolicyLearner(SB3Learner):
    """PPO (Schulman et al. 2017) or A2C (Mnih et al. 2016), as stable-baselines3 trains them.

    Policy and value function are separate networks, with stable-baselines3's initial weights. On
    screens they share the layers before `vf_hidden`, as in its CnnPolicy.
    Discrete actions are drawn from softmax(output). For continuous actions the outputs are the
    means of normal distributions with learnt deviations. The domain squashes a draw into the
    bounds, while stable-baselines3 clips it.

    Args:
        actor: The network of the policy.
        settings: The settings of the algorithm.
        seed: The seed of the initial weights and of the order of the transitions.

    Raises:
        BadInput: The actions are discrete, and the settings have a deviation for them.

    Attributes: see `SB3Learner`.
    """

    def __init__(self, actor: Actor, settings: Any, seed: np.random.SeedSequence) -> None:
        if actor.discrete and settings.log_std_init != 0:
            raise BadInput(
                f"algorithm.log_std_init = {settings.log_std_init} has no effect, but would make "
                "a new run: the domain's actions are discrete. Leave it out, or set its default, 0"
            )
        super().__init__(actor, settings, seed)

    @property
    def policy(self) -> Floats:
        """The weights ``(d,)`` of the policy's network, in the layout of the domain's policies."""
        policy = self.model.policy
        hidden = [*policy.features_extractor.modules(), *policy.mlp_extractor.policy_net]
        return self._weights([*hidden, policy.action_net])

    def exploration(self, rows: int) -> Exploration:
        """Draws actions from the policy's distribution."""
        if self._actor.discrete:
            return Exploration("softmax", np.ones((rows, 1)))
        deviations = np.exp(arrays(self.model.policy.log_std).astype(np.float64))
        return Exploration("gaussian", np.tile(deviations, (rows, 1)))

    def learn(self, episodes: list[Record]) -> None:
        """Trains on episodes of the current policy, in their order."""
        if not episodes:
            return
        buffer = self._buffer(episodes)
        self._advance(buffer.buffer_size)
        self.model.rollout_buffer = buffer
        # A2C would divide a single advantage by NaN.
        normalize = self._settings.normalize_advantage and buffer.buffer_size > 1
        self.model.normalize_advantage = normalize
        with self._training():
            self.model.train()
        self.model.rollout_buffer = None

    def _evaluate(self, steps: Steps) -> tuple[Any, Any, Any]:
        """Returns values, logarithms of the actions' probabilities and entropies, each ``(t,)``."""
        values, log_probs, entropy = self.model.policy.evaluate_actions(
            torch.from_numpy(steps.observations), torch.from_numpy(steps.actions)
        )
        return values[:, 0], log_probs, entropy

    def _make(self) -> Any:
        hidden = self._settings.vf_hidden
        shapes = layer_shapes([self._features, *hidden, 1])
        # The memory holds weights, their gradient, and at least one moment of the optimiser.
        asked = f"algorithm.vf_hidden = {hidden}: a network of such layers"
        require_memory(12 * count_parameters(shapes, bias=True), asked)
        network = {
            "net_arch": {"pi": self._hidden, "vf": hidden},
            "log_std_init": self._settings.log_std_init,
            "ortho_init": self._settings.ortho_init,
        }
        # Episodes fill a buffer of their own, so the one that stable-baselines3 makes has one slot.
        model = self._model(_KINDS[self._settings.type], network, n_steps=1)
        if not self._actor.bias:  # the bias stays zero
            model.policy.action_net.bias.requires_grad_(False)
        return model

    def _buffer(self, episodes: list[Record]) -> Any:
        """Returns a full rollout buffer, as if one environment had played all episodes."""
        steps, model, length = self._join(episodes), self.model, self._settings.return_steps
        count, rewards, cut = len(steps.rewards), steps.rewards.copy(), steps.cut
        over = steps.over
        with torch.no_grad():
            blocks = [self._evaluate(block) for block in steps.blocks()]
            values, log_probs = (torch.cat([block[n] for block in blocks]).numpy() for n in (0, 1))
            if cut.any():  # the value of the next observation replaces the missing rewards
                following = model.policy.predict_values(torch.from_numpy(steps.following[cut]))
                rewards[cut] += model.gamma * following.numpy().ravel()
        if length:  # the value of the next step, which the episode has, replaces further rewards
            ends = np.flatnonzero(~over & (steps.position % length == length - 1))
            rewards[ends] += model.gamma * values[ends + 1]
            over = over.copy()
            over[ends] = True
        buffer: Any = _Rollout(
            count,
            spaces.Box(0, 1, (1,)),  # for an array that is replaced
            model.action_space,
            device="cpu",
            gae_lambda=model.gae_lambda,
            gamma=model.gamma,
        )
        buffer.minibatch = self._settings.minibatch
        seen = steps.observations
        buffer.observations = seen if isinstance(seen, Stacks) else seen[:, np.newaxis]
        buffer.actions[:] = steps.actions.reshape(count, 1, -1)
        buffer.rewards[:, 0] = rewards
        buffer.episode_starts[:, 0] = np.concatenate([[1], over[:-1]])
        buffer.values[:, 0] = values
        buffer.log_probs[:, 0] = log_probs
        buffer.pos, buffer.full = count, True
        buffer.compute_returns_and_advantage(torch.zeros(1), np.ones(1))
        return buffer


class OnPolicyAlgorithm(RLAlgorithm):
    """Learns after the last batch of an iteration, before the next one explores.

    Args: see `RLAlgorithm`.
    """

    learner_type = OnPolicyLearner

    def tell(self, candidates: Candidates, evaluation: Evaluation) -> None:
        """Handles a batch, and learns after the last one."""
        super().tell(candidates, evaluation)
        if self.is_over:
            self.learn()
