"""TD3 in numpy (Fujimoto et al. 2018), as DQD-RL and PGA-MAP-Elites use it.

Its parts are fully connected networks with one parameter vector, an in-place Adam
(Kingma & Ba 2015), and a replay buffer of the latest transitions.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsweep.domains.base import GOES_ON, TERMINATED, Actor, Floats, Record
from qdsweep.domains.policies import count_parameters, layer_shapes, split_layers
from qdsweep.errors import QdsweepError
from qdsweep.features.learning import settings as config
from qdsweep.host.machine import require_memory

# Arrays of floats, which are float32 in a learner.
Array = NDArray[Any]
NOTHING = slice(0)


class _Work(NamedTuple):
    """The buffers of a layer, allocated once, each ``(rows, outputs)``.

    Attributes:
        output: The outputs after the activation.
        slope: The derivative of the activation there.
        gradient: The gradient of the loss by each output, then by each sum before the activation.
    """

    output: Array
    slope: Array
    gradient: Array


class Network:
    """A fully connected network of fixed shape.

    One `backward` for the same rows may follow `forward`. A product has all rows at once, so the
    last bits of each row depend on the number of rows.

    Args:
        shapes: (outputs, inputs) of each layer.
        activations: The activation of each layer: "tanh", "relu" or "" for none.
        bias: Whether each layer has biases.
        rows: The largest number of rows in a call.
        dtype: The type of parameters and rows.

    Attributes:
        size: Number of parameters, in the layout of `split_layers`.
    """

    def __init__(
        self,
        shapes: Sequence[tuple[int, int]],
        activations: Sequence[str],
        bias: bool,
        rows: int,
        dtype: Any = np.float32,
    ) -> None:
        self._made_with = (shapes, activations, bias, rows, dtype)
        self._shapes, self._activations, self._bias, self._dtype = shapes, activations, bias, dtype
        self.size = sum(math.prod(shape) + bias * shape[0] for shape in shapes)
        self._work = [
            _Work(
                np.empty((rows, outputs), dtype),
                np.empty((rows, outputs), bool if activation == "relu" else dtype),
                np.empty((rows, outputs), dtype),
            )
            for (outputs, _), activation in zip(shapes, activations, strict=True)
        ]
        self._inputs: list[Array] = []  # of each layer in the last `forward`

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles only the arguments, because the buffers hold no state."""
        return Network, self._made_with

    def _layers(self, parameters: Array) -> list[tuple[Array, Array | None]]:
        return split_layers(parameters, self._shapes, bias=self._bias)

    def draw(self, rng: np.random.Generator) -> Array:
        """Draws parameters ``(size,)`` as PyTorch's `nn.Linear` does.

        The parameters of a layer are uniform in +-1 / sqrt(inputs).
        """
        parameters = np.empty(self.size, self._dtype)
        for (weights, biases), (_, inputs) in zip(
            self._layers(parameters), self._shapes, strict=True
        ):
            bound = 1 / math.sqrt(inputs)
            weights[:] = rng.uniform(-bound, bound, weights.shape)
            if biases is not None:
                biases[:] = rng.uniform(-bound, bound, biases.shape)
        return parameters

    def forward(self, parameters: Array, inputs: Array) -> Array:
        """Returns the outputs ``(n, outputs)`` of n rows; the next call overwrites them."""
        self._inputs = []
        x, rows = inputs, len(inputs)
        for (weights, biases), activation, work in zip(
            self._layers(parameters), self._activations, self._work, strict=True
        ):
            self._inputs.append(x)
            x = np.matmul(x, weights.T, out=work.output[:rows])
            if biases is not None:
                x += biases
            if activation == "tanh":
                np.tanh(x, out=x)
            elif activation == "relu":  # faster than np.maximum
                x *= np.greater(x, 0, out=work.slope[:rows])
        return x

    def backward(
        self,
        parameters: Array,
        gradient: Array,
        out: Array | None = None,
        columns: slice = NOTHING,
    ) -> Array:
        """Propagates the gradient of a loss back from the outputs of the last `forward`.

        Args:
            parameters: ``(size,)``, as in `forward`.
            gradient: ``(n, outputs)`` of the loss by each output; overwritten.
            out: ``(size,)`` receives the gradient by the parameters; None if it is not needed.
            columns: The inputs whose gradient is needed too.

        Returns:
            ``(n, columns)`` gradient by these inputs.
        """
        layers, rows = self._layers(parameters), len(gradient)
        gradients = layers if out is None else self._layers(out)
        for index in reversed(range(len(layers))):
            activation, work = self._activations[index], self._work[index]
            slope = work.slope[:rows]
            if activation == "tanh":
                np.square(work.output[:rows], out=slope)
                np.subtract(1, slope, out=slope)
            if activation:
                gradient *= slope
            if out is not None:
                weights, biases = gradients[index]
                np.matmul(gradient.T, self._inputs[index], out=weights)
                if biases is not None:
                    np.add.reduce(gradient, axis=0, out=biases)
            weights = layers[index][0]
            if index:
                # For a single output, np.matmul takes four times as long.
                product = np.multiply if len(weights) == 1 else np.matmul
                gradient = product(gradient, weights, out=self._work[index - 1].gradient[:rows])
        return gradient @ weights[:, columns]


