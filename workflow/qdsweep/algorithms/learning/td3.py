"""TD3 in numpy (Fujimoto et al. 2018), as DQD-RL and PGA-MAP-Elites use it."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qdsweep.algorithms.learning.networks import Array, Network
from qdsweep.algorithms.learning.optimizer import Adam
from qdsweep.algorithms.learning.replay import Replay, Transitions
from qdsweep.config import learning as config
from qdsweep.domains.base import GOES_ON, TERMINATED, Actor, Floats, Record
from qdsweep.domains.policies import count_parameters, layer_shapes
from qdsweep.errors import QdsweepError
from qdsweep.host.memory import require_memory


class TD3:
    """Learns twin critics and a greedy actor from transitions, and improves actors by a critic.

    Actions are scaled to [-1, 1] by their bounds. Everything is float32, and pickles between any
    two calls. While nothing is in the replay buffer, nothing is learnt and actors stay as they are.

    Args:
        actor: The network of the domain's policy, which is that of the greedy actor.
        settings: The experiment's.
        seed: Of first parameters, transitions and noise.

    Attributes:
        replay: The transitions.
        rng: Draws transitions and noise.
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
        # Two critics, each with its target and Adam's two moments.
        require_memory(
            8 * np.dtype(self.dtype).itemsize * count_parameters(shapes, bias=True),
            f"algorithm.learner.critic_hidden = {settings.critic_hidden}: networks of such layers",
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

    @property
    def greedy(self) -> Floats:
        """The greedy actor, a solution ``(d,)`` of the domain.

        Raises:
            QdsweepError: Training has diverged.
        """
        return finite(self.actor, "the greedy actor").astype(np.float64)

    def add(self, record: Record) -> None:
        """Takes the transitions of an evaluation."""
        scaled = (record.actions - self._centre) / self._half
        self.replay.add(record._replace(actions=scaled))

    def train(self, steps: int) -> None:
        """Trains the critics, and with every `policy_delay`-th step the actor and the targets."""
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

    def ascend(self, solutions: Floats, steps: int, batch: int, lr: float) -> Floats:
        """Improves actors by the gradient of the first critic (PGA-MAP-Elites' variation).

        Args:
            solutions: ``(n, d)`` actors.
            steps: Steps of an Adam of its own that each makes.
            batch: Observations of a step, other ones each time.
            lr: Learning rate of Adam [parameter units].

        Returns:
            ``(n, d)`` the actors after these steps, each the same whatever follows it.

        Raises:
            QdsweepError: Training has diverged, or these steps have.
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
            solution[:] = parameters
        return finite(improved, "an actor that has climbed the critic")

    def gradient(self, solution: Floats, observations: int) -> Floats:
        """Returns the gradient ``(d,)`` of the first critic's mean at an actor; zeros untaught.

        Args:
            solution: ``(d,)`` the actor.
            observations: How many to draw.

        Raises:
            QdsweepError: Training has diverged.
        """
        if not self.replay.size:
            return np.zeros(len(solution))
        drawn = self.replay.draw_observations(self.rng, observations)
        climb = -self._loss_gradient(solution.astype(self.dtype), drawn)
        return finite(climb, "the gradient of the critic").astype(np.float64)

    def _improve_critics(self, drawn: Transitions) -> None:
        """Makes a step towards what the target networks expect of the following observations."""
        settings, network, rows = self._settings, self._critic_network, len(drawn.inputs)
        noise = self.rng.standard_normal((rows, len(self._half)), np.float32)
        noise *= settings.policy_noise
        np.clip(noise, -settings.noise_clip, settings.noise_clip, out=noise)
        actions = self._actor_network.forward(self.target_actor, drawn.following) + noise
        following = np.concatenate((drawn.following, np.clip(actions, -1, 1)), axis=1)
        value, other = (network.forward(critic, following).copy() for critic in self.target_critics)
        ends = drawn.ends
        goes_on = ends == GOES_ON if settings.limit_is_end else ends != TERMINATED
        wanted = drawn.rewards + settings.gamma * np.where(
            goes_on, np.minimum(value, other)[:, 0], 0
        )
        gradients = np.empty_like(self.critics)
        for critic, gradient in zip(self.critics, gradients, strict=True):
            errors = network.forward(critic, drawn.inputs) - wanted[:, None]
            network.backward(critic, errors * (2 / rows), out=gradient)
        self._critic_adam.step(self.critics.reshape(-1), gradients.reshape(-1))

    def _loss_gradient(self, actor: Array, observations: Array) -> Array:
        """The gradient ``(d,)`` of the negative mean of the first critic by the actor."""
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
    """Returns values that are to leave the learner, all of which must be numbers.

    Raises:
        QdsweepError: Some are not.
    """
    if not np.isfinite(values).all():
        raise QdsweepError(
            f"TD3 has diverged: {what} is infinite or NaN. Usual causes: learning rates that are "
            "too high (actor_lr, critic_lr, gradient_lr), rewards that are huge"
        )
    return values


def follow(target: Array, parameters: Array, tau: float) -> None:
    """Moves target parameters towards others by the fraction tau."""
    step = parameters - target
    step *= tau
    target += step
