"""Reinforcement learning with stable-baselines3's learners, which the extra `rl` brings.

torch with bits that repeat. The package imports it first, so that nothing of it comes before.
"""

import qdsweep.algorithms.rl  # noqa: F401 - before any module here imports torch
from qdsweep.errors import BadInput
from qdsweep.host.machine import apply_torch_baseline

_IS_AVX2 = apply_torch_baseline()  # before torch is imported, which reads it

try:
    import torch
except ModuleNotFoundError:
    raise
except ImportError as error:  # a build for another machine, a library of the system that is gone
    raise BadInput(f"torch cannot be imported ({error}): install it anew") from None

if _IS_AVX2 and torch.backends.cpu.get_cpu_capability() != "AVX2":
    raise BadInput(
        "torch was imported before its CPU settings were made, so results would depend on the "
        "machine: a domain or a metric of yours should import it in the functions that need it"
    )
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
