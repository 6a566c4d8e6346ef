"""Policies map an observation to an action, by the parameters of a solution.

To explore, a policy disturbs its network's output, which then becomes an action as usual.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from qdsweep.config import domain_keys as config
from qdsweep.domains.base import Actor, Exploration, Floats
from qdsweep.errors import BadInput
from qdsweep.host.machine import require_memory

Forward = Callable[[NDArray[Any]], NDArray[Any]]
# A function of an array and of the array for its result.
_ACTIVATIONS: dict[str, Callable[[Floats, Floats], Any]] = {
    "tanh": np.tanh,
    "relu": lambda x, out: np.maximum(x, 0, out=out),
}

# A function that disturbs an output in place.
_Disturbance = Callable[[Floats], None]
# The noise of this many steps is drawn at once, as a call of the generator is slow.
_BLOCK = 64


def split_layers(
    parameters: NDArray[Any], shapes: Sequence[tuple[int, int]], *, bias: bool
) -> list[tuple[NDArray[Any], NDArray[Any] | None]]:
    """Returns the weights and the biases of each layer, as views of a network's parameters.

    Args:
        parameters: ``(d,)`` parameters, layer by layer. A layer has its weights row by row, then
            its biases, if any.
        shapes: (outputs, inputs) of each layer.
        bias: Whether each layer has biases.
    """
    layers = []
    start = 0
    for outputs, inputs in shapes:
        end = start + outputs * inputs
        weights, biases = parameters[start:end].reshape(outputs, inputs), None
        start = end
        if bias:
            start += outputs
            biases = parameters[end:start]
        layers.append((weights, biases))
    return layers


def layer_shapes(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Returns (outputs, inputs) of each layer between an input, hidden layers and an output."""
    return [(after, before) for before, after in pairwise(sizes)]


def count_parameters(shapes: Sequence[tuple[int, int]], *, bias: bool) -> int:
    """Returns the number of weights and biases of layers; see `split_layers`."""
    return sum(math.prod(shape) + bias * shape[0] for shape in shapes)


def draw_xavier(
    shapes: Sequence[tuple[int, int]], seed: np.random.SeedSequence, *, bias: bool
) -> Floats:
    """Draws parameters ``(d,)`` as Glorot & Bengio (2010, eq. 16), with biases of zero.

    A layer's weights are uniform within sqrt(6 / (inputs + outputs)) of zero.

    Args:
        shapes: (outputs, inputs) of each layer.
        seed: The seed.
        bias: Whether each layer has biases.
    """
    rng, parts = np.random.default_rng(seed), []
    for outputs, inputs in shapes:
        bound = math.sqrt(6 / (outputs + inputs))
        parts.append(rng.uniform(-bound, bound, outputs * inputs))
        parts.append(np.zeros(outputs * bias))
    return np.concatenate(parts)


class Policy:
    """A network of fixed shape whose weights are a solution.

    Each product has only one observation, so it cannot depend on the batch.

    Attributes:
        solution_dim: Number of weights and biases, d.
    """

    def __init__(self, policy: config.Linear | config.MLP, inputs: int, outputs: int) -> None:
        """Makes the policy.

        Args:
            policy: Linear (W times the observation, no bias) or MLP (biases in every layer).
            inputs: Size of an observation.
            outputs: Size of the network's output.

        Raises:
            BadInput: It does not fit in memory.
        """
        hidden = policy.hidden if isinstance(policy, config.MLP) else []
        self._bias = isinstance(policy, config.MLP)
        self._activation_name = getattr(policy, "activation", "tanh")
        self._shapes = layer_shapes([inputs, *hidden, outputs])
        self.solution_dim = count_parameters(self._shapes, bias=self._bias)
        asked = f"domain.policy.hidden = {hidden}: a network of {self.solution_dim:,} weights"
        require_memory(8 * self.solution_dim, asked)

    def actor(self, actions: "Actions") -> Actor:
        """Returns the description of the network for a learner."""
        low, high = (None, None) if actions.bounds is None else actions.bounds
        return Actor(
            tuple(self._shapes), self._bias, self._activation_name, low, high, actions.discrete
        )

    def xavier(self, seed: np.random.SeedSequence) -> Floats:
        """Draws a solution, see `draw_xavier`."""
        return draw_xavier(self._shapes, seed, bias=self._bias)

    def network(self, solution: Floats) -> Forward:
        """Returns the network with a solution's weights.

        Args:
            solution: ``(d,)`` parameters in the layout of `split_layers`. The network computes in
                their precision.

        Returns:
            A function from an observation ``(inputs,)`` to the output ``(outputs,)``. The next
            call overwrites the output, so an episode allocates nothing.
        """
        # The method `dot` is used because the call of np.matmul takes longer than a small product.
        layers = [
            (weights.dot, bias, np.empty(len(weights), dtype=weights.dtype))
            for weights, bias in split_layers(solution, self._shapes, bias=self._bias)
        ]
        activation, last = _ACTIVATIONS[self._activation_name], len(layers) - 1
        add = np.add

        def forward(x: Floats) -> Floats:
            for index, (product, bias, output) in enumerate(layers):
                x = product(x, output)
                if bias is not None:
                    add(x, bias, x)
                if index < last:
                    activation(x, x)
            return x

        return forward


