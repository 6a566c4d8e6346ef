"""What algorithms of reinforcement learning share: one policy explores, is judged, and learns."""

from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from qdsweep.algorithms.base import Candidates, require_actor, spawn_seeds
from qdsweep.algorithms.learning.base import ArchiveAlgorithm
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Actor, Domain, Evaluation, Exploration, Floats, Record


class Learner(Protocol):
    """What improves a policy.

    It is pickled with the algorithm and goes on bit for bit: its state is arrays, never objects of
    torch.

    Args:
        actor: The network of the policy.
        settings: Those of the algorithm.
        seed: Of all that it draws.

    Raises:
        BadInput: It cannot learn such actions.
    """

    def __init__(self, actor: Actor, settings: Any, seed: np.random.SeedSequence) -> None: ...

    @property
    def policy(self) -> Floats:
        """The policy of now: a solution ``(d,)`` of the domain."""
        ...

    def exploration(self, rows: int) -> Exploration:
        """How so many rows of a batch explore."""
        ...

    def learn(self, episodes: list[Record]) -> None:
        """Learns from episodes, in their order; there may be none, where all have failed."""
        ...

    def change(self, settings: Any) -> None:
        """Takes other settings in mid-run."""
        ...


class RLAlgorithm(ArchiveAlgorithm):
    """Plays a learner's policy: exploring rows to learn from, greedy rows to judge it by.

    An iteration has as many batches of `batch_size` exploring rows as it takes to sample the
    settings' `sampled_steps`. In every `evaluate_every`-th one, the first batch has greedy rows
    behind these, on evaluation seeds of their own. They alone are inserted in the archive.

    Args:
        experiment: The experiment.
        domain: Its domain.
        shared: The folder of centroids; None for any points.

    Raises:
        BadInput: Nothing can be learned from the episodes of the domain.

    Attributes:
        learner_type: The class of the learner.
        learner: The learner.
        batch_size: Exploring rows of a batch.
        episodes: What exploring rows have played and the learner has not seen.
        sampled: Environment steps of exploring rows in the iteration under way.
        is_over: Whether the iteration needs no more batches.
    """

    needs_experience = True
    learner_type: ClassVar[type[Learner]]

    def __init__(self, experiment: Experiment, domain: Domain, shared: Path | None) -> None:
        archive_seed, learner_seed = spawn_seeds(experiment, 2)
        super().__init__(experiment, domain, shared, archive_seed)
        actor = require_actor(experiment, domain)
        self.learner = self.learner_type(actor, self.settings, learner_seed)
        self.episodes: list[Record] = []
        self.sampled = 0
        self._iteration = self._batch = 0
        self.is_over = False
        self._return: float | None = None

    def ask(self) -> Candidates | None:
        """The policy of now, so many times."""
        if self.is_over:
            self._iteration, self._batch, self.sampled = self._iteration + 1, 0, 0
            self.is_over = False
            return None
        greedy = self.settings.evaluation_episodes if self._is_judged else 0
        exploration = self.learner.exploration(self.batch_size)
        zeros = np.zeros((greedy, exploration.scale.shape[1]))
        exploration = exploration._replace(scale=np.concatenate([exploration.scale, zeros]))
        self._batch += 1
        policy = self.learner.policy
        solutions = np.broadcast_to(policy, (self.batch_size + greedy, len(policy)))
        return Candidates(solutions, experience=True, exploration=exploration)

    @property
    def _is_judged(self) -> bool:
        """Whether the coming batch has greedy rows."""
        return self._batch == 0 and self._iteration % self.settings.evaluate_every == 0

    def tell(self, candidates: Candidates, evaluation: Evaluation) -> None:
        """Inserts the greedy rows in the archive and keeps the episodes of the others."""
        greedy = slice(self.batch_size, None)
        if len(objective := evaluation.objective[greedy]):
            self.insert(candidates, evaluation, greedy)
            self._return = float(objective.mean())
        played = (evaluation.experience or [])[: self.batch_size]
        records = [record for record in played if record is not None]
        self.episodes += records
        self.sampled += sum(len(record.rewards) for record in records)
        # Without any record there may never be enough of them.
        self.is_over = self.sampled >= self.settings.sampled_steps or not records

    def learn(self) -> None:
        """Gives the learner what it has not seen."""
        episodes, self.episodes = self.episodes, []
        self.learner.learn(episodes)

    def metrics(self) -> dict[str, Any]:
        """Those of the archive, and `return`, the mean objective of the latest greedy rows."""
        return {**super().metrics(), "return": self._return}

    def change(self, key: str, value: Any) -> None:
        """What the learner is made with, too."""
        super().change(key, value)
        if key != "batch_size":
            self.learner.change(self.settings)


class Lagged(RLAlgorithm):
    """Learns from the iteration before while workers play: a fixed lag, whoever is quick or slow.

    Args: see `RLAlgorithm`.
    """

    def meanwhile(self) -> None:
        """Learns, so that the first batch of an iteration is played by the policy before."""
        self.learn()
