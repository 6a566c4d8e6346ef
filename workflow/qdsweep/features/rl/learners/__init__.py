"""The learners of stable-baselines3, from the extra `rl`."""

import qdsweep.algorithms.pytorch  # noqa: F401 - before any module here imports torch
