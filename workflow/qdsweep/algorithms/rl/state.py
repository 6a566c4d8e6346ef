"""What a reload file holds of a learner: generators, and arrays for torch's tensors."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


class Generators:
    """A learner's own states of the global generators, from which stable-baselines3 draws.

    Args:
        seed: Of both.
    """

    def __init__(self, seed: np.random.SeedSequence) -> None:
        for_numpy, for_torch = seed.spawn(2)
        self._numpy: Any = np.random.RandomState(np.random.MT19937(for_numpy)).get_state()
        generator = torch.Generator().manual_seed(int(for_torch.generate_state(1)[0]))
        self._torch = generator.get_state().numpy()

    @contextmanager
    def used(self) -> Iterator[None]:
        """Lends the process these states for the block; nobody else's draws are disturbed."""
        others = np.random.get_state(), torch.get_rng_state()
        np.random.set_state(self._numpy)
        torch.set_rng_state(torch.from_numpy(self._torch))
        try:
            yield
        finally:
            self._numpy, self._torch = np.random.get_state(), torch.get_rng_state().numpy()
            np.random.set_state(others[0])
            torch.set_rng_state(others[1])


def arrays(state: Any) -> Any:
    """Returns a `state_dict` with arrays for its tensors: what a reload file holds."""
    if isinstance(state, torch.Tensor):
        return state.detach().cpu().numpy().copy()
    return _each(arrays, state)


def tensors(state: Any) -> Any:
    """Returns what `arrays` was given."""
    if isinstance(state, np.ndarray):
        return torch.from_numpy(state.copy())
    return _each(tensors, state)


def _each(change: Callable[[Any], Any], state: Any) -> Any:
    if isinstance(state, dict):
        return {key: change(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(map(change, state))
    return state
