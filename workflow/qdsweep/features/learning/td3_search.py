"""TD3 (Fujimoto et al. 2018) without QD; an archive records its policies."""

from pathlib import Path

from qdsweep.algorithms.base import Candidates
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Domain, Evaluation
from qdsweep.features.learning.td3_algorithm import LearnerAlgorithm


class TD3Search(LearnerAlgorithm):
    """Plays the greedy actor, and copies of it with noise on the weights (Plappert et al. 2018).

    TD3's paper adds noise to the actions. Here the noise is on the weights, and the actions have
    none, so an archive can store the policy that was played.

    Args: see `LearnerAlgorithm`.
    """

    def __init__(self, experiment: Experiment, domain: Domain, shared: Path | None) -> None:
        super().__init__(experiment, domain, shared)
        self._new_steps = 0  # environment steps of the previous iteration

    def ask(self) -> Candidates | None:
        """Returns one batch per iteration, the greedy actor first."""
        self._asked = not self._asked
        if not self._asked:
            return None
        greedy = self.learner.greedy
        noise = self.settings.sigma * self._rng.standard_normal((self.batch_size, len(greedy)))
        noise[0] = 0.0
        return Candidates(greedy + noise, experience=True)

    def meanwhile(self) -> None:
        """Trains in proportion to the experience of the previous iteration."""
        self.learner.train(round(self.settings.training_ratio * self._new_steps))

    def tell(self, candidates: Candidates, evaluation: Evaluation) -> None:
        """Inserts the solutions in the archive, and passes their experience to the learner."""
        super().tell(candidates, evaluation)
        played = (record for record in evaluation.experience or () if record is not None)
        self._new_steps = sum(len(record.rewards) for record in played)
