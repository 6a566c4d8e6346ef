"""Episodes by gymnasium's own loop, which domains and films must equal."""

from typing import NamedTuple

import gymnasium as gym
import numpy as np


class Episode(NamedTuple):
    """An episode: the first observation, one after each step, and the results of `look`."""

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
        seed: The seed of the reset.
        look: Environment -> a value that is stored after each step.
    """
    made = gym.make(env) if isinstance(env, str) else env
    observation, _ = made.reset(seed=seed)
    total, observations, actions, seen, ended = 0.0, [np.array(observation, float)], [], [], False
    while not ended:
        actions.append(act(observation))
        observation, reward, terminated, truncated, _ = made.step(actions[-1])
        total += float(reward)
        observations.append(np.array(observation, float))  # the environment may reuse a buffer
        seen.append(look(made))
        ended = terminated or truncated
    if made is not env:
        made.close()
    cut = truncated and not terminated
    return Episode(total, np.array(observations), np.array(actions), seen, cut)


def land(solution, seed, limit=None):
    """Returns the results of pyribs' examples/lunar_lander.py, and how the landing ended."""
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
