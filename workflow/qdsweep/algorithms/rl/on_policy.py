"""stable-baselines3's PPO and A2C, whose rollout buffers are filled with whole episodes."""

import copy
import inspect
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.utils import LinearSchedule

from qdsweep.algorithms.base import Candidates
from qdsweep.algorithms.rl.base import RLAlgorithm
from qdsweep.algorithms.rl.state import Generators, arrays, tensors
from qdsweep.config import rl as config
from qdsweep.domains.base import CUT, GOES_ON, Actor, Evaluation, Exploration, Floats, Record

_KINDS: dict[str, Any] = {"ppo": PPO, "a2c": A2C}
_ACTIVATIONS = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}
# Our names of arguments that have another one there.
_THEIRS = {"minibatch": "batch_size"}
_FALLING = ("learning_rate", "clip_range")


class OnPolicy(RLAlgorithm):
    """Learns as soon as an iteration's last batch is told, so the next one explores with it.

    Args: see `RLAlgorithm`.
    """

    def make_learner(self, actor: Actor, seed: np.random.SeedSequence) -> "OnPolicyLearner":
        """Makes stable-baselines3's learner."""
        return OnPolicyLearner(actor, self.settings, seed)

    def tell(self, candidates: Candidates, evaluation: Evaluation) -> None:
        """Learns, besides."""
        super().tell(candidates, evaluation)
        if self.is_over:
            self.learn()


