"""Evaluations that average over episodes."""

from collections.abc import Callable

import numpy as np

from qdsweep.domains.base import Evaluation, Floats, Seeds

Rollout = Callable[[Floats, int], list[float]]


def episode_seeds(seed: int, episodes: int) -> list[int]:
    """Returns the seeds of an evaluation's episodes.

    A single episode has the seed of the evaluation, several have children of it.

    Args:
        seed: The seed of the evaluation.
        episodes: Number of episodes.
    """
    if episodes == 1:
        return [int(seed)]
    return np.random.SeedSequence(int(seed)).generate_state(episodes).tolist()


def episode_fields(episodes: int) -> dict[str, tuple[int, ...]]:
    """Returns name -> shape of the extra fields of `evaluate_episodes`."""
    return {"objective_std": ()} if episodes > 1 else {}


def evaluate_episodes(
    rollout: Rollout, solutions: Floats, seeds: Seeds, episodes: int
) -> Evaluation:
    """Plays every solution's episodes and averages objective and measures.

    Args:
        rollout: Maps a solution ``(d,)`` and an episode's seed to the objective and the measures.
        solutions: ``(n, d)`` solutions.
        seeds: ``(n,)`` seeds of the evaluations.
        episodes: Number of episodes.

    Returns:
        The means; with more than one episode also the objective's standard deviation over them
        (of the episodes played, ddof 0), ``objective_std`` ``(n,)``.
    """
    solutions = np.ascontiguousarray(solutions, dtype=np.float64)
    # A mean for each solution alone: over the whole batch, numpy could sum in another order.
    played = [
        np.array([rollout(solution, one) for one in episode_seeds(seed, episodes)])
        for solution, seed in zip(solutions, seeds, strict=True)
    ]
    means = np.array([results.mean(axis=0) for results in played])
    fields = {
        name: np.array([results[:, 0].std() for results in played])
        for name in episode_fields(episodes)
    }
    return Evaluation(means[:, 0], means[:, 1:], fields)
