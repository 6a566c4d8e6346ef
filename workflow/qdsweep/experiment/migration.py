"""Reload files of earlier releases: what their pickles name, and what their state is today.

A release that renames something in the payload of reload files adds to this module alone.
"""

import pickle
from collections.abc import Collection
from typing import IO, Any

from qdsweep.experiment.known_names import may_import, may_name
from qdsweep.experiment.state import State, no_seconds

# What earlier releases call what is elsewhere now.
_RENAMED = {
    ("qdsweep.experiment.reload", "_restore_store"): (
        "qdsweep.algorithms.ribs.internals",
        "restore_store",
    ),
}


class UnknownName(Exception):
    """A payload names what only a file with the user's own digest may name."""


def load(payload: IO[bytes], *, is_own: bool, plugins: Collection[str] = ()) -> State:
    """Returns the state that the payload of a reload file holds, of this release or before.

    Args:
        payload: The file, at its payload.
        is_own: Whether it is the user's own for sure; if not, it may name known names alone.
        plugins: The experiment's `module:name`.

    Raises:
        UnknownName: It names another; nothing of it was imported or called.
    """
    state = (_Unpickler(payload) if is_own else _Wary(payload, plugins)).load()
    vars(state).setdefault("told", [])
    if "scheduler" in vars(state):
        _give_algorithm(state)
    state.seconds = no_seconds() | state.seconds
    return state


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return super().find_class(*_RENAMED.get((module, name), (module, name)))


class _Wary(_Unpickler):
    def __init__(self, payload: IO[bytes], plugins: Collection[str]) -> None:
        super().__init__(payload)
        self._plugins = plugins

    def find_class(self, module: str, name: str) -> Any:
        module, name = _RENAMED.get((module, name), (module, name))
        if may_import(module, self._plugins):
            found = super().find_class(module, name)
            if may_name(module, name, found, self._plugins):
                return found
        raise UnknownName(f"{module}.{name}")


def _give_algorithm(state: State) -> None:
    """Up to 0.1.0 a state had pyribs' scheduler where it has an algorithm now."""
    from qdsweep.algorithms.ribs.algorithm import RibsAlgorithm

    state.algorithm = RibsAlgorithm(vars(state).pop("scheduler"), groups=0)
    if state.pending is not None:
        state.algorithm.asked(gradients=state.pending.batch.gradients)