class Actions(NamedTuple):
    """How a network's output becomes an action.

    Attributes:
        size: Size of the output.
        choose: Output ``(size,)`` -> the action for `env.step`. It may overwrite the output.
        vectors: T actions -> the vectors ``(T, size)`` for measures.
        bounds: Lower and upper bounds ``(size,)``; None where they are discrete or unbounded.
        discrete: Whether the action is the index of the largest output.
        one_sided: The components that have only one bound.
        kind: The type of an action, in which a `Token` keeps it.
    """

    size: int
    choose: Callable[[Floats], Any]
    vectors: Callable[[list[Any]], Floats]
    bounds: tuple[Floats, Floats] | None = None
    discrete: bool = False
    one_sided: tuple[int, ...] = ()
    kind: Any = np.float64


def make_actions(space: spaces.Space, env: str, *, clip: bool = False) -> Actions:
    """Makes the actions of a space.

    A Discrete action is the argmax of the outputs, and measures see a one-hot vector. Each part of
    a MultiDiscrete action does the same with its own outputs. A MultiBinary action is whether each
    output is above 0. A component of a Box action is the tanh of its output, scaled to the bounds;
    if it is not bounded on both sides, it is the output.

    Args:
        space: The environment's action space.
        env: The environment's id, for the message.
        clip: Whether components with one bound are clipped there.

    Raises:
        BadInput: The space is of another type, or a Box of integers or of more dimensions.
    """
    if isinstance(space, spaces.MultiDiscrete):
        return _choices(space)
    if isinstance(space, spaces.MultiBinary):
        shape, kind = space.shape, space.dtype
        return Actions(
            math.prod(shape),
            lambda output: (output > 0).astype(kind).reshape(shape),
            lambda actions: np.array(actions, dtype=np.float64).reshape(len(actions), -1),
        )
    if isinstance(space, spaces.Discrete):
        start, one_hot = int(space.start), np.eye(int(space.n))
        return Actions(
            int(space.n),
            lambda output: start + int(np.argmax(output)),
            lambda actions: one_hot[np.array(actions) - start],
            discrete=True,
            kind=np.result_type(
                np.min_scalar_type(start), np.min_scalar_type(start + len(one_hot))
            ),
        )
    if not (
        isinstance(space, spaces.Box)
        and len(space.shape) == 1
        and np.issubdtype(space.dtype, np.floating)
    ):
        raise BadInput(
            f"domain.env = {env!r}: its actions are {space}. Only Discrete, MultiDiscrete, "
            "MultiBinary and 1-D Box actions of floats work. Write your own domain "
            "(module:Class) for it"
        )
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    bounded = np.isfinite(low) & np.isfinite(high)
    centre = np.where(bounded, (low + high) / 2, 0.0)
    half = np.where(bounded, (high - low) / 2, 0.0)

    def squash(output: Floats) -> Floats:
        np.tanh(output, output)
        np.multiply(half, output, output)
        np.add(centre, output, output)
        return output.astype(space.dtype)

    def choose(output: Floats) -> Floats:
        action = np.where(bounded, centre + half * np.tanh(output), output)
        return (np.clip(action, low, high) if clip else action).astype(space.dtype)

    def vectors(actions: list[Any]) -> Floats:
        return np.array(actions, dtype=np.float64)

    if bounded.all():
        return Actions(len(low), squash, vectors, (low, high), kind=space.dtype)
    one_sided = np.flatnonzero(np.isfinite(low) ^ np.isfinite(high)).tolist()
    return Actions(len(low), choose, vectors, one_sided=tuple(one_sided), kind=space.dtype)


