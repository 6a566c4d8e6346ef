"""The base of algorithms that learn from the steps of the episodes by TD3."""

from pathlib import Path
from typing import Any

import numpy as np

from qdsweep.algorithms.base import Candidates, require_actor, spawn_seeds
from qdsweep.algorithms.learning.base import ArchiveAlgorithm
from qdsweep.algorithms.learning.td3 import TD3
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Actor, Domain, Evaluation
from qdsweep.errors import BadInput


class LearnerAlgorithm(ArchiveAlgorithm):
    """An algorithm with a TD3 learner, in one batch an iteration.

    Args:
        experiment: The experiment; its algorithm has the settings of a `learner`.
        domain: Its domain.
        shared: The folder of centroids; None for arbitrary points.

    Raises:
        BadInput: The algorithm cannot learn from the episodes of the domain.

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
    """Passes the experience of an evaluation to a learner; a row that failed has none."""
    for record in evaluation.experience or ():
        if record is not None:
            learner.add(record)


def require_vectors(experiment: Experiment, domain: Domain) -> Actor:
    """Returns the network that a solution of a domain encodes, for TD3 to train.

    Args:
        experiment: The experiment.
        domain: Its domain.

    Raises:
        BadInput: The domain has none, or one whose actions are discrete, have no bounds, or a part
            with equal ones.
    """
    actor = require_actor(experiment, domain)
    algorithm, name = experiment.algorithm.name, experiment.domain.name
    if actor.low is None or actor.high is None:
        raise BadInput(
            f"algorithm {algorithm}: TD3 learns actions that are vectors with bounds, and those of "
            f"the domain {name} are discrete or have none; take another domain, or an algorithm "
            "that learns from the scores alone, such as map_elites_line or cma_mega_es"
        )
    if not (actor.low < actor.high).all():
        raise BadInput(
            f"algorithm {algorithm}: TD3 learns each part of an action, and of those of the domain "
            f"{name} one cannot change: low = {actor.low}, high = {actor.high}; take an "
            "environment without it"
        )
    return actor
