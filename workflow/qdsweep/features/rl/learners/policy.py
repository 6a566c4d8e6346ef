"""The base classes of reinforcement learning: one policy explores, learns and is evaluated."""

from collections import deque
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, Protocol

import numpy as np

from qdsweep.algorithms.base import Candidates, require_actor, spawn_seeds
from qdsweep.algorithms.ribs.archive_algorithm import ArchiveAlgorithm
from qdsweep.config.experiment import Experiment
from qdsweep.domains.base import (
    GOES_ON,
    Actor,
    Domain,
    Evaluation,
    Exploration,
    Floats,
    Record,
    Token,
    Unroll,
)
from qdsweep.domains.experience import takes
from qdsweep.errors import BadInput
from qdsweep.features.rl.reward_scale import RewardScale
from qdsweep.host.process import trim_memory

# Exploring episodes whose mean return is reported, as stable-baselines3 and RLlib do.
_EPISODES = 100


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
    settings' `sampled_steps`. With the setting `unroll`, it has one batch, whose exploring rows
    continue the episodes of the last one. In every `evaluate_every`-th iteration, the first batch
    ends with greedy rows, which evaluate the policy with their own evaluation seeds. Only these are
    inserted in the archive.

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
        tokens: The episode that each exploring row continues, see `Unroll`.
        returns: Returns of the latest exploring episodes.
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
        if self.settings.unroll and not takes(domain, "unroll"):
            raise BadInput(
                f"algorithm.unroll = {self.settings.unroll}: the domain {experiment.domain.name} "
                "plays only whole episodes, as its `evaluate` takes no `unroll`. Leave it out, or "
                "see qdsweep.domains.base.Unroll"
            )
        self.learner = self.learner_type(actor, self.settings, learner_seed)
        self.episodes: list[Record] = []
        self.reward_scale = RewardScale()
        self.sampled = 0
        self._iteration = self._batch = 0
        self.is_over = False
        self._return: float | None = None
        self.__setstate__({})

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores the state. One of an earlier release has no unrolls and no returns."""
        rows = state.get("batch_size") or self.batch_size
        self.tokens = [Token()] * rows
        self.returns: deque[float] = deque(maxlen=_EPISODES)
        self._so_far = [0.0] * rows  # the return of each paused episode
        vars(self).update(state)

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
        unroll = None
        if self.settings.unroll:
            tokens = [*self.tokens, *[None] * greedy]
            unroll = Unroll(self.settings.unroll, tokens, self.batch_size)
        return Candidates(solutions, experience=True, exploration=exploration, unroll=unroll)

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
        for row, record in enumerate(played):
            self._note(row, record)
        if getattr(self.settings, "normalize_rewards", False):  # a replay buffer has no scale
            continues = [token.seed is not None for token in self.tokens[: len(played)]]
            played = self.reward_scale.scale(played, continues, self.settings.gamma)
        # A token is long, and the learner only needs to know that there is one.
        records = [
            record._replace(token=record.token and Token())
            for record in played
            if record is not None
        ]
        if self.settings.clip_rewards:
            records = [record._replace(rewards=np.sign(record.rewards)) for record in records]
        self.episodes += records
        self.sampled += sum(len(record.rewards) for record in records)
        # Without this, an iteration without any record might never end.
        self.is_over = self.sampled >= self.settings.sampled_steps or not records

    def _note(self, row: int, record: Record | None) -> None:
        """Keeps the returns of a row's ended episodes, and the one that its next unroll continues.

        A row whose evaluation has failed starts another episode.
        """
        self.tokens[row], going_on = Token(), 0.0
        if record is not None:
            ends = 1 + np.flatnonzero(record.ends != GOES_ON)
            returns = [
                float(rewards.sum(dtype=np.float64))
                for rewards in np.split(record.rewards, ends[:-1])
            ]
            returns[0] += self._so_far[row]
            if record.token is not None:
                self.tokens[row] = record.token
                if record.token.seed is not None:
                    going_on = returns.pop()
            self.returns.extend(returns)
        self._so_far[row] = going_on

    def learn(self) -> None:
        """Passes the new episodes to the learner."""
        episodes, self.episodes = self.episodes, []
        self.learner.learn(episodes)
        trim_memory()

    def metrics(self) -> dict[str, Any]:
        """Returns the archive's metrics and those of the policy.

        `return` is the mean of the latest greedy objectives. `exploring_return` is the mean of
        `returns`; it has the rewards themselves where `clip_rewards` gives the learner others.
        """
        exploring = fmean(self.returns) if self.returns else None
        return {**super().metrics(), "return": self._return, "exploring_return": exploring}

    def change(self, key: str, value: Any) -> None:
        """Changes a setting of the algorithm and of its learner."""
        super().change(key, value)
        if key != "batch_size":
            self.learner.change(self.settings)
            return
        more = self.batch_size - len(self.tokens)
        self.tokens = [*self.tokens, *[Token()] * more][: self.batch_size]
        self._so_far = [*self._so_far, *[0.0] * more][: self.batch_size]


class Lagged(RLAlgorithm):
    """Learns from the previous iteration while workers play. The lag is fixed at any speed.

    Args: see `RLAlgorithm`.
    """

    def meanwhile(self) -> None:
        """Learns. The first batch of the iteration still plays the policy before this step."""
        self.learn()
