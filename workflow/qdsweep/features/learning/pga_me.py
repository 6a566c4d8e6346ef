"""PGA-MAP-Elites (Nilsson & Cully 2021), in the version of DQD-RL (Tjanaka et al. 2022)."""

from pathlib import Path

import numpy as np

from qdsweep.algorithms.base import Candidates
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Domain, Floats
from qdsweep.features.learning.td3_algorithm import LearnerAlgorithm


class PGAMapElites(LearnerAlgorithm):
    """Mutates elites, half of them along the policy gradient of TD3's critic.

    The order of a batch is: iso+line mutants, the greedy actor, then elites that climbed the
    critic.

    Args: see `LearnerAlgorithm`.
    """

    def __init__(self, experiment: Experiment, domain: Domain, shared: Path | None) -> None:
        super().__init__(experiment, domain, shared)
        self._x0 = np.broadcast_to(np.asarray(domain.x0, dtype=float), (domain.solution_dim,))

    def ask(self) -> Candidates | None:
        """Returns one batch per iteration, which is noise around x0 until there is experience."""
        self._asked = not self._asked
        if not self._asked:
            return None
        climbing = round(self.batch_size * self.settings.gradient_fraction)
        mutants = self.batch_size - climbing
        ready = self.learner.replay.size and not self.ribs_archive.empty
        parts = self._later(mutants, climbing) if ready else self._first(mutants, climbing)
        return Candidates(np.concatenate(parts), experience=True)

    def meanwhile(self) -> None:
        """Trains on the experience of earlier iterations."""
        self.learner.train(self.settings.training_steps)

    def _first(self, mutants: int, climbing: int) -> list[Floats]:
        sigmas = ((mutants, self.settings.iso_sigma), (climbing, self.settings.first_sigma))
        return [self._x0 + sigma * self._noise(n) for n, sigma in sigmas]

    def _later(self, mutants: int, climbing: int) -> list[Floats]:
        made, settings = [], self.settings
        if mutants:
            elites, partners = self._elites(mutants), self._elites(mutants)
            line = settings.line_sigma * self._rng.standard_normal((mutants, 1))
            made.append(
                elites + settings.iso_sigma * self._noise(mutants) + line * (partners - elites)
            )
        if climbing:
            made.append(self.learner.greedy[None])
        if climbing > 1:
            made.append(
                self.learner.ascend(
                    self._elites(climbing - 1),
                    settings.gradient_steps,
                    settings.gradient_minibatch,
                    settings.gradient_lr,
                )
            )
        return made

    def _elites(self, count: int) -> Floats:
        elites: Floats = self.ribs_archive.sample_elites(count)["solution"]
        return elites

    def _noise(self, count: int) -> Floats:
        return self._rng.standard_normal((count, len(self._x0)))
