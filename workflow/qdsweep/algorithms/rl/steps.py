"""The consecutive steps of episodes, in the form that learners need."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsweep.domains.base import CUT, GOES_ON, Record
from qdsweep.domains.experience import join_records


class Steps(NamedTuple):
    """A sequence of t steps.

    Attributes:
        observations: ``(t, s)`` float32 before each step.
        following: ``(t, s)`` float32 after it.
        actions: ``(t,)`` int64 for discrete actions, otherwise ``(t, a)`` float32.
        rewards: ``(t,)`` float32.
        over: ``(t,)`` bool, whether it is the last step of its episode.
        cut: ``(t,)`` bool, whether the time limit truncated the episode there.
    """

    observations: NDArray[np.float32]
    following: NDArray[np.float32]
    actions: NDArray[np.int64] | NDArray[np.float32]
    rewards: NDArray[np.float32]
    over: NDArray[np.bool_]
    cut: NDArray[np.bool_]

    def at(self, rows: NDArray[np.int64]) -> "Steps":
        """Returns a selection of the steps."""
        return Steps._make(values[rows] for values in self)


def join(episodes: list[Record], *, discrete: bool) -> Steps:
    """Returns the steps of one or more records, in their order.

    Args:
        episodes: The records.
        discrete: Whether actions are one-hot vectors.
    """
    observations, actions, rewards, ends = join_records(episodes)
    over = ends != GOES_ON
    # For each ended episode, a record has one more observation than steps.
    before = np.arange(len(ends)) + np.cumsum(over) - over
    return Steps(
        observations[before],
        observations[before + 1],
        actions.argmax(axis=1) if discrete else actions,
        rewards,
        over,
        ends == CUT,
    )
