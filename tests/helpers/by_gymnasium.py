"""Episodes by gymnasium's own loop: what domains and films must equal."""

from typing import NamedTuple

import gymnasium as gym
import numpy as np


class Episode(NamedTuple):
    """An episode: the first observation and one after each step, and what was seen of each step."""

    total: float
    observations: np.ndarray
    actions: np.ndarray
    seen: list
    truncated: bool


def play(env, act, seed, look=lambda env: None):
    """Plays an episode.

    Args:
        env: An id, or an environment, which stays open.
        act: Observation -> action.
        seed: Of the reset.
        look: What it gives of the environment after each step is kept.
    """
    made = gym.make(env) if isinstance(env, str) else env
    observation, _ = made.reset(seed=seed)
    total, observations, actions, seen, ended = 0.0, [np.array(observation, float)], [], [], False
    while not ended:
        actions.append(act(observation))
        observation, reward, terminated, truncated, _ = made.step(actions[-1])
        total += float(reward)
        observations.append(np.array(observation, float))  # it may be a buffer
        seen.append(look(made))
        ended = terminated or truncated
    if made is not env:
        made.close()
    cut = truncated and not terminated
    return Episode(total, np.array(observations), np.array(actions), seen, cut)


def land(solution, seed, limit=None):
    """As pyribs' examples/lunar_lander.py: return, place and speed of impact, and how it ended."""
    env = gym.make("LunarLander-v3", max_episode_steps=limit)
    weights = solution.reshape(4, 8)
    episode = play(env, lambda observation: np.argmax(weights @ observation), seed)
    seen = episode.observations[1:]
    touches = np.flatnonzero(seen[:, 6] + seen[:, 7])
    x, y = seen[touches[0], [0, 3]] if len(touches) else (seen[-1, 0], seen[:, 3].min())
    end = "limit" if episode.truncated else "asleep" if not env.unwrapped.lander.awake else "lost"
    if end == "lost":
        end = "crash" if env.unwrapped.game_over else "away"
    env.close()
    return [episode.total, float(x), float(y)], end
