"""Proportional priorities (Schaul et al. 2016, section 3.3 and appendix B.2.1): a sum tree."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdsweep.domains.base import Floats

Slots = NDArray[np.int64]


class Priorities:
    """The priority of each slot of a replay buffer; slots are drawn in proportion to it.

    A binary tree of sums: the children of node i are 2 i and 2 i + 1, the leaves are the slots. A
    sum is always of its two children, never updated by differences, so that the same priorities
    have the same bits whatever came before.

    Args:
        capacity: Number of slots; their priorities are 0 at first.
    """

    def __init__(self, capacity: int) -> None:
        self._first = 1 << max(capacity - 1, 1).bit_length()
        self._sums = np.zeros(2 * self._first)

    def __getstate__(self) -> dict[str, Any]:
        """Those priorities alone that are not 0."""
        held = np.flatnonzero(self._sums[self._first :])
        return {"first": self._first, "slots": held, "priorities": self[held]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Adds them up again."""
        self._first = state["first"]
        self._sums = np.zeros(2 * self._first)
        self[state["slots"]] = state["priorities"]

    def __getitem__(self, slots: Slots) -> Floats:
        """Returns the priorities of slots."""
        return self._sums[self._first + slots]

    def __setitem__(self, slots: Slots, priorities: Floats) -> None:
        """Sets the priorities of slots; of a slot that is named twice, the last one counts."""
        nodes = self._first + slots
        self._sums[nodes] = priorities
        while len(nodes) and nodes[0] > 1:
            nodes = np.unique(nodes // 2)
            self._sums[nodes] = self._sums[2 * nodes] + self._sums[2 * nodes + 1]

    def draw(self, uniform: Floats) -> Slots:
        """Draws slots, one from each of n equal parts of the sum of all priorities.

        Args:
            uniform: ``(n,)`` random numbers of [0, 1), which say where in each part.
        """
        count = len(uniform)
        wanted = (np.arange(count) + uniform) * (self._sums[1] / count)
        nodes = np.ones(count, dtype=np.int64)
        while nodes[0] < self._first:
            left = self._sums[2 * nodes]
            # Where rounding would lead into an empty half, the other one.
            right = (wanted >= left) & (self._sums[2 * nodes + 1] > 0)
            wanted = np.where(right, wanted - left, wanted)
            nodes = 2 * nodes + right
        return nodes - self._first