class Adam:
    """The optimiser Adam (Kingma & Ba 2015), with PyTorch's default settings.

    Args:
        size: Number of parameters.
        lr: Learning rate [parameter units].
        dtype: The type of parameters and gradients.
    """

    beta1, beta2, epsilon = 0.9, 0.999, 1e-8

    def __init__(self, size: int, lr: float, dtype: Any = np.float32) -> None:
        self.lr = lr
        self._steps = 0
        # Decaying sums: the paper's moments over 1 - beta, which saves two products per step.
        self._first = np.zeros(size, dtype)
        self._second = np.zeros(size, dtype)

    def check(self) -> None:
        """Refuses infinite moments, with which steps are 0.

        Raises:
            QdsweepError: A square of a gradient is too large for the precision, or NaN.
        """
        finite(self._second, "the mean of squared gradients")

    def step(self, parameters: NDArray[Any], gradient: NDArray[Any]) -> None:
        """Makes a step.

        Args:
            parameters: ``(size,)``, which are updated in place.
            gradient: ``(size,)`` of the loss, which is overwritten.
        """
        self._steps += 1
        scale1 = (1 - self.beta1) / (1 - self.beta1**self._steps)
        scale2 = math.sqrt((1 - self.beta2) / (1 - self.beta2**self._steps))
        rate, epsilon = self.lr * scale1 / scale2, self.epsilon / scale2
        first, second, work = self._first, self._second, gradient
        first *= self.beta1
        first += work
        work *= work
        second *= self.beta2
        second += work
        np.sqrt(second, out=work)
        work += epsilon
        np.divide(first, work, out=work)
        work *= rate
        parameters -= work


class Transitions(NamedTuple):
    """n transitions.

    Attributes:
        inputs: ``(n, s + a)`` observation and action, the input of a critic.
        rewards: ``(n,)`` rewards.
        following: ``(n, s)`` the next observation.
        ends: ``(n,)`` values of `Record.ends`.
    """

    inputs: Array
    rewards: Array
    following: Array
    ends: Array


