"""How a policy explores: its network's output is disturbed, and then becomes an action as ever."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from qdsweep.domains.base import Actor, Exploration, Floats
from qdsweep.domains.policies import Actions

# Disturbs an output in place.
_Disturbance = Callable[[Floats], None]
# Steps whose noise is drawn at once: a call of the generator takes longer than a few numbers.
_BLOCK = 64


class Choice(NamedTuple):
    """How the actions of one episode are chosen.

    Attributes:
        action: As `Actions.choose`.
        outputs: What `Record.actions` has instead of the actions, a row a step; None where it has
            the actions.
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
        episode_seed: The seed of the episode; the noise is of a child of it.

    Raises:
        ValueError: The exploration does not suit the actions.
    """
    if exploration is None or not exploration.scale[row].any():
        return Choice(actions.choose)
    kind, scale = exploration.kind, exploration.scale[row]
    if kind not in kinds_of(discrete=actions.discrete):
        named = "discrete actions" if actions.discrete else "actions that are vectors"
        raise ValueError(f"exploration by {kind!r} is not for {named}")
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
            output[:] = draw(size)  # the largest is any of them

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
