"""Reload files of earlier releases: what their pickles name, and what their state is today.

A release that renames something in the payload of reload files adds to this module alone.
"""

import pickle
from typing import IO, Any

from qdsweep.experiment.state import State, no_seconds

# What earlier releases call what is elsewhere now.
_RENAMED = {
    ("qdsweep.experiment.reload", "_restore_store"): (
        "qdsweep.algorithms.ribs.internals",
        "restore_store",
    ),
}


def load(payload: IO[bytes]) -> State:
    """Returns the state that the payload of a reload file holds, of this release or before."""
    state = _Unpickler(payload).load()  # the user's own file, see the README
    vars(state).setdefault("told", [])
    if "scheduler" in vars(state):
        _give_algorithm(state)
    state.seconds = no_seconds() | state.seconds
    return state


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return super().find_class(*_RENAMED.get((module, name), (module, name)))


def _give_algorithm(state: State) -> None:
    """Up to 0.1.0 a state had pyribs' scheduler where it has an algorithm now."""
    from qdsweep.algorithms.ribs.algorithm import RibsAlgorithm

    state.algorithm = RibsAlgorithm(vars(state).pop("scheduler"), groups=0)
    if state.pending is not None:
        state.algorithm.asked(gradients=state.pending.batch.gradients)
