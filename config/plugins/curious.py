"""Example of your own algorithm: MAP-Elites with curiosity-driven selection.

Cully and Demiris, Quality and Diversity Optimization (2018). `config/experiments/
arm_own_algorithm.yaml` uses it; `qdsweep check --algorithm curious:Curious` tests it.
"""

import numpy as np
from ribs.archives import GridArchive

from qdsweep.algorithms.base import SEED, Algorithm, Candidates
from qdsweep.algorithms.ribs.archives import ResultArchive


class Curious(Algorithm):
    """Parents are drawn in proportion to how often the archive accepted their children.

    It gets the arguments that its signature asks for by name. Its state is in its attributes: the
    whole object is pickled between two batches.

    Args:
        solution_dim: Parameters of a solution.
        dims: Cells along each measure.
        ranges: Lower and upper end of each measure.
        qd_score_offset: The QD score subtracts it from each objective.
        extra_fields: Further values of an elite: the domain's fields and the seed.
        x0: The start of the search ``(d,)``.
        batch_size: Children in an iteration.
        seed: The seed of all its randomness.
        sigma: Mutation scale [parameter units].
        reward: An accepted child adds it to the curiosity of its parent.
        penalty: A rejected child subtracts it.
    """

    def __init__(
        self,
        solution_dim,
        dims,
        ranges,
        qd_score_offset,
        extra_fields,
        x0,
        batch_size,
        seed,
        sigma=0.1,
        reward=1.0,
        penalty=0.5,
    ):
        self.grid = GridArchive(
            solution_dim=solution_dim,
            dims=dims,
            ranges=ranges,
            qd_score_offset=qd_score_offset,
            extra_fields=extra_fields,
        )
        self.archive = ResultArchive(self.grid)
        self.curiosity = np.ones(self.grid.cells)
        self.rng = np.random.default_rng(seed)
        self.x0, self.batch_size, self.sigma = x0, batch_size, sigma
        self.reward, self.penalty = reward, penalty
        self.parents = None  # cells of the parents of the current batch
        self.is_asked = False

    def ask(self):
        """Returns one batch of children per iteration, then None."""
        self.is_asked = not self.is_asked
        if not self.is_asked:
            return None
        start = np.tile(self.x0, (self.batch_size, 1))
        if not self.grid.empty:
            elites = self.grid.data()
            weights = self.curiosity[elites["index"]]
            drawn = self.rng.choice(len(weights), self.batch_size, p=weights / weights.sum())
            self.parents, start = elites["index"][drawn], elites["solution"][drawn]
        return Candidates(start + self.sigma * self.rng.normal(size=start.shape))

    def tell(self, candidates, evaluation):
        """Adds the children, and rewards the parents of accepted ones."""
        kept = {**evaluation.fields, SEED: candidates.seeds}  # the seed, so that elites replay
        status = self.grid.add(
            candidates.solutions, evaluation.objective, evaluation.measures, **kept
        )["status"]
        cells = self.grid.index_of(evaluation.measures)
        if self.parents is not None:
            change = np.where(status > 0, self.reward, -self.penalty)
            np.add.at(self.curiosity, self.parents, change)
            self.curiosity = self.curiosity.clip(min=0.05)
        self.curiosity[cells[status > 0]] = 1.0  # the initial curiosity of a new elite

    def metrics(self):
        """Returns those of the archive; this algorithm never restarts."""
        return {**self.archive.metrics(), "restarts": 0}