class Replay:
    """A ring buffer of transitions: new ones replace the oldest.

    A transition is one row of float32, 4 (2 s + a + 2) bytes: 264 for Ant. The system allocates
    memory when rows are written, so a buffer that is far from full is small.

    Args:
        capacity: The largest number of transitions.
        observation: Size s of an observation.
        action: Size a of an action.

    Raises:
        BadInput: The machine has too little memory for it.

    Attributes:
        size: Number of transitions in it.
    """

    def __init__(self, capacity: int, observation: int, action: int) -> None:
        self.size = 0
        self._next = 0
        self._s, self._sa = observation, observation + action
        width = self._sa + observation + 2
        asked = f"algorithm.learner.replay_size = {capacity}: a buffer of this many transitions"
        require_memory(4 * width * capacity, asked)
        self._rows = np.empty((capacity, width), np.float32)

    def __getstate__(self) -> dict[str, Any]:
        """Returns only the filled rows."""
        return {**vars(self), "_rows": self._rows[: self.size], "capacity": len(self._rows)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Allocates the empty rows again."""
        capacity, rows = state.pop("capacity"), state["_rows"]
        vars(self).update(state)
        if len(rows) < capacity:
            self._rows = np.empty((capacity, rows.shape[1]), np.float32)
            self._rows[: self.size] = rows

    def add(self, record: Record) -> None:
        """Adds the transitions of a record."""
        capacity, steps = len(self._rows), len(record.rewards)
        # For each ended episode, a record has one more observation than steps.
        before = np.arange(steps) + np.cumsum(record.ends != GOES_ON) - (record.ends != GOES_ON)
        latest = slice(max(steps - capacity, 0), steps)
        before = before[latest]
        slots = (self._next + np.arange(len(before))) % capacity
        s, sa = self._s, self._sa
        self._rows[slots, :s] = record.observations[before]
        self._rows[slots, s:sa] = record.actions[latest]
        self._rows[slots, sa:-2] = record.observations[before + 1]
        self._rows[slots, -2] = record.rewards[latest]
        self._rows[slots, -1] = record.ends[latest]
        self._next = (self._next + len(before)) % capacity
        self.size = min(self.size + len(before), capacity)

    def draw(self, rng: np.random.Generator, count: int) -> Transitions:
        """Draws transitions uniformly, with replacement. The buffer must not be empty."""
        rows = self._rows[rng.integers(0, self.size, count)]
        sa = self._sa
        return Transitions(rows[:, :sa], rows[:, -2], rows[:, sa:-2], rows[:, -1])

    def draw_observations(self, rng: np.random.Generator, count: int) -> Array:
        """Draws ``(count, s)`` observations uniformly, with replacement."""
        return self._rows[:, : self._s][rng.integers(0, self.size, count)]


class TD3:
    """Learns twin critics and a greedy actor from transitions, and improves actors by a critic.

    Actions are scaled to [-1, 1] by their bounds. All arrays are float32, and a learner can be
    pickled between any two calls. With an empty replay buffer, it learns nothing and changes no
    actor.

    Args:
        actor: The network of the domain's policy and of the greedy actor.
        settings: The settings in the experiment.
        seed: The seed of initial parameters, drawn transitions and noise.

    Attributes:
        replay: The replay buffer.
        rng: The generator of draws and noise.
        actor: ``(d,)`` parameters of the greedy actor.
        critics: ``(2, c)`` parameters of the critics.
        target_actor: ``(d,)``, which follows the actor slowly.
        target_critics: ``(2, c)``, which follow the critics slowly.
    """

    dtype: ClassVar[Any] = np.float32

    def __init__(self, actor: Actor, settings: config.TD3, seed: np.random.SeedSequence) -> None:
        assert actor.low is not None and actor.high is not None, "see `require_vectors`"
        self._settings = settings
        self._centre = ((actor.low + actor.high) / 2).astype(np.float32)
        self._half = ((actor.high - actor.low) / 2).astype(np.float32)
        self.rng = np.random.default_rng(seed)
        self._steps = 0
        rows, hidden = settings.minibatch, len(actor.shapes) - 1
        actions, observations = actor.shapes[-1][0], actor.shapes[0][1]
        self._actor_network = Network(
            actor.shapes, [actor.activation] * hidden + ["tanh"], actor.bias, rows, self.dtype
        )
        shapes = layer_shapes([observations + actions, *settings.critic_hidden, 1])
        # Two critics, each with a target and Adam's two moments.
        require_memory(
            8 * np.dtype(self.dtype).itemsize * count_parameters(shapes, bias=True),
            f"algorithm.learner.critic_hidden = {settings.critic_hidden}: training such networks",
        )
        self._critic_network = Network(
            shapes,
            ["relu"] * len(settings.critic_hidden) + [""],
            True,
            rows,
            self.dtype,
        )
        self.actor = self._actor_network.draw(self.rng)
        self.critics = np.stack([self._critic_network.draw(self.rng) for _ in range(2)])
        self.target_actor, self.target_critics = self.actor.copy(), self.critics.copy()
        self._actor_adam = Adam(self.actor.size, settings.actor_lr, self.dtype)
        self._critic_adam = Adam(self.critics.size, settings.critic_lr, self.dtype)
        self.replay = Replay(settings.replay_size, observations, actions)

    def __getstate__(self) -> dict[str, Any]:
        """Pickles the settings as plain data."""
        return {**vars(self), "_settings": self._settings.model_dump()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores the settings, also those of earlier releases, which pickled their model."""
        vars(self).update(state)
        self._settings = config.TD3.model_validate(state["_settings"])

    @property
    def greedy(self) -> Floats:
        """The greedy actor, a solution ``(d,)`` of the domain.

        Raises:
            QdsweepError: Training has diverged.
        """
        return finite(self.actor, "the greedy actor").astype(np.float64)

    def add(self, record: Record) -> None:
        """Adds the transitions of an evaluation."""
        scaled = (record.actions - self._centre) / self._half
        self.replay.add(record._replace(actions=scaled))

    def train(self, steps: int) -> None:
        """Trains the critics, and at every `policy_delay`-th step the actor and the targets.

        Raises:
            QdsweepError: Training has diverged.
        """
        if not self.replay.size:
            return
        settings = self._settings
        for _ in range(steps):
            self._steps += 1
            drawn = self.replay.draw(self.rng, settings.minibatch)
            self._improve_critics(drawn)
            if self._steps % settings.policy_delay == 0:
                observations = drawn.inputs[:, : drawn.following.shape[1]]
                self._actor_adam.step(self.actor, self._loss_gradient(self.actor, observations))
                follow(self.target_actor, self.actor, settings.tau)
                follow(self.target_critics, self.critics, settings.tau)
        self._critic_adam.check()
        self._actor_adam.check()

    def ascend(self, solutions: Floats, steps: int, batch: int, lr: float) -> Floats:
        """Improves actors by the gradient of the first critic (PGA-MAP-Elites' variation).

        Args:
            solutions: ``(n, d)`` actors.
            steps: Adam steps of each actor, which has its own Adam.
            batch: Number of observations to draw for each step.
            lr: Learning rate of Adam [parameter units].

        Returns:
            ``(n, d)`` actors after these steps. An actor does not depend on later rows.

        Raises:
            QdsweepError: Training or these steps have diverged.
        """
        improved = solutions.copy()
        if not self.replay.size:
            return improved
        for solution in improved:
            parameters = solution.astype(self.dtype)
            adam = Adam(parameters.size, lr, self.dtype)
            observations = self.replay.draw_observations(self.rng, steps * batch)
            for of_step in np.split(observations, steps):
                adam.step(parameters, self._loss_gradient(parameters, of_step))
            adam.check()
            solution[:] = parameters
        return finite(improved, "an actor that has climbed the critic")

    def gradient(self, solution: Floats, observations: int) -> Floats:
        """Returns the gradient ``(d,)`` of the first critic's mean at an actor.

        It is zero while the replay buffer is empty.

        Args:
            solution: ``(d,)`` the actor.
            observations: The number of observations to draw.

        Raises:
            QdsweepError: Training has diverged.
        """
        if not self.replay.size:
            return np.zeros(len(solution))
        drawn = self.replay.draw_observations(self.rng, observations)
        climb = -self._loss_gradient(solution.astype(self.dtype), drawn)
        return finite(climb, "the gradient of the critic").astype(np.float64)

    def _improve_critics(self, drawn: Transitions) -> None:
        """Makes a step of the critics towards the targets of the target networks."""
        settings, network, rows = self._settings, self._critic_network, len(drawn.inputs)
        noise = self.rng.standard_normal((rows, len(self._half)), np.float32)
        noise *= settings.policy_noise
        np.clip(noise, -settings.noise_clip, settings.noise_clip, out=noise)
        actions = self._actor_network.forward(self.target_actor, drawn.following) + noise
        following = np.concatenate((drawn.following, np.clip(actions, -1, 1)), axis=1)
        value, other = (network.forward(critic, following).copy() for critic in self.target_critics)
        ends = drawn.ends
        goes_on = ends == GOES_ON if settings.limit_is_end else ends != TERMINATED
        targets = drawn.rewards + settings.gamma * np.where(
            goes_on, np.minimum(value, other)[:, 0], 0
        )
        gradients = np.empty_like(self.critics)
        for critic, gradient in zip(self.critics, gradients, strict=True):
            errors = network.forward(critic, drawn.inputs) - targets[:, None]
            network.backward(critic, errors * (2 / rows), out=gradient)
        self._critic_adam.step(self.critics.reshape(-1), gradients.reshape(-1))

    def _loss_gradient(self, actor: Array, observations: Array) -> Array:
        """Returns the gradient ``(d,)`` of the first critic's negative mean by the actor."""
        count, rows = len(observations), self._settings.minibatch
        total, part = np.zeros_like(actor), np.empty_like(actor)
        critic, s = self.critics[0], observations.shape[1]
        for start in range(0, count, rows):
            some = observations[start : start + rows]
            actions = self._actor_network.forward(actor, some)
            self._critic_network.forward(critic, np.concatenate((some, actions), axis=1))
            by_value = np.full((len(some), 1), -1 / count, self.dtype)
            by_action = self._critic_network.backward(critic, by_value, columns=slice(s, None))
            self._actor_network.backward(actor, by_action, out=part)
            total += part
        return total


def finite(values: NDArray[Any], what: str) -> NDArray[Any]:
    """Returns values that leave the learner, after a check that all are finite.

    Raises:
        QdsweepError: Some are not finite.
    """
    if not np.isfinite(values).all():
        raise QdsweepError(
            f"TD3 has diverged: {what} is infinite or NaN. Usual causes: high learning rates "
            "(actor_lr, critic_lr, gradient_lr) or huge rewards"
        )
    return values


def follow(target: Array, parameters: Array, tau: float) -> None:
    """Moves target parameters in place towards `parameters` by the fraction tau."""
    step = parameters - target
    step *= tau
    target += step
