"""The base class of learners from stable-baselines3, without its environments.

A reload file has the states of a learner's generators, and arrays in place of torch's tensors.
"""

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.utils import LinearSchedule

from qdsweep.algorithms.pytorch import arrays, is_finite, tensors
from qdsweep.algorithms.pytorch.shares import add_gradients, cut_shares
from qdsweep.domains.base import Actor, Floats, Record
from qdsweep.errors import QdsweepError
from qdsweep.features.rl.learners import internals
from qdsweep.features.rl.learners.steps import Steps, join
from qdsweep.host.threads import in_order

_Result = TypeVar("_Result")
ACTIVATIONS = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}
# qdsweep's name of an argument -> that of stable-baselines3.
_THEIRS = {"minibatch": "batch_size"}
_FALLING = ("learning_rate", "clip_range")


class Generators:
    """A learner's states of the global generators of numpy and torch.

    stable-baselines3 draws from these generators.

    Args:
        seed: The seed of both.
    """

    def __init__(self, seed: np.random.SeedSequence) -> None:
        for_numpy, for_torch = seed.spawn(2)
        self._numpy: Any = np.random.RandomState(np.random.MT19937(for_numpy)).get_state()
        generator = torch.Generator().manual_seed(int(for_torch.generate_state(1)[0]))
        self._torch = generator.get_state().numpy()

    @contextmanager
    def used(self) -> Iterator[None]:
        """Sets the global generators to these states in a `with` block, and restores them after."""
        global_states = np.random.get_state(), torch.get_rng_state()
        np.random.set_state(self._numpy)
        torch.set_rng_state(torch.from_numpy(self._torch))
        try:
            yield
        finally:
            self._numpy, self._torch = np.random.get_state(), torch.get_rng_state().numpy()
            np.random.set_state(global_states[0])
            torch.set_rng_state(global_states[1])


class Convolutions(BaseFeaturesExtractor):
    """The layers of a network of screens before its outputs, as stable-baselines3's NatureCNN.

    Args:
        observation_space: The space of the stacks of frames.
        actor: The network.
    """

    def __init__(self, observation_space: spaces.Box, actor: Actor) -> None:
        units, inputs = actor.shapes[0]
        super().__init__(observation_space, units)
        layers: list[torch.nn.Module] = []
        channels = observation_space.shape[0]
        for filters, kernel, stride in actor.convolutions:
            layers += [torch.nn.Conv2d(channels, filters, kernel, stride), torch.nn.ReLU()]
            channels = filters
        self.cnn = torch.nn.Sequential(*layers, torch.nn.Flatten())
        self.linear = torch.nn.Sequential(torch.nn.Linear(inputs, units), torch.nn.ReLU())

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """Returns the features ``(n, units)`` of stacks from 0 to 1."""
        features: torch.Tensor = self.linear(self.cnn(observations))
        return features


# With checks, torch would end a step of a diverged network in an error without the cause.
torch.distributions.Distribution.set_default_validate_args(False)


