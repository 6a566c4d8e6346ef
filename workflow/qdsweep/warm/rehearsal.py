"""Two iterations of an algorithm on random numbers, which make numba compile all of it.

A module of its own, as it imports numpy: the warm process makes its settings before.
"""

import types
from typing import Any

import numpy as np

from qdsweep.algorithms import import_plugins, make_algorithm
from qdsweep.config.experiment import Experiment
from qdsweep.domains import import_libraries
from qdsweep.domains.base import Actor, Domain, Evaluation
from qdsweep.records.dependencies import note_imports

_ITERATIONS = 2
# Small sizes: numba compiles by types only. SHAPE is also that of a linear policy.
SOLUTION_DIM = 10
SHAPE = (2, 4)


def rehearse(experiment: Experiment) -> None:
    """Imports an experiment's libraries and compiles what its algorithm calls.

    No user's domain is imported, as it could start threads. The user's own algorithms have to be
    imported; see `server.main`.
    """
    made = import_libraries(experiment.domain)
    import_plugins(experiment)
    note_imports(experiment.algorithm.plugins)
    rng = np.random.default_rng(0)
    measures = len(experiment.archive.dims or (1, 1))
    domain: Any = types.SimpleNamespace(
        solution_dim=SOLUTION_DIM,
        measures={str(index): (0.0, 1.0) for index in range(measures)},
        objective_range=(0.0, 1.0),
        x0=np.zeros(SOLUTION_DIM),
        step=0.5,
        fields={},
        jacobian=None,
        actor=_small(made),
    )
    algorithm = make_algorithm(experiment, domain, None)
    for _ in range(_ITERATIONS):
        while (candidates := algorithm.ask()) is not None:
            n = len(candidates.solutions)
            jacobian = rng.random((n, 1 + measures, SOLUTION_DIM))
            evaluation = Evaluation(rng.random(n), rng.random((n, measures)), jacobian=jacobian)
            algorithm.tell(candidates._replace(seeds=np.zeros(n, np.uint32)), evaluation)


def _small(domain: Domain | None) -> Actor | None:
    """Returns a small network with a domain's kind of actions; None where it has no network."""
    actor = getattr(domain, "actor", None)
    if actor is None:
        return None
    bounds = None if actor.low is None else np.ones(SHAPE[0])
    low = None if bounds is None else -bounds
    return Actor((SHAPE,), True, "tanh", low, bounds, actor.discrete)
