"""Rows that continue an episode, and the environments that wait for their next unroll."""

import logging
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np

from qdsweep.domains.base import (
    Evaluation,
    Exploration,
    Floats,
    Record,
    Seeds,
    Token,
    Unroll,
    concatenate,
)

Environment = TypeVar("Environment")

log = logging.getLogger("qdsweep")


class LiveEpisodes(Generic[Environment]):
    """The environments of paused episodes, each for the row that next continues it.

    They save time and change no result, as any process can play an episode again from its token.

    Args:
        resume: Returns the environment of a token's episode, after it has played its actions again.

    Attributes:
        replayed: Number of actions that were played again.

    Example:
        >>> from qdsweep.domains.base import Token
        >>> from qdsweep.domains.unrolls import LiveEpisodes
        >>> live = LiveEpisodes(lambda token: f"played again from {token.seed}")
        >>> live.keep(Token(3, b"lr"), "paused", most=10)
        []
        >>> live.take(Token(3, b"lr")), live.take(Token(3, b"lr"))
        ('paused', 'played again from 3')
        >>> live.replayed
        2
    """

    def __init__(self, resume: Callable[[Token], Environment]) -> None:
        self._resume = resume
        self._waiting: dict[tuple[int | None, bytes], Environment] = {}
        self._most = self.replayed = 0

    def take(self, token: Token) -> Environment:
        """Returns the environment of an episode, which it no longer keeps."""
        waiting = self._waiting.pop(_key(token), None)
        if waiting is not None:
            return waiting
        self.replayed += len(token.actions)
        return self._resume(token)

    def keep(self, token: Token, environment: Environment, most: int) -> list[Environment]:
        """Keeps the environment of a paused episode, and returns the oldest ones above `most`.

        A run may have had more episodes at a time, of which the oldest may be the next one.
        """
        self._waiting[_key(token)] = environment
        self._most = max(self._most, most)
        surplus = list(self._waiting)[: max(len(self._waiting) - self._most, 0)]
        return [self._waiting.pop(key) for key in surplus]


def _key(token: Token) -> tuple[int | None, bytes]:
    return token.seed, bytes(token.actions)


def paused(episode: int, before: Any, actions: list[Any], kind: Any) -> Token:
    """Returns the token of a paused episode.

    Args:
        episode: The seed of its reset.
        before: Its actions in earlier unrolls.
        actions: Its actions in this one.
        kind: The type of an action.
    """
    latest = np.array(actions, kind)
    return Token(episode, np.concatenate([before, latest]) if len(before) else latest)


def new_episode_seeds(seed: int) -> Iterator[int]:
    """Yields the seeds of the episodes that a row starts.

    Args:
        seed: The seed of its evaluation.
    """
    count = 1
    while True:  # few rows need a second one
        yield int(np.random.SeedSequence(seed, spawn_key=(1,)).generate_state(count)[-1])
        count += 1


def evaluate_unrolls(
    domain: Any,
    solutions: Floats,
    seeds: Seeds,
    exploration: Exploration,
    unroll: Unroll,
    play: Callable[[int, Token], tuple[Record, int, Floats | None]],
    live: LiveEpisodes[Any],
    context: Floats | None = None,
) -> Evaluation:
    """Evaluates a batch of which some rows continue an episode, and the others play whole ones.

    The objective of a row that continues an episode is the sum of its rewards. It has no measures,
    as they are those of a whole episode. The lower ends of their ranges take their place.

    Args:
        domain: The domain, which evaluates the rows with whole episodes.
        solutions: ``(n, d)`` solutions.
        seeds: ``(n,)`` their evaluation seeds.
        exploration: How the rows explore.
        unroll: The episodes that they continue.
        play: Maps a row and its token to its record, the number of its environment steps, and its
            tally, if the domain has a context.
        live: The environments of paused episodes.
        context: The run's context, if the domain has one.
    """
    before, parts = live.replayed, []
    more = () if context is None else (context,)
    for row, token in enumerate(unroll.tokens):
        one = slice(row, row + 1)
        if token is None:
            rows = solutions[one], seeds[one], *more
            own = exploration.part(one)
            parts.append(domain.evaluate(*rows, experience=True, exploration=own))
            continue
        record, steps, tally = play(row, token)
        parts.append(
            Evaluation(
                record.rewards.sum(dtype=np.float64, keepdims=True),
                np.array([[low for low, _ in domain.measures.values()]]),
                {name: np.zeros((1, *shape)) for name, shape in domain.fields.items()},
                tally=None if tally is None else tally[np.newaxis],
                experience=[record],
                steps=np.array([steps], dtype=np.int64),
            )
        )
    if live.replayed > before:
        log.info("paused episodes were played again: %d decisions", live.replayed - before)
    return concatenate(parts)
