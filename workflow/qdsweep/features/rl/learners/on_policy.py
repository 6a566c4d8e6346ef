"""stable-baselines3's PPO and A2C, with whole episodes in their rollout buffers."""

import copy
from functools import partial
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.buffers import RolloutBuffer

from qdsweep.algorithms.base import Candidates
from qdsweep.algorithms.pytorch import arrays
from qdsweep.domains.base import Actor, Evaluation, Exploration, Floats, Record
from qdsweep.domains.policies import count_parameters, layer_shapes
from qdsweep.errors import BadInput
from qdsweep.features.rl.learners import internals
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
            if self._settings.learner_shares == 1:
                self.model.train()
            else:
                self._train()
        self.model.rollout_buffer = None

    def _train(self) -> None:
        """Trains as `train()` of stable-baselines3's PPO and A2C, with gradients in shares."""
        model, settings = self.model, self._settings
        internals.update_learning_rate(model)
        is_ppo = isinstance(model, PPO)
        for _ in range(settings.n_epochs if is_ppo else 1):
            for batch in model.rollout_buffer.get(settings.minibatch if is_ppo else None):
                advantages = batch.advantages
                if model.normalize_advantage and len(advantages) > 1:
                    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
                loss = partial(self._loss, batch._replace(advantages=advantages))
                divergence = sum(self._differentiate(len(advantages), loss)) / len(advantages)
                if is_ppo and settings.target_kl and divergence > 1.5 * settings.target_kl:
                    return
                self._descend()

    def _loss(self, batch: Any, rows: slice) -> tuple[Any, Any]:
        """Returns the part of some rows in the mean loss of a minibatch of PPO or A2C.

        Args:
            batch: The minibatch, as stable-baselines3's buffer yields it.
            rows: The rows.

        Returns:
            The loss, and the sum of the divergences of the old policy from the new one [nats], as
            tensors.
        """
        model, count = self.model, len(batch.returns)
        batch = type(batch)(*(values[rows] for values in batch))
        actions = batch.actions.long().flatten() if self._actor.discrete else batch.actions
        values, log_probs, entropy = self._evaluate(batch.observations, actions)
        log_ratios = log_probs - batch.old_log_prob
        if isinstance(model, PPO):
            clip_range, clip_range_vf = internals.clip_ranges(model)
            ratios = log_ratios.exp()
            clipped = ratios.clamp(1 - clip_range, 1 + clip_range)
            gains = torch.min(batch.advantages * ratios, batch.advantages * clipped)
            if clip_range_vf is not None:
                change = (values - batch.old_values).clamp(-clip_range_vf, clip_range_vf)
                values = batch.old_values + change
        else:
            gains = batch.advantages * log_probs
        errors = (batch.returns - values).square()
        with torch.no_grad():
            divergence = (log_ratios.exp() - 1 - log_ratios).sum()
        return self._add(gains, errors, entropy, count), divergence

    def _add(self, gains: Any, errors: Any, entropies: Any, count: int) -> Any:
        """Returns the part of some rows in the mean loss of a minibatch of `count` rows."""
        gain, error, entropy = (values.sum() / count for values in (gains, errors, entropies))
        settings = self._settings
        return settings.vf_coef * error - gain - settings.ent_coef * entropy

    def _evaluate(self, observations: Any, actions: Any) -> tuple[Any, Any, Any]:
        """Returns values, logarithms of the actions' probabilities and entropies, each ``(t,)``.

        Threads may call it: each call has its own object of the policy, because
        stable-baselines3's keeps the distribution of its latest call.

        Args:
            observations: ``(t, ...)`` tensor.
            actions: ``(t,)`` or ``(t, a)`` tensor.
        """
        policy = copy.copy(self.model.policy)
        policy.action_dist = copy.copy(policy.action_dist)
        values, log_probs, entropy = policy.evaluate_actions(observations, actions)
        return values[:, 0], log_probs, entropy

    def _evaluate_all(self, steps: Steps) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Returns values and logarithms of the actions' probabilities, each ``(t,)``."""

        def call(block: Steps, rows: slice) -> tuple[Any, Any, Any]:
            seen, actions = block.observations[rows], block.actions[rows]
            return self._evaluate(self._tensor(seen), self._tensor(actions))

        parts: list[Any] = []
        for block in steps.blocks():
            parts += self._in_shares(len(block.rewards), partial(call, block))
        values, log_probs = (arrays(torch.cat([part[n] for part in parts])) for n in (0, 1))
        return values, log_probs

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
        over, values, log_probs = steps.over, *self._evaluate_all(steps)
        if cut.any():  # the value of the next observation replaces the missing rewards
            with torch.no_grad():
                following = model.policy.predict_values(self._tensor(steps.following[cut]))
            rewards[cut] += model.gamma * arrays(following).ravel()
        if length:  # the value of the next step, which the episode has, replaces further rewards
            ends = np.flatnonzero(~over & (steps.position % length == length - 1))
            rewards[ends] += model.gamma * values[ends + 1]
            over = over.copy()
            over[ends] = True
        buffer: Any = _Rollout(
            count,
            spaces.Box(0, 1, (1,)),  # for an array that is replaced
            model.action_space,
            device=model.device,
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
