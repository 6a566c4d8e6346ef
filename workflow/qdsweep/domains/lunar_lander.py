"""LunarLander-v3 with a linear policy: the task of pyribs' examples/lunar_lander.py.

The fast path is gymnasium's `step` without the parts that a discrete lander skips. It saves half
of the time. Random numbers are drawn in one block, forces are plain floats, and the motion is read
from Box2D's memory. Nearly all of the remaining time is `b2World.Step`.

The fast path is bit-equal to `gymnasium.make("LunarLander-v3")` with the library versions in
`PROVEN`, and is not used with others. `test_lunar_lander.py` compares both over policies, seeds and
every way to end.
"""

import ctypes
import math
import struct
from itertools import chain, islice
from typing import Any

import numpy as np

from qdsweep.domains.base import Evaluation, Floats, Seeds
from qdsweep.domains.environments import find_spec, make_env
from qdsweep.domains.episodes import episode_fields, evaluate_episodes
from qdsweep.versions import installed_versions

PROVEN = {"gymnasium": "1.4.0", "box2d": "2.3.10", "numpy": "2.4.6"}

# gymnasium/envs/box2d/lunar_lander.py, discrete, without wind.
_SCALE = 30.0
_FPS = 50
_HALF_W, _HALF_H = 600 / _SCALE / 2, 400 / _SCALE / 2
_MAIN_POWER, _SIDE_POWER = 13.0, 0.6
_NOZZLE = 4 / _SCALE
_SIDE_AWAY, _SIDE_HEIGHT = 12, 14
_LEG_DOWN = 18 / _SCALE
_BLOCK = 256
# Observations are float32; the policy computes with them as float64.
_round, _unpack = struct.Struct("8f").pack, struct.Struct("8f").unpack
_write = struct.Struct("8d").pack_into
# Position, angle, velocity and angular velocity in a b2Body, from its position on. The gaps are
# other members, all float32. To read them as attributes takes 1.6 us longer.
_MOTION, _TO_VELOCITY = struct.Struct("2f 36x f 4x 3f"), 52
_ENVIRONMENT_STEP = (1.0 / _FPS, 6 * 30, 2 * 30)

_HUGE = 1e200

_ACTIONS, _OBSERVATIONS = 4, 8
_X, _Y_VELOCITY, _LEFT_LEG, _RIGHT_LEG = 0, 3, 6, 7  # components of an observation


def differing_versions() -> dict[str, str]:
    """Returns the installed versions that differ from `PROVEN`, which disable the fast path."""
    installed = installed_versions(PROVEN)
    return {
        name: installed.get(name, "none") for name in PROVEN if installed.get(name) != PROVEN[name]
    }


