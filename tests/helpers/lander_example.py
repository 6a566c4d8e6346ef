"""What the lunar lander must equal."""

import gymnasium as gym
import numpy as np


def by_gymnasium(solution, seed, limit=None):
    """pyribs' examples/lunar_lander.py, and how the episode ended."""
    env = gym.make("LunarLander-v3", max_episode_steps=limit)
    weights = solution.reshape(4, 8)
    total, impact, seen = 0.0, None, []
    observation, _ = env.reset(seed=seed)
    done = False
    while not done:
        observation, reward, terminated, truncated, _ = env.step(np.argmax(weights @ observation))
        done = terminated or truncated
        total += reward
        seen.append(observation)
        if impact is None and (observation[6] or observation[7]):
            impact = observation[0], observation[3]
    lander = env.unwrapped.lander
    end = "limit" if truncated and not terminated else "asleep" if not lander.awake else "lost"
    if end == "lost":
        end = "crash" if env.unwrapped.game_over else "away"
    env.close()
    x, y = impact or (observation[0], min(o[3] for o in seen))
    return [float(total), float(x), float(y)], end
