"""The base class of algorithms that learn from the steps of episodes by TD3."""

from pathlib import Path
from typing import Any

import numpy as np

from qdsweep.algorithms.base import Candidates, require_actor, spawn_seeds
from qdsweep.algorithms.ribs.archive_algorithm import ArchiveAlgorithm
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Actor, Domain, Evaluation
from qdsweep.errors import BadInput
from qdsweep.features.learning.td3 import TD3


class LearnerAlgorithm(ArchiveAlgorithm):
    """An algorithm with a TD3 learner and one batch per iteration.

    Args:
        experiment: The experiment; its algorithm has the settings of a `learner`.
        domain: Its domain.
        shared: The folder of centroids; None for arbitrary points.

    Raises:
        BadInput: The algorithm cannot learn from episodes of the domain.

    Attributes:
        learner: The learner.
        batch_size: Solutions of an iteration.
    """

    needs_experience = True

    def __init__(self, experiment: Experiment, domain: Domain, shared: Path | None) -> None:
        settings: Any = experiment.algorithm
        archive_seed, learner_seed, noise_seed = spawn_seeds(experiment, 3)
        self.learner = TD3(require_vectors(experiment, domain), settings.learner, learner_seed)
        super().__init__(experiment, domain, shared, archive_seed)
        self._rng = np.random.default_rng(noise_seed)
        self._asked = False

    def tell(self, candidates: Candidates, evaluation: Evaluation) -> None:
        """Inserts the solutions in the archive, and passes their experience to the learner."""
        self.insert(candidates, evaluation)
        teach(self.learner, evaluation)


def teach(learner: TD3, evaluation: Evaluation) -> None:
    """Passes the experience of an evaluation to a learner. A failed row has no experience."""
    for record in evaluation.experience or ():
        if record is not None:
            learner.add(record)


def require_vectors(experiment: Experiment, domain: Domain) -> Actor:
    """Returns the network that a solution of a domain encodes, for TD3 to train.

    Args:
        experiment: The experiment.
        domain: Its domain.

    Raises:
        BadInput: The domain has no network, its actions are discrete or have no bounds, or the
            bounds of a component are equal.
    """
    actor = require_actor(experiment, domain)
    algorithm, name = experiment.algorithm.name, experiment.domain.name
    if actor.low is None or actor.high is None:
        raise BadInput(
            f"algorithm {algorithm}: TD3 needs actions that are vectors with bounds, and the "
            f"actions of the domain {name} are discrete or have no bounds. Use another domain, or "
            "an algorithm that only needs scores, such as map_elites_line or cma_mega_es"
        )
    if not (actor.low < actor.high).all():
        raise BadInput(
            f"algorithm {algorithm}: TD3 learns each component of an action, and one component in "
            f"the domain {name} cannot change: low = {actor.low}, high = {actor.high}. Use an "
            "environment without it"
        )
    return actor
