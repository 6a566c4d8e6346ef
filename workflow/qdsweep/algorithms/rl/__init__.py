"""Reinforcement learning with stable-baselines3's learners, which the extra `rl` brings."""

import qdsweep.algorithms.rl.pytorch  # noqa: F401 - before any module here imports torch