class SB3Learner(ABC):
    """A `qdsweep.features.rl.learners.policy.Learner` around an algorithm of stable-baselines3.

    Args:
        actor: The network of the policy.
        settings: The settings of the experiment's algorithm.
        seed: The seed of the initial weights and of training.

    Attributes:
        model: stable-baselines3's algorithm, without environments.
        steps: Decisions of its training data so far.
    """

    def __init__(self, actor: Actor, settings: Any, seed: np.random.SeedSequence) -> None:
        self.steps = 0
        self._actor, self._settings = actor, settings
        self._generators = Generators(seed)
        with self._generators.used():
            self.model = self._make()

    @abstractmethod
    def _make(self) -> Any:
        """Returns stable-baselines3's algorithm with random weights. See `_model`."""

    @property
    def _hidden(self) -> list[int]:
        """Sizes of the policy's hidden layers, which of screens follow the features."""
        return [outputs for outputs, _ in self._actor.shapes[bool(self._actor.image) : -1]]

    @property
    def _features(self) -> int:
        """Number of inputs of these layers."""
        actor = self._actor
        return actor.shapes[0][0] if actor.image else actor.inputs

    @property
    def _observations(self) -> spaces.Box:
        """The space of observations."""
        if self._actor.image:
            return spaces.Box(0, 255, self._actor.image, np.uint8)
        return spaces.Box(-np.inf, np.inf, (self._actor.inputs,), np.float32)

    def _model(self, kind: Any, network: dict[str, Any], **further: Any) -> Any:
        """Returns an algorithm of stable-baselines3.

        Args:
            kind: Its class. A setting with the name of an argument is passed to it.
            network: The arguments of its networks.
            further: Further arguments, which are not settings.
        """
        settings, actor = self._settings, self._actor
        named = {_THEIRS.get(name, name): value for name, value in settings.model_dump().items()}
        arguments = {key: named[key] for key in named.keys() & inspect.signature(kind).parameters}
        if settings.decay_steps:
            for key in _FALLING & arguments.keys():
                arguments[key] = LinearSchedule(arguments[key], 0.0, 1.0)
        network = {**network, "activation_fn": ACTIVATIONS[actor.activation]}
        if actor.image:
            network["features_extractor_class"] = Convolutions
            network["features_extractor_kwargs"] = {"actor": actor}
        outputs = actor.shapes[-1][0]
        actions: spaces.Space[Any] = (
            spaces.Discrete(outputs)
            if actor.discrete
            else spaces.Box(-np.inf, np.inf, (outputs,), np.float32)
        )
        model = internals.build(
            kind,
            "CnnPolicy" if actor.image else "MlpPolicy",
            self._observations,
            actions,
            policy_kwargs=network,
            **{**arguments, **further},
        )
        model.set_logger(Logger(None, []))
        return model

    def _join(self, episodes: list[Record]) -> Steps:
        """Returns the steps of episodes, in their order."""
        return join(episodes, discrete=self._actor.discrete, image=self._actor.image)

    def _tensor(self, values: NDArray[Any]) -> torch.Tensor:
        """Returns an array as a tensor on the model's device."""
        return torch.from_numpy(values).to(self.model.device)

    def _weights(self, layers: Iterable[Any]) -> Floats:
        """Returns the weights ``(d,)`` of layers, in the layout of the domain's policies.

        Networks of screens are large, and stay in torch's single precision.

        Raises:
            QdsweepError: Training has diverged.
        """
        parts = []
        for layer in layers:
            if isinstance(layer, torch.nn.Linear | torch.nn.Conv2d):
                parts += [layer.weight, layer.bias][: 1 + self._actor.bias]
        weights = np.concatenate([arrays(part).ravel() for part in parts])
        if not np.isfinite(weights).all():
            raise self._diverged("weights of its policy are")
        return weights if self._actor.image else weights.astype(np.float64)

    def _advance(self, steps: int) -> None:
        """Counts decisions, which stable-baselines3's schedules depend on."""
        self.steps += steps
        decay = self._settings.decay_steps
        internals.set_remaining(self.model, max(1 - self.steps / decay, 0.0) if decay else 1.0)

    @contextmanager
    def _training(self) -> Iterator[None]:
        """Uses the learner's generators in a `with` block, and refuses what changes no weight.

        stable-baselines3 divides a gradient by its norm, or an optimiser by the root of its mean
        square. If that is infinite in single precision, the step is 0.

        Raises:
            QdsweepError: Training has diverged.
        """
        clip = torch.nn.utils.clip_grad_norm_

        def clip_finite(*given: Any, **further: Any) -> torch.Tensor:
            norm = clip(*given, **further)
            if not torch.isfinite(norm):
                raise self._diverged("the norm of its gradient is")
            return norm

        torch.nn.utils.clip_grad_norm_ = clip_finite
        try:
            with self._generators.used():
                yield
        finally:
            torch.nn.utils.clip_grad_norm_ = clip
        if not is_finite(self.model.policy.optimizer):
            raise self._diverged("means of its squared gradients are")

    def _diverged(self, what: str) -> QdsweepError:
        return QdsweepError(
            f"algorithm {self._settings.name} has diverged: {what} infinite or NaN. Usual causes: "
            "a high learning_rate or huge rewards"
        )

    def _differentiate(
        self, count: int, loss: Callable[[slice], tuple[Any, _Result]]
    ) -> list[_Result]:
        """Computes the gradient of a minibatch, in the settings' number of shares.

        Args:
            count: Rows of the minibatch, or its groups of rows that belong together.
            loss: Returns the loss of a slice of them, of which the minibatch's is the sum, and
                anything else. It is called in threads, so it changes nothing.

        Returns:
            What the shares return in addition, in their order.
        """
        policy = self.model.policy
        policy.optimizer.zero_grad()
        shares = [partial(loss, rows) for rows in cut_shares(count, self._settings.learner_shares)]
        return add_gradients(policy.parameters(), shares)

    def _descend(self) -> None:
        """Makes a gradient step with a clipped gradient, as stable-baselines3 does."""
        policy = self.model.policy
        torch.nn.utils.clip_grad_norm_(policy.parameters(), self._settings.max_grad_norm)
        policy.optimizer.step()

    def _in_shares(self, count: int, evaluate: Callable[[slice], _Result]) -> list[_Result]:
        """Returns what networks compute for the shares of rows, in order, without gradients."""

        def call(rows: slice) -> _Result:
            with torch.no_grad():  # it is a setting of each thread
                return evaluate(rows)

        shares = cut_shares(count, self._settings.learner_shares)
        return in_order([partial(call, rows) for rows in shares])

    def change(self, settings: Any) -> None:
        """Changes the settings, and keeps weights and optimiser."""
        self.__setstate__({**self.__getstate__(), "_settings": settings})

    def __getstate__(self) -> dict[str, Any]:
        """Replaces stable-baselines3's algorithm with arrays. The settings determine the rest."""
        policy = self.model.policy
        states = arrays([policy.state_dict(), policy.optimizer.state_dict()])
        return {**vars(self), "model": states}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Rebuilds stable-baselines3's algorithm and loads the arrays."""
        vars(self).update(state)
        weights, optimizer = tensors(state["model"])
        with copy.copy(self._generators).used():
            self.model = self._make()
        self.model.policy.load_state_dict(weights)
        self.model.policy.optimizer.load_state_dict(optimizer)