def _choices(space: spaces.MultiDiscrete) -> Actions:
    """Makes the actions of a MultiDiscrete space."""
    sizes, first = space.nvec.ravel(), space.start.ravel()
    offsets = np.concatenate([[0], np.cumsum(sizes)])

    def choose(output: Floats) -> NDArray[Any]:
        largest = [np.argmax(part) for part in np.split(output, offsets[1:-1])]
        return (first + largest).astype(space.dtype).reshape(space.shape)

    def vectors(actions: list[Any]) -> Floats:
        rows = np.zeros((len(actions), offsets[-1]))
        chosen = np.array(actions).reshape(len(actions), -1) - first + offsets[:-1]
        np.put_along_axis(rows, chosen, 1.0, axis=1)
        return rows

    return Actions(int(offsets[-1]), choose, vectors)


class Choice(NamedTuple):
    """How the actions of one episode are chosen.

    Attributes:
        action: Output -> action, like `Actions.choose`.
        outputs: The noisy outputs for `Record.actions`, one row per step; None where the record
            has the actions.
    """

    action: Callable[[Floats], Any]
    outputs: list[Floats] | None = None


def make_choice(
    actions: Actions, exploration: Exploration | None, row: int, episode_seed: int
) -> Choice:
    """Makes the choice of one episode's actions.

    Args:
        actions: The actions of the domain.
        exploration: How the rows of the batch explore; None for greedy ones.
        row: The row of the batch.
        episode_seed: The seed of the episode; a child of it seeds the noise.

    Raises:
        ValueError: The exploration does not suit the actions.
    """
    if exploration is None or not exploration.scale[row].any():
        return Choice(actions.choose)
    kind, scale = exploration.kind, exploration.scale[row]
    if kind not in kinds_of(discrete=actions.discrete):
        named = "discrete actions" if actions.discrete else "actions that are vectors"
        raise ValueError(f"exploration by {kind!r} does not suit {named}")
    rng = np.random.default_rng(np.random.SeedSequence(episode_seed, spawn_key=(0,)))
    disturb, choose = _DISTURBANCES[kind](scale, actions.size, rng), actions.choose
    if actions.discrete:

        def action(output: Floats) -> Any:
            disturb(output)
            return choose(output)

        return Choice(action)
    outputs: list[Floats] = []

    def squashed(output: Floats) -> Any:
        disturb(output)
        outputs.append(output.copy())
        return choose(output)

    return Choice(squashed, outputs)


def kinds_of(*, discrete: bool) -> tuple[str, ...]:
    """Returns the kinds of `Exploration` that suit actions."""
    return ("softmax", "epsilon") if discrete else ("gaussian",)


def explore(actor: Actor, kind: str, scales: list[float]) -> Exploration:
    """Returns the exploration of rows with one scale each, the same for all outputs."""
    outputs = actor.shapes[-1][0] if kind == "gaussian" else 1
    return Exploration(kind, np.repeat(np.array(scales)[:, np.newaxis], outputs, axis=1))


def _softmax(scale: Floats, size: int, rng: np.random.Generator) -> _Disturbance:
    # The largest of output / scale + Gumbel noise is a draw from the softmax (Gumbel 1954).
    return _added(lambda: scale * rng.gumbel(size=(_BLOCK, size)))


def _gaussian(scale: Floats, size: int, rng: np.random.Generator) -> _Disturbance:
    return _added(lambda: scale * rng.standard_normal((_BLOCK, size)))


def _epsilon(scale: Floats, size: int, rng: np.random.Generator) -> _Disturbance:
    draw, (epsilon,) = rng.random, scale.tolist()

    def disturb(output: Floats) -> None:
        if draw() < epsilon:
            output[:] = draw(size)  # any output may now be the largest

    return disturb


def _added(block: Callable[[], Floats]) -> _Disturbance:
    def rows() -> Iterator[Floats]:
        while True:
            yield from block()

    noise, add = rows(), np.add

    def disturb(output: Floats) -> None:
        add(output, next(noise), output)

    return disturb


_DISTURBANCES: dict[str, Callable[[Floats, int, np.random.Generator], _Disturbance]] = {
    "softmax": _softmax,
    "epsilon": _epsilon,
    "gaussian": _gaussian,
}
