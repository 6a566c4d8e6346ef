"""Evaluations that average over episodes, and the measures of gymnasium tasks."""

import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from qdsweep.config.domain_keys import Measure
from qdsweep.config.own_code import load_function
from qdsweep.domains.base import Episode, Evaluation, Floats, Seeds, copied
from qdsweep.errors import BadInput

Rollout = Callable[[Floats, int], list[float]]
# `module:function` -> that function of the user's, whose result is a measure.
OwnMeasures = Mapping[str, Callable[[Episode], Any]]

# Measure -> function of one component over an episode of T steps, ``(T,)``.
_STATISTICS: dict[str, Callable[[Floats], Any]] = {
    "mean": np.mean,
    "min": np.min,
    "max": np.max,
    "range": np.ptp,
    "final": lambda series: series[-1],
    "mean_abs": lambda series: np.mean(np.abs(series)),
}


def episode_seeds(seed: int, episodes: int) -> list[int]:
    """Returns the seeds of an evaluation's episodes.

    A single episode has the seed of the evaluation; several episodes have its children.

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
        The means. With more than one episode, the field ``objective_std`` ``(n,)`` is the
        objective's standard deviation over the episodes (ddof 0).
    """
    solutions = np.ascontiguousarray(solutions, dtype=np.float64)
    # One mean per solution, because numpy may sum a whole batch in another order.
    played = [
        np.array([rollout(solution, child) for child in episode_seeds(seed, episodes)])
        for solution, seed in zip(solutions, seeds, strict=True)
    ]
    means = np.array([results.mean(axis=0) for results in played])
    fields = {
        name: np.array([results[:, 0].std() for results in played])
        for name in episode_fields(episodes)
    }
    return Evaluation(means[:, 0], means[:, 1:], fields)


def check_components(
    measures: Sequence[Measure], env: str, observations: int, actions: int
) -> None:
    """Refuses components that the environment lacks.

    Args:
        measures: The measures.
        env: The environment's id, for the message.
        observations: Components of an observation.
        actions: Components of an action; of a Discrete space, its number of actions.

    Raises:
        BadInput: A component is out of range.
    """
    for measure in measures:
        kind = "action" if measure.measure.endswith("_action") else "observation"
        size = actions if kind == "action" else observations
        if measure.component is not None and measure.component >= size:
            raise BadInput(
                f"domain.measures: {measure.measure} of component {measure.component}: an "
                f"{kind} of {env} has only the components 0 to {size - 1}"
            )


def load_own_measures(measures: Sequence[Measure]) -> OwnMeasures:
    """Imports the user's functions among measures.

    Raises:
        BadInput: A module or function is missing; the message names the measure.
    """
    functions = {}
    for number, measure in enumerate(measures):
        if measure.is_own:
            try:
                functions[measure.measure] = load_function(measure.measure)
            except BadInput as error:
                raise BadInput(f"domain.measures.{number} = {error}") from error
    return functions


def measure_episode(
    measures: Sequence[Measure],
    episode: Episode,
    own: OwnMeasures,
    touching: Sequence[frozenset[str]] = (),
    length: int | None = None,
) -> list[float]:
    """Returns the measures of an episode.

    Args:
        measures: The measures.
        episode: The episode, of T steps.
        own: The user's functions among the measures.
        touching: T sets of names, those of the geoms that touch the floor after each step.
        length: Steps of the episode; None for T.

    Raises:
        BadInput: A function of the user's does not return one finite number.
    """
    length = len(episode.actions) if length is None else length
    return [_value(measure, episode, own, touching, length) for measure in measures]


def _value(
    measure: Measure,
    episode: Episode,
    own: OwnMeasures,
    touching: Sequence[frozenset[str]],
    length: int,
) -> float:
    if measure.is_own:
        given = copied(episode)  # further measures and learners read the same episode
        for array in given[:3]:
            array.flags.writeable = False
        return _own_value(measure.measure, own[measure.measure](given))
    observations, actions = episode.observations[1:], episode.actions
    if measure.measure == "contact":
        return sum(measure.geom in names for names in touching) / len(touching)
    if measure.measure == "episode_length":
        return float(length)
    if measure.threshold is not None:  # only fraction_above has a threshold
        return float(np.mean(observations[:, measure.component] > measure.threshold))
    statistic, kind = measure.measure.rsplit("_", 1)
    source = actions if kind == "action" else observations
    return float(_STATISTICS[statistic](source[:, measure.component]))


def _own_value(target: str, result: Any) -> float:
    is_scalar = isinstance(result, np.generic | np.ndarray) and result.ndim == 0
    value = result.item() if is_scalar else result
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    raise BadInput(
        f"domain.measures: {target} returns {reprlib.repr(result)}. A measure must be one finite "
        "number per episode"
    )
