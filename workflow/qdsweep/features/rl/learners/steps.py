"""The consecutive steps of episodes, in the form that learners need."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qdsweep.domains.base import CUT, GOES_ON, Record
from qdsweep.domains.experience import join_records

# Steps of screens that a network evaluates at once: about 100 MB.
_BLOCK = 256


class Stacks:
    """Observations of screens as rows of their frames. A selection makes the stacks.

    Args:
        frames: ``(m, height * width)`` uint8 frames, each once.
        rows: ``(t, k)`` the rows of the frames of each observation, the newest last.
        image: (k, height, width).
    """

    def __init__(
        self, frames: NDArray[np.uint8], rows: NDArray[np.int64], image: tuple[int, int, int]
    ) -> None:
        self.frames, self.rows, self._image = frames, rows, image

    def __getitem__(self, selected: Any) -> NDArray[np.uint8]:
        """Returns the stacks ``(n, k, height, width)`` of n observations."""
        return self.frames[self.rows[selected]].reshape(-1, *self._image)


class Steps(NamedTuple):
    """A sequence of t steps.

    Attributes:
        observations: ``(t, s)`` float32 before each step, or the `Stacks` of screens.
        following: The same after it.
        actions: ``(t,)`` int64 for discrete actions, otherwise ``(t, a)`` float32.
        rewards: ``(t,)`` float32.
        over: ``(t,)`` bool, whether it is the last step of its episode.
        cut: ``(t,)`` bool, whether the time limit truncated the episode there, or it was paused.
        position: ``(t,)`` int64, the number of the step, from 0, in its row of an unroll or in its
            whole episode.
    """

    observations: Any
    following: Any
    actions: NDArray[np.int64] | NDArray[np.float32]
    rewards: NDArray[np.float32]
    over: NDArray[np.bool_]
    cut: NDArray[np.bool_]
    position: NDArray[np.int64]

    def at(self, rows: NDArray[np.int64]) -> "Steps":
        """Returns a selection of the steps."""
        return Steps._make(values[rows] for values in self)

    def blocks(self) -> Iterator["Steps"]:
        """Yields all steps in order, as arrays; see `in_blocks`."""
        for rows in in_blocks(np.arange(len(self.rewards)), isinstance(self.observations, Stacks)):
            yield self.at(rows)


def in_blocks(rows: NDArray[np.int64], on_screen: bool) -> Iterator[NDArray[np.int64]]:
    """Yields rows in order, at once or, where each is a stack of screens, in blocks."""
    size = _BLOCK if on_screen else len(rows)
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def join(
    episodes: list[Record], *, discrete: bool, image: tuple[int, int, int] | None = None
) -> Steps:
    """Returns the steps of one or more records, in their order.

    Args:
        episodes: The records.
        discrete: Whether actions are one-hot vectors.
        image: The form of an observation of screens, see `Actor.image`; else None.
    """
    kind = np.uint8 if image else np.float32
    observations, actions, rewards, ends = join_records(episodes, kind)[:4]
    over = ends != GOES_ON
    index, number = np.arange(len(ends)), np.cumsum(over) - over  # of the step, of its episode
    starts = np.append(0, 1 + np.flatnonzero(over)[:-1])  # of each episode
    lengths = np.array([len(record.rewards) for record in episodes])
    rows = np.repeat(np.arange(len(episodes)), lengths)
    row_starts = np.cumsum(lengths) - lengths
    leads = np.array([record.before for record in episodes])
    is_unroll = np.array([record.token is not None for record in episodes])
    position = index - np.where(is_unroll[rows], row_starts[rows], starts[number])
    # For each ended episode, a record has one more observation than steps.
    before = index + number + np.cumsum(leads)[rows]
    seen: Any
    following: Any
    if image:
        start = before[starts]
        start[number[row_starts]] -= leads  # a continued episode has frames before its steps here
        first = start[number][:, np.newaxis]
        latest = before[:, np.newaxis] + np.arange(1 - image[0], 1)
        seen = Stacks(observations, np.maximum(latest, first), image)
        following = Stacks(observations, np.maximum(latest + 1, first), image)
    else:
        seen, following = observations[before], observations[before + 1]
    return Steps(
        seen,
        following,
        actions.argmax(axis=1) if discrete else actions,
        rewards,
        over,
        ends == CUT,
        position,
    )