class LeanLander:
    """Flies landings in an environment of gymnasium, whose `reset` makes the world.

    Args:
        env: `LunarLander-v3`, unwrapped, discrete, without wind.
        limit: The longest landing [steps].
    """

    def __init__(self, env: Any, limit: int) -> None:
        self._env = env
        self._limit = limit
        self._input = np.empty(8)
        self._output = np.empty(4)

    def land(self, weights: Floats, seed: int) -> list[float]:
        """Flies argmax(W observation).

        Args:
            weights: ``(4, 8)`` W.
            seed: The seed of all randomness, such as the terrain.

        Returns:
            The results of `LunarLander._land`.
        """
        env = self._env
        observation, _ = env.reset(seed=seed)
        lander, step = env.lander, env.world.Step
        left, right = env.legs
        shaping = env.prev_shaping
        ground = env.helipad_y + _LEG_DOWN
        # A block has the same numbers as single draws.
        blocks = iter(lambda: (env.np_random.uniform(-1.0, 1.0, _BLOCK) / _SCALE).tolist(), None)
        noise = chain.from_iterable(blocks)
        x, output = self._input, self._output
        buffer = x.data.cast("B")
        dot, values = weights.dot, output.tolist
        sin, cos, sqrt = math.sin, math.cos, math.sqrt
        round_to, unpack, write = _round, _unpack, _write
        time_step, velocity_rounds, position_rounds = _ENVIRONMENT_STEP
        x[:] = observation
        address = int(lander.position.this)  # not of a copy: its values change with each step
        assert int(lander.linearVelocity.this) == address + _TO_VELOCITY
        body = memoryview((ctypes.c_char * _MOTION.size).from_address(address))
        motion = _MOTION.unpack_from
        px, py, angle, _, _, _ = motion(body)
        total, lowest, impact = 0.0, math.inf, None
        for first, second in islice(zip(noise, noise, strict=False), self._limit):
            dot(x, output)
            scores = values()
            action = scores.index(max(scores))
            fuel = 0.0
            if action:
                tip_x, tip_y = sin(angle), cos(angle)
                if action == 2:
                    along = _NOZZLE + 2 * first
                    ox = tip_x * along + -tip_y * second
                    oy = -tip_y * along - tip_x * second
                    force = (-ox * _MAIN_POWER, -oy * _MAIN_POWER)
                    place = (px + ox, py + oy)
                    fuel = 0.30
                else:
                    across = 3 * second + (action - 2) * _SIDE_AWAY / _SCALE
                    ox = tip_x * first + -tip_y * across
                    oy = -tip_y * first - tip_x * across
                    force = (-ox * _SIDE_POWER, -oy * _SIDE_POWER)
                    place = (px + ox - tip_x * 17 / _SCALE, py + oy + tip_y * _SIDE_HEIGHT / _SCALE)
                    fuel = 0.03
                lander.ApplyLinearImpulse(force, place, True)
            step(time_step, velocity_rounds, position_rounds)
            px, py, angle, vx, vy, spin = motion(body)
            on_left, on_right = left.ground_contact, right.ground_contact
            s0 = (px - _HALF_W) / _HALF_W
            s1 = (py - ground) / _HALF_H
            s2 = vx * _HALF_W / _FPS
            s3 = vy * _HALF_H / _FPS
            s6 = 1.0 if on_left else 0.0
            s7 = 1.0 if on_right else 0.0
            rounded = round_to(s0, s1, s2, s3, angle, 20.0 * spin / _FPS, s6, s7)
            seen = unpack(rounded)
            write(buffer, 0, *seen)
            before = shaping
            shaping = (
                -100 * sqrt(s0 * s0 + s1 * s1)
                - 100 * sqrt(s2 * s2 + s3 * s3)
                - 100 * abs(angle)
                + 10 * s6
                + 10 * s7
            )
            if s3 < lowest:
                lowest = s3
            if impact is None and (on_left or on_right):
                impact = seen[0], seen[3]
            if s2 == 0.0 and s3 == 0.0 and not lander.awake:  # a sleeping body has no velocity
                total += 100
                break
            if env.game_over or abs(s0) >= 1.0:
                total += -100
                break
            total += shaping - before - fuel
        x_end, y_velocity = impact or (seen[0], float(np.float32(lowest)))
        return [float(total), x_end, y_velocity]


class LunarLander:
    """A landing, flown by argmax(W observation).

    The results equal those of pyribs' example for the same seed, bit for bit. One environment is
    reused, because LunarLander, unlike other Box2D environments, makes a new world in `reset`.

    Attributes: see `qdsweep.domains.base.Domain`.
    """

    def __init__(self, episodes: int) -> None:
        """Makes the environment.

        Args:
            episodes: Number of landings that an evaluation averages over.

        Raises:
            BadInput: Box2D is missing.
        """
        spec = find_spec("LunarLander-v3")
        self._env = make_env(spec, {})
        self._limit = spec.max_episode_steps or 1000
        self._lean = None
        differing = differing_versions()
        if self._env.render_mode is not None:
            pass  # the fast path draws no pictures
        elif differing:
            self.remark = (
                "the lunar lander's fast path was not tested with "
                f"{', '.join(f'{name} {version}' for name, version in differing.items())}: "
                "the slower path is used, with the same results"
            )
        else:
            self._lean = LeanLander(self._env.unwrapped, self._limit)
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

        Returns:
            Objectives ``(n,)`` and measures ``(n, 2)``.
        """
        return evaluate_episodes(self._land, solutions, seeds, self._episodes)

    def _land(self, solution: Floats, seed: int) -> list[float]:
        """Returns the return, and x-position and y-velocity when a leg first touches the ground.

        If no leg ever does, they are the last x-position and the fastest descent.
        """
        env = self._env
        weights = solution.reshape(_ACTIONS, _OBSERVATIONS)
        # Huge weights could give infinities or NaN, and argmax has its own rule for NaN.
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
