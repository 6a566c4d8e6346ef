"""The base classes of reinforcement learning: one policy explores, learns and is evaluated."""

from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from qdsweep.algorithms.base import Candidates, require_actor, spawn_seeds
from qdsweep.algorithms.ribs.archive_algorithm import ArchiveAlgorithm
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import Actor, Domain, Evaluation, Exploration, Floats, Record
from qdsweep.features.rl.learners.reward_scale import RewardScale
from qdsweep.host.process import trim_memory


class Learner(Protocol):
    """Improves a policy.

    It is pickled with the algorithm, and resumes bit for bit. Its pickled state has arrays and no
    objects of torch.

    Args:
        actor: The network of the policy.
        settings: The settings of the algorithm.
        seed: The seed of all its random draws.

    Raises:
        BadInput: It cannot learn such actions.
    """

    def __init__(self, actor: Actor, settings: Any, seed: np.random.SeedSequence) -> None: ...

    @property
    def policy(self) -> Floats:
        """The current policy, a solution ``(d,)`` of the domain."""
        ...

    def exploration(self, rows: int) -> Exploration:
        """Returns the exploration of this many rows of a batch."""
        ...

    def learn(self, episodes: list[Record]) -> None:
        """Learns from episodes, in their order. The list is empty if all have failed."""
        ...

    def change(self, settings: Any) -> None:
        """Changes the settings during a run."""
        ...


class RLAlgorithm(ArchiveAlgorithm):
    """Plays a learner's policy in exploring rows, which train it, and in greedy rows.

    An iteration has as many batches of `batch_size` exploring rows as are needed to sample the
    settings' `sampled_steps`. In every `evaluate_every`-th iteration, the first batch ends with
    greedy rows, which evaluate the policy with their own evaluation seeds. Only these are inserted
    in the archive.

    Args:
        experiment: The experiment.
        domain: Its domain.
        shared: The folder of centroids; None for arbitrary points.

    Raises:
        BadInput: The algorithm cannot learn from episodes of the domain.

    Attributes:
        learner_type: The class of the learner.
        learner: The learner.
        batch_size: Exploring rows of a batch.
        episodes: Records of exploring rows that the learner has not seen.
        sampled: Decisions of exploring rows in this iteration.
        reward_scale: The scale of rewards, where `normalize_rewards` is true.
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
        self.reward_scale = RewardScale()
        self.sampled = 0
        self._iteration = self._batch = 0
        self.is_over = False
        self._return: float | None = None

    def ask(self) -> Candidates | None:
        """Returns the current policy, once per row."""
        if self.is_over:
            self._iteration, self._batch, self.sampled = self._iteration + 1, 0, 0
            self.is_over, self.before = False, None
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
        """Returns whether the next batch has greedy rows."""
        return self._batch == 0 and self._iteration % self.settings.evaluate_every == 0

    def tell(self, candidates: Candidates, evaluation: Evaluation) -> None:
        """Inserts the greedy rows in the archive and keeps the episodes of the others."""
        greedy = slice(self.batch_size, None)
        if len(objective := evaluation.objective[greedy]):
            self.keep(evaluation.measures[greedy])
            self.insert(candidates, evaluation, greedy)
            self._return = float(objective.mean())
        played = (evaluation.experience or [])[: self.batch_size]
        if getattr(self.settings, "normalize_rewards", False):  # a replay buffer has no scale
            over = [False] * len(played)
            records = self.reward_scale.scale(played, over, self.settings.gamma)
        else:
            records = [record for record in played if record is not None]
        if self.settings.clip_rewards:
            records = [record._replace(rewards=np.sign(record.rewards)) for record in records]
        self.episodes += records
        self.sampled += sum(len(record.rewards) for record in records)
        # Without this, an iteration without any record might never end.
        self.is_over = self.sampled >= self.settings.sampled_steps or not records

    def learn(self) -> None:
        """Passes the new episodes to the learner."""
        episodes, self.episodes = self.episodes, []
        self.learner.learn(episodes)
        trim_memory()

    def metrics(self) -> dict[str, Any]:
        """Returns the archive's metrics and `return`, the mean of the latest greedy objectives."""
        return {**super().metrics(), "return": self._return}

    def change(self, key: str, value: Any) -> None:
        """Changes a setting of the algorithm and of its learner."""
        super().change(key, value)
        if key != "batch_size":
            self.learner.change(self.settings)


class Lagged(RLAlgorithm):
    """Learns from the previous iteration while workers play. The lag is fixed at any speed.

    Args: see `RLAlgorithm`.
    """

    def meanwhile(self) -> None:
        """Learns. The first batch of the iteration still plays the policy before this step."""
        self.learn()
