"""A synchronous IMPALA: V-trace corrects episodes of an earlier policy (Espeholt et al. 2018)."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from qdsweep.algorithms.pytorch import arrays, tensors
from qdsweep.domains.base import Actor, Exploration, Floats, Record
from qdsweep.features.rl.learners import internals
from qdsweep.features.rl.learners.on_policy import OnPolicyLearner
from qdsweep.features.rl.learners.policy import Lagged
from qdsweep.features.rl.learners.steps import Steps

RowNumbers = NDArray[np.int64]


def vtrace(
    rewards: Floats,
    values: Floats,
    following: Floats,
    last: NDArray[np.bool_],
    ratios: Floats,
    *,
    gamma: float,
    rho_bar: float,
    c_bar: float,
) -> tuple[Floats, Floats]:
    """Returns the targets of the values, and the advantages of the policy gradient.

    The t steps belong to consecutive unrolls. With ratios of 1 the targets are the n-step returns
    up to the end of each unroll (eq. 1).

    Args:
        rewards: ``(t,)`` rewards.
        values: ``(t,)`` V of the observation before each step.
        following: ``(t,)`` V of the observation after it, 0 where the step has ended the episode.
        last: ``(t,)`` whether it is the last step of its unroll.
        ratios: ``(t,)`` pi(a|x) / mu(a|x), where pi is the learning policy and mu the policy that
            played.
        gamma: Discount of later rewards.
        rho_bar: Upper bound of the ratios of temporal differences. It determines the fixed point.
        c_bar: Upper bound of the ratios of the trace. It determines the speed of convergence.

    Returns:
        ``(t,)`` v_s, and ``(t,)`` rho_s (r_s + gamma v_{s+1} - V(x_s)).
    """
    rho, c = np.minimum(ratios, rho_bar), np.minimum(ratios, c_bar)
    differences = rho * (rewards + gamma * following - values)
    carried = np.where(last, 0.0, gamma * c)
    corrections, later = np.empty_like(differences), 0.0
    for step in reversed(range(len(differences))):
        later = corrections[step] = differences[step] + carried[step] * later
    targets = values + corrections
    after = np.where(last, following, np.append(targets[1:], 0.0))
    return targets, rho * (rewards + gamma * after - values)


class IMPALALearner(OnPolicyLearner):
    """An actor-critic with the networks and the optimiser of stable-baselines3's A2C.

    Actors play with the current policy (lag 1) or with the policy of `lag - 1` batches ago. The
    learner learns from a batch while the next one is played, so the total lag is `lag`.

    Args: see `OnPolicyLearner`.

    Attributes: see `OnPolicyLearner`.
    """

    def __init__(self, actor: Actor, settings: Any, seed: np.random.SeedSequence) -> None:
        super().__init__(actor, settings, seed)
        # The policies of the next episodes to learn from, of the actors, ..., the current one.
        first = arrays(self.model.policy.state_dict())
        self._policies: deque[Any] = deque([first] * (settings.lag + 1), settings.lag + 1)

    @property
    def policy(self) -> Floats:
        """The weights ``(d,)`` of the actors' policy."""
        with self._as_of(self._policies[1]):
            return super().policy

    def exploration(self, rows: int) -> Exploration:
        """Draws actions from the distribution of the actors' policy."""
        with self._as_of(self._policies[1]):
            return super().exploration(rows)

    def learn(self, episodes: list[Record]) -> None:
        """Uses each unroll of the episodes once. It is called once per batch.

        Args:
            episodes: The records of the previous batch. The list is empty if all have failed.
        """
        if episodes:
            steps = self._join(episodes)
            self._advance(len(steps.rewards))
            internals.update_learning_rate(self.model)
            with self._as_of(self._policies[0]):
                _, played = self._evaluate_all(steps)
            ends = steps.position % self._settings.n_steps == self._settings.n_steps - 1
            last = ends | steps.over
            # Rows that continue episodes have unrolls of equal length, as in the original.
            unrolls = ends if self._settings.unroll else last
            with self._training():
                for rows in shuffled_unrolls(unrolls, self._settings.minibatch):
                    self._improve(steps, rows, unrolls[rows], last, played)
        self._policies.append(arrays(self.model.policy.state_dict()))

    def _improve(
        self,
        steps: Steps,
        rows: RowNumbers,
        ends: NDArray[np.bool_],
        last: NDArray[np.bool_],
        played: NDArray[np.float32],
    ) -> None:
        """Makes a gradient step.

        Args:
            steps: The t steps of an iteration.
            rows: ``(n,)`` the steps of the whole unrolls to learn from.
            ends: ``(n,)`` whether each is the last of its unroll.
            last: ``(t,)`` whether a step is the last of its unroll or its episode.
            played: ``(t,)`` logarithm of the probability of each action under the policy that
                played.
        """
        starts = [0, *(1 + np.flatnonzero(ends[:-1])), len(rows)]  # of unrolls, and the end

        def loss(unrolls: slice) -> tuple[Any, None]:
            part = rows[starts[unrolls.start] : starts[unrolls.stop]]
            return self._loss_of(steps.at(part), last[part], played[part], len(rows)), None

        self._differentiate(len(starts) - 1, loss)
        self._descend()

    def _loss_of(
        self, steps: Steps, last: NDArray[np.bool_], played: NDArray[np.float32], count: int
    ) -> Any:
        """Returns the part of whole unrolls in the mean loss of `count` steps; see `_improve`."""
        settings, policy = self._settings, self.model.policy
        seen, actions = self._tensor(steps.observations), self._tensor(steps.actions)
        values, log_probs, entropy = self._evaluate(seen, actions)
        current = arrays(values).astype(np.float64)
        following = np.append(current[1:], 0.0)
        with torch.no_grad():
            beyond = policy.predict_values(self._tensor(steps.following[last]))
        following[last] = arrays(beyond).ravel()
        following[steps.over & ~steps.cut] = 0.0
        targets, advantages = vtrace(
            steps.rewards.astype(np.float64),
            current,
            following,
            last,
            np.exp(arrays(log_probs).astype(np.float64) - played),
            gamma=settings.gamma,
            rho_bar=settings.rho_bar,
            c_bar=settings.c_bar,
        )
        gains = self._tensor(advantages.astype(np.float32)) * log_probs
        errors = (self._tensor(targets.astype(np.float32)) - values).square()
        return self._add(gains, errors, entropy, count)

    @contextmanager
    def _as_of(self, weights: Any) -> Iterator[None]:
        """Gives the networks earlier weights in a `with` block."""
        policy = self.model.policy
        now = arrays(policy.state_dict())
        policy.load_state_dict(tensors(weights))
        try:
            yield
        finally:
            policy.load_state_dict(tensors(now))


class IMPALA(Lagged):
    """Importance-weighted actor-learners (Espeholt et al. 2018), synchronous with each other.

    Args: see `RLAlgorithm`.
    """

    learner_type = IMPALALearner


def shuffled_unrolls(last: NDArray[np.bool_], count: int) -> Iterator[RowNumbers]:
    """Yields the rows of `count` unrolls at a time, in an order from numpy's global generator.

    Args:
        last: ``(t,)`` whether a step is the last of its unroll.
        count: Number of unrolls; the last yield may have fewer.
    """
    unrolls = np.split(np.arange(len(last)), 1 + np.flatnonzero(last)[:-1])
    order = np.random.permutation(len(unrolls))
    for start in range(0, len(order), count):
        yield np.concatenate([unrolls[unroll] for unroll in order[start : start + count]])
