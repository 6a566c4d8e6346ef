"""Reinforcement learning with stable-baselines3's learners, from the extra `rl`."""

import qdsweep.algorithms.pytorch  # noqa: F401 - before any module here imports torch
