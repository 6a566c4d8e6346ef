"""Algorithms that estimate gradients, or learn them from the steps of episodes."""

import qdsweep.algorithms.ribs  # noqa: F401 - before any module here imports pyribs
