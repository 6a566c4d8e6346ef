"""ME-ES (Colas et al. 2020), explore-exploit, with the settings that DQD-RL really used.

Parents are chosen as in the paper's ME-ES for exploration. DQD-RL's configuration asks for the
paper's choice for damage recovery. But its configurations share a dictionary, so it used the one
for exploration.
"""

from collections import deque
from pathlib import Path

import numpy as np
from scipy.spatial import KDTree

from qdsweep.algorithms.base import Candidates, Cells, spawn_seeds
from qdsweep.algorithms.ribs import ribs
from qdsweep.algorithms.ribs.archive_algorithm import ArchiveAlgorithm
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Domain, Evaluation, Floats
from qdsweep.features.learning.estimate import (
    centred_ranks,
    estimated_gradients,
    mirrored_samples,
)

# A climb in novelty starts at any elite (with this probability), or at one of the most novel ones.
_ANY, _MOST_NOVEL = 0.1, 5
# A climb in the objective starts at the best elite (with this probability), or at one of the better
# ones in the newest cells.
_BEST, _NEWEST, _BETTER = 0.5, 5, 2
_NEW = 2  # pyribs' status of the first solution in a cell


class MapElitesES(ArchiveAlgorithm):
    """Climbs from one elite after another, in turn towards the objective and towards novelty.

    An iteration has two batches: samples around the parent, then the parent after its step. Only
    the latter is inserted. The novelty of a point in the measure space is its mean squared
    distance to the nearest earlier parents, in fractions of the measures' ranges.

    Args:
        experiment: The experiment; all seeds here derive from the first child of its seed.
        domain: Its domain.
        shared: The folder of centroids; None for arbitrary points.
    """

    def __init__(self, experiment: Experiment, domain: Domain, shared: Path | None) -> None:
        archive_seed, seed = spawn_seeds(experiment, 2)
        super().__init__(experiment, domain, shared, archive_seed)
        self._rng = np.random.default_rng(seed)
        self._samples = experiment.batch_size - 1
        self._low = domain.objective_range[0]
        self._scale = 1 / np.ptp(list(domain.measures.values()), axis=1)
        # Scaled measures of every parent, and the cells that were filled most recently.
        self._parents = np.empty((0, len(domain.measures)))
        self._newest: deque[int] = deque(maxlen=_NEWEST)
        # The objective comes first, because novelty needs earlier parents.
        self._exploring = False
        self._optimizer = self._start(domain.x0)
        self._climbed = self._restarts = self._batch = 0

    @property
    def restarts(self) -> int:
        """Number of times that another elite became the parent."""
        return self._restarts

    def ask(self) -> Candidates | None:
        """Returns the samples, then the parent after its step, then None."""
        self._batch = (self._batch + 1) % 3
        if self._batch == 0:
            return None
        if self._batch == 2:
            return Candidates(self._optimizer.theta[None].copy())
        if self._climbed >= self.settings.generations:
            self._exploring = not self._exploring
            self._optimizer = self._start(self._elite())
            self._climbed = 0
            self._restarts += 1
        mean = self._optimizer.theta
        return Candidates(mirrored_samples(self._rng, mean, self.settings.sigma, self._samples))

    def tell(self, candidates: Candidates, evaluation: Evaluation) -> None:
        """Makes a step, then inserts the parent."""
        if self._batch == 1:
            measures = evaluation.measures
            values = self._novelty(measures) if self._exploring else evaluation.objective
            ranks = centred_ranks(values[:, None])
            mean, samples = self._optimizer.theta, candidates.solutions
            gradients = estimated_gradients(mean, samples, ranks, self.settings.sigma)
            self._optimizer.step(gradients[0])
            return
        _, info = self.insert(candidates, evaluation)
        if info["status"][0] == _NEW:
            self._newest.append(int(self.archive.cells_of(evaluation.measures)[0]))
        self._parents = np.concatenate((self._parents, evaluation.measures * self._scale))
        self._climbed += 1

    def _start(self, solution: Floats) -> ribs.emitters.opt.AdamOpt:
        return ribs.emitters.opt.AdamOpt(solution, lr=self.settings.lr, l2_coeff=self.settings.l2)

    def _novelty(self, measures: Floats) -> Floats:
        """Returns the novelty ``(n,)`` of ``(n, m)`` measures."""
        nearest = range(1, min(self.settings.neighbors, len(self._parents)) + 1)
        distances, _ = KDTree(self._parents).query(measures * self._scale, k=nearest)
        return np.asarray((distances**2).mean(axis=1))

    def _elite(self) -> Floats:
        """Returns the solution ``(d,)`` to climb from next."""
        if self.ribs_archive.empty:  # thresholds may have refused every solution
            return np.array(self._optimizer.theta)
        elites = self.ribs_archive.data(["index", "objective", "measures"])
        objective, novelty = elites["objective"], self._novelty(elites["measures"])
        if self._exploring and self._rng.random() < _ANY:
            chosen = int(self._rng.integers(len(objective)))
        elif self._exploring:
            chosen = self._proportional(_highest(novelty, _MOST_NOVEL), novelty)
        elif self._rng.random() < _BEST:
            chosen = int(np.argmax(objective))
        else:
            newest = np.flatnonzero(np.isin(elites["index"], self._newest))
            better = newest[_highest(objective[newest], _BETTER)]
            chosen = self._proportional(better, objective - self._low)
        _, elite = self.ribs_archive.retrieve_single(elites["measures"][chosen])
        return np.asarray(elite["solution"])

    def _proportional(self, rows: Cells, weights: Floats) -> int:
        """Draws one of the rows by weight, or uniformly if no weight is positive."""
        chances = np.maximum(weights[rows], 0)
        if not chances.any():
            chances = np.ones(len(rows))
        return int(self._rng.choice(rows, p=chances / chances.sum()))


def _highest(values: Floats, count: int) -> Cells:
    """Returns the indices of the highest values, the highest first."""
    return np.argsort(-values, kind="stable")[:count]
