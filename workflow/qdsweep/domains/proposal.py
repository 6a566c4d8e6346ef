"""Proposes a domain for a gymnasium task, by playing random policies."""

import re
import time
from collections.abc import Sequence
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np

from qdsweep.config.domain import Gymnasium
from qdsweep.config.domain_keys import Measure
from qdsweep.domains import make_domain
from qdsweep.domains.base import Floats
from qdsweep.domains.environments import find_spec, make_env
from qdsweep.domains.gymnasium_task import make_vector
from qdsweep.domains.policies import make_actions
from qdsweep.errors import BadInput

_POLICIES = 64
_FEWEST, _SECONDS = 8, 30  # a slow task plays fewer policies
# The largest share of a measure's variance that may be due to the seeds of episodes.
_NOISE = 0.3
_COMPONENTS = 16  # of an observation or action; pictures have too many to try all
_BINS = 8
_ANY = (-1e300, 1e300)
_EPISODES = "episodes: 1  # an evaluation averages them: more episodes, less noise, more steps"


class Proposal(NamedTuple):
    """A domain for a task.

    Attributes:
        name: Its name, for a preset.
        yaml: The preset.
        lines: A report of the tried measures, for the user.
        is_stochastic: Whether an episode depends on its seed.
    """

    name: str
    yaml: str
    lines: list[str]
    is_stochastic: bool


def propose(env_id: str) -> Proposal:
    """Plays random linear policies, and takes the two measures in which they differ most.

    Each policy plays two episodes. Measures in which these differ as much as policies do are left
    out, unless fewer than two remain.

    Args:
        env_id: `Name-vN`, or `module:Name-vN`.

    Raises:
        BadInput: The task cannot be made, or no two measures differ.
    """
    env = make_env(spec := find_spec(env_id), {})
    inputs, _ = make_vector(env.observation_space, env_id)
    actions = make_actions(env.action_space, env_id)
    env.close()
    kind = "mean_abs_action" if actions.bounds else "mean_action"
    seen = ("mean_observation", "range_observation", "final_observation")
    components = product(seen, range(min(inputs, _COMPONENTS)))
    done = product([kind], range(min(actions.size, _COMPONENTS)))
    parts = [{"measure": name, "component": place} for name, place in chain(components, done)]
    parts.append({"measure": "episode_length"})
    tried = [Measure.model_validate({**part, "range": _ANY}) for part in parts]
    base: dict[str, Any] = {"type": "gymnasium", "env": env_id, "objective_range": (-1.0, 1.0)}
    clips = {"clip_actions": True} if actions.one_sided else {}
    domain = make_domain(Gymnasium.model_validate(base | clips | {"measures": tried}))
    rng = np.random.default_rng(0)
    solutions = rng.normal(size=(_POLICIES, domain.solution_dim))
    returns, measures, end = [], [], time.monotonic() + _SECONDS
    for number, solution in enumerate(solutions):
        if number >= _FEWEST and time.monotonic() > end:
            break
        seeds = np.array([number, _POLICIES + number], dtype=np.uint32)
        result = domain.evaluate(np.stack([solution, solution]), seeds)
        returns.append(result.objective)
        measures.append(result.measures)
    values = np.array(measures)
    plays = np.concatenate([np.array(returns)[:, :, np.newaxis], values], axis=2)
    is_stochastic = not np.array_equal(plays[:, 0], plays[:, 1], equal_nan=True)
    first, second = _most_different(values, env_id)
    chosen = [(tried[place], _range(values[:, :, place])) for place in (first, second)]
    low, high = _range(np.array(returns))
    if spec.reward_threshold is not None:
        high = max(high, float(spec.reward_threshold))
    text = [
        f"# Measures and ranges are those of {len(returns)} random policies: change them.",
        "type: gymnasium",
        f"env: {env_id}",
        *(["clip_actions: true"] if clips else []),
        *([_EPISODES] if is_stochastic else []),
        f"objective_range: [{_text(low)}, {_text(high)}]",
        "measures:",
        *(
            f"  - {{{_keys(measure)}, range: [{', '.join(map(_text, ends))}]}}"
            for measure, ends in chosen
        ),
    ]
    lines = [
        f"{len(returns)} random policies of {env_id} had returns from {np.min(returns):g} to "
        f"{np.max(returns):g}.",
        f"Of {len(tried)} measures, the policies differ most in:",
        *(f"  {measure.label}: {' to '.join(map(_text, ends))}" for measure, ends in chosen),
    ]
    if is_stochastic:
        lines.append(
            "A policy's episode depends on its seed, so each elite is kept for one lucky episode. "
            "The sweep therefore has the key reevaluate, and the preset has episodes: see "
            "docs/tutorials/noise.md."
        )
    name = re.sub(r"[^a-z0-9]+", "_", env_id.rpartition(":")[2].lower()).strip("_")
    return Proposal(name, "\n".join(text) + "\n", lines, is_stochastic)


def _keys(measure: Measure) -> str:
    component = "" if measure.component is None else f", component: {measure.component}"
    return f"measure: {measure.measure}{component}"


def _text(value: float) -> str:
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


def _range(values: Floats) -> tuple[float, float]:
    """Returns a range with rounded ends that extends a tenth beyond the values on each side.

    The ends have as many digits as keep them near that.
    """
    low, high = float(values.min()), float(values.max())
    margin = max(0.1 * (high - low) or 1.0, 2 * float(np.spacing(max(abs(low), abs(high)))))
    unit = 10.0 ** np.floor(np.log10(max(high - low, 1e-12)) - 1) if high > low else 1.0
    first, last = np.floor((low - margin) / unit) * unit, np.ceil((high + margin) / unit) * unit
    for digits in range(6, 17):
        ends = float(f"{first:.{digits}g}"), float(f"{last:.{digits}g}")
        beyond = low - ends[0], ends[1] - high
        if margin / 2 <= min(beyond) and max(beyond) <= 3 * margin:
            return ends
    return low - margin, high + margin


def _most_different(values: Floats, env_id: str) -> tuple[int, int]:
    """Returns the index of the measure with the most entropy, and of the one that adds most to it.

    The entropy is that of a histogram with `_BINS` equal bins per measure.

    Args:
        values: ``(n, 2, m)`` measures of n policies in two episodes.
        env_id: The task, for the message.
    """
    noise = np.square(values[:, 0] - values[:, 1]).mean(axis=0) / 2
    repeats = noise <= _NOISE * values.reshape(-1, values.shape[2]).var(axis=0)
    bins = np.zeros(values.shape[::2], dtype=int)
    for place, column in enumerate(values[:, 0].T):
        low, high = column.min(), column.max()
        if np.isfinite(column).all() and high - low > 1e-6 * max(abs(low), abs(high)):
            bins[:, place] = np.minimum((column - low) / (high - low) * _BINS, _BINS - 1)
    for tried in (bins * repeats, bins):
        alone = [_entropy(column) for column in tried.T]
        first = int(np.argmax(alone))
        both = [_entropy(_BINS * tried[:, first] + column) for column in tried.T]
        second = int(np.argmax(both))
        if alone[first] > 0 and both[second] > alone[first]:
            return first, second
    raise BadInput(
        f"init --gym {env_id}: random policies do not differ in any two of {values.shape[2]} "
        "measures: write a domain with your own measures (qdsweep init FOLDER has an example)"
    )


def _entropy(bins: Sequence[int] | np.ndarray) -> float:
    share = np.unique(bins, return_counts=True)[1] / len(bins)
    return float(-(share * np.log(share)).sum())
