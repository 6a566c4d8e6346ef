"""CMA-MEGA (ES) and CMA-MEGA (TD3, ES) of DQD-RL (Tjanaka et al. 2022, algorithms 1 and 2)."""

from pathlib import Path
from typing import Any

import numpy as np

from qdsweep.algorithms.base import Candidates, spawn_seeds
from qdsweep.algorithms.ribs.algorithm import (
    build_emitter,
    can_change,
    change_emitter,
    restarting,
)
from qdsweep.algorithms.ribs.archive_algorithm import ArchiveAlgorithm
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Domain, Evaluation, Floats
from qdsweep.features.learning.estimate import (
    centred_ranks,
    estimated_gradients,
    mirrored_samples,
)
from qdsweep.features.learning.settings import CMAMEGATD3ES, EstimatedCMAMEGA
from qdsweep.features.learning.td3 import TD3
from qdsweep.features.learning.td3_algorithm import require_vectors, teach


class EstimatingCMAMEGA(ArchiveAlgorithm):
    """CMA-MEGA with pyribs' emitter and the estimated jacobian of its mean.

    An iteration has two batches. The first is the mean and the samples around it. Only the mean is
    inserted. The second is the solutions that branch from the mean.

    In CMA-MEGA (TD3, ES), a critic replaces the estimate of the objective's gradient, and learns
    from all evaluations. The second batch then also has the greedy actor. The actor is inserted,
    but the emitter does not rank it.

    Args:
        experiment: The experiment; all seeds here derive from the first child of its seed.
        domain: Its domain.
        shared: The folder of centroids; None for arbitrary points.
    """

    def __init__(self, experiment: Experiment, domain: Domain, shared: Path | None) -> None:
        settings = experiment.algorithm
        assert isinstance(settings, EstimatedCMAMEGA)
        archive_seed, emitter_seed, noise_seed, critic_seed = spawn_seeds(experiment, 4)
        super().__init__(experiment, domain, shared, archive_seed)
        self._samples, branched = settings.sizes(experiment.batch_size)
        # The emitter counts the mean as one of its solutions.
        sized = experiment.model_copy(update={"batch_size": 1 + branched})
        made = build_emitter(settings.emitter, self.ribs_archive, sized, domain, emitter_seed)
        self._emitter: Any = made
        self._rng = np.random.default_rng(noise_seed)
        self._batch = 0
        self._critic: TD3 | None = None
        if isinstance(settings, CMAMEGATD3ES):
            self.needs_experience = True
            self._critic = TD3(require_vectors(experiment, domain), settings.learner, critic_seed)
        # (d,) the critic's gradient at the mean; None before the first training.
        self._objective_gradient: Floats | None = None

    @property
    def restarts(self) -> int:
        """Number of restarts of the emitter from another elite."""
        return int(self._emitter.restarts)

    def ask(self) -> Candidates | None:
        """Returns the mean with its samples, then the branched solutions, then None."""
        self._batch = (self._batch + 1) % 3
        if self._batch == 0:
            self.before = None
            return None
        if self._batch == 1:
            mean = self._emitter.ask_dqd()
            around = mirrored_samples(self._rng, mean[0], self.settings.sigma, self._samples)
            solutions = np.concatenate((mean, around))
        else:
            solutions = self._emitter.ask()
            if self._critic is not None:
                solutions = np.concatenate((solutions, self._critic.greedy[None]))
        return Candidates(solutions, experience=self.needs_experience)

    def meanwhile(self) -> None:
        """Trains the critic on earlier experience, and computes its gradient at the mean."""
        if self._critic is not None and self._critic.replay.size:
            self._critic.train(self.settings.training_steps)
            mean = self._emitter.ask_dqd()[0]
            self._objective_gradient = self._critic.gradient(
                mean, self.settings.gradient_observations
            )

    def tell(self, candidates: Candidates, evaluation: Evaluation) -> None:
        """Passes to the emitter first the estimated jacobian, then the branched solutions."""
        if self._batch == 1:
            jacobian = self._jacobian(candidates, evaluation)
            self.keep(evaluation.measures[:1])
            mean, info = self.insert(candidates, evaluation, slice(0, 1))
            self._emitter.tell_dqd(**mean, jacobian=jacobian[None], add_info=info)
        else:
            rows_told, info = self.insert(candidates, evaluation)
            ranked = slice(self._emitter.batch_size)
            rows_told, info = (
                {key: rows[ranked] for key, rows in of.items()} for of in (rows_told, info)
            )
            with restarting([self._emitter]):
                self._emitter.tell(**rows_told, add_info=info)
        if self._critic is not None:
            teach(self._critic, evaluation)

    def _jacobian(self, candidates: Candidates, evaluation: Evaluation) -> Floats:
        """Returns the gradients ``(1 + m, d)`` of objective and measures at the mean."""
        ranks = centred_ranks(np.column_stack((evaluation.objective, evaluation.measures))[1:])
        mean, samples = candidates.solutions[0], candidates.solutions[1:]
        jacobian = estimated_gradients(mean, samples, ranks, self.settings.sigma)
        if self._critic is not None:
            climb = self._objective_gradient
            self._objective_gradient = None
            jacobian[0] = self._rng.standard_normal(len(jacobian[0])) if climb is None else climb
        return jacobian

    def change(self, key: str, value: Any) -> None:
        """Changes a `mid_run` key of the emitter, or one of the base class."""
        match key.split("."):
            case ["algorithm", "emitter", name] if can_change(self._emitter, name):
                change_emitter(self._emitter, name, value)
            case _:
                super().change(key, value)
