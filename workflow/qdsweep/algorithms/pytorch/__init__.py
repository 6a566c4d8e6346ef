"""torch, from the extra `rl`, with repeatable results, and its states as arrays.

A module that imports torch first imports this package, or is in it.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from qdsweep.errors import BadInput
from qdsweep.host.machine import apply_torch_baseline, require_baseline

apply_torch_baseline()  # before the import of torch, which reads it

try:
    import torch
except ModuleNotFoundError:
    raise
except ImportError as error:  # a build for another machine, or a missing system library
    raise BadInput(f"torch cannot be imported ({error}): install it again") from None

require_baseline()
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # of a GPU: torch then repeats its bits


def arrays(state: Any) -> Any:
    """Returns a `state_dict` with arrays in place of tensors, for a reload file."""
    if isinstance(state, torch.Tensor):
        return state.detach().cpu().numpy().copy()
    return _each(arrays, state)


def is_finite(optimizer: torch.optim.Optimizer) -> bool:
    """Returns whether all moments of an optimiser are finite. Infinite ones allow no more steps."""
    moments = (moment for state in optimizer.state.values() for moment in state.values())
    return all(bool(torch.isfinite(torch.as_tensor(moment)).all()) for moment in moments)


def tensors(state: Any) -> Any:
    """Returns the `state_dict` that `arrays` converted."""
    if isinstance(state, np.ndarray):
        return torch.from_numpy(state.copy())
    return _each(tensors, state)


def _each(change: Callable[[Any], Any], state: Any) -> Any:
    if isinstance(state, dict):
        return {key: change(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(map(change, state))
    return state
