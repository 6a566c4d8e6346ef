"""LunarLander-v3 with a linear policy: the task of pyribs' examples/lunar_lander.py."""

import math

import numpy as np

from qdsweep.domains import lean_lander
from qdsweep.domains.base import Evaluation, Floats, Seeds
from qdsweep.domains.environments import find_spec, make_env
from qdsweep.domains.episodes import episode_fields, evaluate_episodes

_ACTIONS, _OBSERVATIONS = 4, 8
_HUGE = 1e200
_X, _Y_VELOCITY, _LEFT_LEG, _RIGHT_LEG = 0, 3, 6, 7  # components of an observation


class LunarLander:
    """A landing, flown by argmax(W observation).

    The results equal those of pyribs' example for the same seed, bit for bit. One environment
    is kept: unlike other Box2D environments, LunarLander makes a new physics world in `reset`.

    Attributes: see `qdsweep.domains.base.Domain`.
    """

    def __init__(self, episodes: int) -> None:
        """Makes the environment.

        Args:
            episodes: Landings that an evaluation averages.

        Raises:
            BadInput: Box2D is missing.
        """
        spec = find_spec("LunarLander-v3")
        self._env = make_env(spec, {})
        self._limit = spec.max_episode_steps or 1000
        self._lean = None
        differing = lean_lander.differing_versions()
        if self._env.render_mode is not None:
            pass  # the fast path takes no steps that could be seen
        elif differing:
            self.remark = (
                "the lunar lander's fast path is proven with other versions than "
                f"{', '.join(f'{name} {version}' for name, version in differing.items())}: "
                "the plain path is taken, with the same results"
            )
        else:
            self._lean = lean_lander.LeanLander(self._env.unwrapped, self._limit)
        self._episodes = episodes
        self.solution_dim = _ACTIONS * _OBSERVATIONS
        self.measures = {"impact x-position": (-1.0, 1.0), "impact y-velocity": (-3.0, 0.0)}
        self.objective_range = (-600.0, 300.0)
        self.fields = episode_fields(episodes)

    def evaluate(self, solutions: Floats, seeds: Seeds) -> Evaluation:
        """Evaluates a batch.

        Args:
            solutions: ``(n, 32)`` weights W, ``(4, 8)`` row by row.
            seeds: ``(n,)`` seeds of the terrain and of the lander's first push.
        """
        return evaluate_episodes(self._land, solutions, seeds, self._episodes)

    def _land(self, solution: Floats, seed: int) -> list[float]:
        """Returns the return, and x-position and y-velocity when a leg first touches the ground.

        If no leg ever does: the last x-position and the fastest descent.
        """
        env = self._env
        weights = solution.reshape(_ACTIONS, _OBSERVATIONS)
        # Huge weights could give infinities or NaN, and argmax treats NaN in a special way.
        if self._lean is not None and np.abs(weights).max() < _HUGE:
            return self._lean.land(weights, seed)
        total, lowest, impact = 0.0, math.inf, None
        observation, _ = env.reset(seed=seed)
        for _ in range(self._limit):
            # float64 weights times a float32 observation, as in the example.
            observation, reward, terminated, truncated, _ = env.step(
                np.argmax(weights @ observation)
            )
            total += reward
            lowest = min(lowest, observation[_Y_VELOCITY])
            if impact is None and (observation[_LEFT_LEG] or observation[_RIGHT_LEG]):
                impact = observation[_X], observation[_Y_VELOCITY]
            if terminated or truncated:
                break
        x, y_velocity = impact or (observation[_X], lowest)
        return [float(total), float(x), float(y_velocity)]
