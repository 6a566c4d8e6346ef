"""Reinforcement learning with stable-baselines3's learners, from the extra `rl`.

This package imports torch first and makes its results repeatable.
"""

import qdsweep.algorithms.rl  # noqa: F401 - before any module here imports torch
from qdsweep.errors import BadInput
from qdsweep.host.machine import apply_torch_baseline

_IS_AVX2 = apply_torch_baseline()  # before the import of torch, which reads it

try:
    import torch
except ModuleNotFoundError:
    raise
except ImportError as error:  # a build for another machine, or a missing system library
    raise BadInput(f"torch cannot be imported ({error}): install it again") from None

if _IS_AVX2 and torch.backends.cpu.get_cpu_capability() != "AVX2":
    raise BadInput(
        "torch was imported before qdsweep set its CPU settings, so results would depend on the "
        "machine: import it only inside functions of your domain or metric"
    )
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