class OnPolicyLearner:
    """PPO (Schulman et al. 2017) or A2C (Mnih et al. 2016), as stable-baselines3 trains them.

    Policy and value function are networks of their own, with stable-baselines3's first weights.
    Discrete actions are drawn from softmax(output). Of continuous ones the outputs are the means of
    normal distributions whose deviations are learnt; what is drawn is the action here, and the
    domain squashes it into the bounds (stable-baselines3 cuts it there).

    Args:
        actor: The network of the policy.
        settings: Those of the algorithm.
        seed: Of the first weights and of the order of the transitions.

    Attributes:
        model: stable-baselines3's algorithm, without environments.
        steps: Environment steps that it has learnt from.
    """

    def __init__(
        self, actor: Actor, settings: config.PPO | config.A2C, seed: np.random.SeedSequence
    ) -> None:
        self.steps = 0
        self._actor, self._settings = actor, settings
        self._generators = Generators(seed)
        with self._generators.used():
            self.model = self._make()

    @property
    def policy(self) -> Floats:
        """The weights ``(d,)`` of the policy's network, in the layout of the domain's policies."""
        hidden = self.model.policy.mlp_extractor.policy_net
        layers = [layer for layer in hidden if isinstance(layer, torch.nn.Linear)]
        parts = []
        for layer in (*layers, self.model.policy.action_net):
            parts += [layer.weight, layer.bias][: 1 + self._actor.bias]
        return np.concatenate([arrays(part).ravel() for part in parts]).astype(np.float64)

    def exploration(self, rows: int) -> Exploration:
        """Draws actions from the policy's distribution."""
        if self._actor.discrete:
            return Exploration("softmax", np.ones((rows, 1)))
        deviations = np.exp(arrays(self.model.policy.log_std).astype(np.float64))
        return Exploration("gaussian", np.tile(deviations, (rows, 1)))

    def learn(self, episodes: list[Record]) -> None:
        """Trains on episodes of the policy of now, in their order; without any it stays."""
        if not episodes:
            return
        buffer = self._buffer(episodes)
        self.steps += buffer.buffer_size
        decay = self._settings.decay_steps
        # What stable-baselines3's schedules are functions of.
        self.model._current_progress_remaining = max(1 - self.steps / decay, 0.0) if decay else 1.0
        self.model.rollout_buffer = buffer
        with self._generators.used():
            self.model.train()
        self.model.rollout_buffer = None

    def change(self, settings: config.PPO | config.A2C) -> None:
        """Takes other settings, and goes on with the same weights and optimiser."""
        self.__setstate__({**self.__getstate__(), "_settings": settings})

    def __getstate__(self) -> dict[str, Any]:
        """Arrays for stable-baselines3's algorithm, of which all else follows from the settings."""
        policy = self.model.policy
        states = arrays([policy.state_dict(), policy.optimizer.state_dict()])
        return {**vars(self), "model": states}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Makes stable-baselines3's algorithm anew and gives it the arrays."""
        vars(self).update(state)
        weights, optimizer = tensors(state["model"])
        with copy.copy(self._generators).used():
            self.model = self._make()
        self.model.policy.load_state_dict(weights)
        self.model.policy.optimizer.load_state_dict(optimizer)

    def _make(self) -> Any:
        """Returns stable-baselines3's algorithm, without environments; it draws its weights."""
        settings, actor = self._settings, self._actor
        kind = _KINDS[settings.type]
        named = {_THEIRS.get(name, name): value for name, value in settings.model_dump().items()}
        theirs = {key: named[key] for key in named.keys() & inspect.signature(kind).parameters}
        if settings.decay_steps:
            for key in _FALLING & theirs.keys():
                theirs[key] = LinearSchedule(theirs[key], 0.0, 1.0)
        hidden = [outputs for outputs, _ in actor.shapes[:-1]]
        network = {
            "net_arch": {"pi": hidden, "vf": settings.vf_hidden},
            "activation_fn": _ACTIVATIONS[actor.activation],
            "log_std_init": settings.log_std_init,
        }
        model: Any = kind(
            "MlpPolicy",
            None,
            policy_kwargs=network,
            device="cpu",
            _init_setup_model=False,
            **theirs,
        )
        # As its own `load` does without an environment.
        outputs, inputs = actor.shapes[-1][0], actor.shapes[0][1]
        model.observation_space = spaces.Box(-np.inf, np.inf, (inputs,), np.float32)
        model.action_space = (
            spaces.Discrete(outputs)
            if actor.discrete
            else spaces.Box(-np.inf, np.inf, (outputs,), np.float32)
        )
        model.n_envs = 1
        model._setup_model()
        model.set_logger(Logger(None, []))
        if not actor.bias:  # zero at first, so for ever
            model.policy.action_net.bias.requires_grad_(False)
        return model

    def _buffer(self, episodes: list[Record]) -> Any:
        """Returns a full rollout buffer, in which one environment has played all episodes."""
        observations, actions, rewards, ends = map(np.concatenate, zip(*episodes, strict=True))
        over = ends != GOES_ON
        # There is one observation more than steps of each episode that has ended by then.
        before = np.arange(len(ends)) + np.cumsum(over) - over
        cut = np.flatnonzero(ends == CUT)
        if self._actor.discrete:
            actions = actions.argmax(axis=1)
        model = self.model
        with torch.no_grad():
            found = model.policy.evaluate_actions(
                torch.from_numpy(observations[before]), torch.from_numpy(actions)
            )
            values, log_probs = found[0].numpy().ravel(), found[1].numpy()
            if len(cut):  # a time limit is no end: what would have followed has a value
                following = model.policy.predict_values(
                    torch.from_numpy(observations[before[cut] + 1])
                )
                rewards[cut] += model.gamma * following.numpy().ravel()
        buffer: Any = RolloutBuffer(
            len(ends),
            model.observation_space,
            model.action_space,
            device="cpu",
            gae_lambda=model.gae_lambda,
            gamma=model.gamma,
        )
        buffer.observations[:, 0] = observations[before]
        buffer.actions[:] = actions.reshape(len(ends), -1)[:, None]
        buffer.rewards[:, 0] = rewards
        buffer.episode_starts[:, 0] = np.concatenate([[1], over[:-1]])
        buffer.values[:, 0] = values
        buffer.log_probs[:, 0] = log_probs
        buffer.pos, buffer.full = len(ends), True
        buffer.compute_returns_and_advantage(torch.zeros(1), np.ones(1))
        return buffer
