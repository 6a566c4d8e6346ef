"""Two iterations of an algorithm on random numbers, which make numba compile all of it."""

import types
from pathlib import Path
from typing import Any

import numpy as np

from qdsweep.algorithms.ribs.build import build_scheduler
from qdsweep.algorithms.ribs.centroids import Centroids
from qdsweep.config.experiment import Experiment
from qdsweep.domains import make_domain
from qdsweep.domains.base import Floats

ITERATIONS = 2
# Small sizes: what numba compiles depends on types alone.
SOLUTION_DIM = 10


class _NoCentroids(Centroids):
    """Random points for centroids: k-means would take half a minute."""

    def get(self, archive: Any, cells: int, ranges: list[tuple[float, float]]) -> Floats:
        return np.random.default_rng(0).random((cells, len(ranges)))


def rehearse(experiment: Experiment) -> None:
    """Imports an experiment's libraries and compiles what its algorithm calls.

    Args:
        experiment: The experiment. None of it is computed, and no plug-in is imported, as it
            could start threads.
    """
    if ":" not in experiment.domain.type + getattr(experiment.domain, "env", ""):
        make_domain(experiment.domain)
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
    )
    scheduler: Any = build_scheduler(experiment, domain, _NoCentroids(Path()))
    for _ in range(ITERATIONS):
        if experiment.algorithm.needs_jacobian:
            n = len(scheduler.ask_dqd())
            jacobian = rng.random((n, 1 + measures, SOLUTION_DIM))
            scheduler.tell_dqd(rng.random(n), rng.random((n, measures)), jacobian)
        n = len(scheduler.ask())
        scheduler.tell(rng.random(n), rng.random((n, measures)))
