"""The genetic algorithm of Such et al. (2017), arXiv:1712.06567, algorithm 1."""

from pathlib import Path

import numpy as np

from qdsweep.algorithms.base import Candidates, spawn_seeds
from qdsweep.algorithms.ribs.archive_algorithm import ArchiveAlgorithm
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Domain, Evaluation, Floats


class GeneticAlgorithm(ArchiveAlgorithm):
    """Truncation selection without crossover. The best of a generation survives unchanged.

    This elite is the best by one evaluation, while Such et al. play thirty more episodes of the ten
    best. It is evaluated again in each generation, with the seeds of that generation.

    Args:
        experiment: The experiment; all seeds here derive from the first child of its seed.
        domain: Its domain.
        shared: The folder of centroids; None for arbitrary points.
    """

    def __init__(self, experiment: Experiment, domain: Domain, shared: Path | None) -> None:
        archive_seed, seed = spawn_seeds(experiment, 2)
        super().__init__(experiment, domain, shared, archive_seed)
        self._rng = np.random.default_rng(seed)
        # The better solutions of the previous generation, the best first. At first only x0.
        self._better: Floats = np.array(domain.x0)[np.newaxis]
        self._generations = 0
        self._asked = False

    def ask(self) -> Candidates | None:
        """Returns a generation, then None."""
        self._asked = not self._asked
        if not self._asked:
            return None
        elites = min(self._generations, 1)
        better = self._better[: self.settings.parents]
        chosen = self._rng.integers(len(better), size=self.batch_size - elites)
        noise = self._rng.standard_normal((len(chosen), better.shape[1]))
        mutants = better[chosen] + self.settings.sigma * noise
        return Candidates(np.concatenate((better[:elites], mutants)))

    def tell(self, candidates: Candidates, evaluation: Evaluation) -> None:
        """Inserts all solutions, and keeps the better ones as parents."""
        self.insert(candidates, evaluation)
        best = np.argsort(-evaluation.objective, kind="stable")[: self.settings.parents]
        self._better = candidates.solutions[best]
        self._generations += 1
