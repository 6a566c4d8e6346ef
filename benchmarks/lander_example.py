"""The peer of the lander benchmarks: an evaluation as in pyribs' examples/lunar_lander.py."""

import gymnasium as gym
import numpy as np


def by_make(policy: np.ndarray, seed: int) -> tuple[float, float, float]:
    """Objective and both measures of a linear policy, in an environment of its own."""
    env = gym.make("LunarLander-v3")
    weights = policy.reshape(4, 8)
    total, impact, lowest, done = 0.0, None, np.inf, False
    seen, _ = env.reset(seed=seed)
    while not done:
        seen, reward, terminated, truncated, _ = env.step(np.argmax(weights @ seen))
        done = terminated or truncated
        total += reward
        lowest = min(lowest, seen[3])
        if impact is None and (seen[6] or seen[7]):
            impact = seen[0], seen[3]
    x, y = impact or (seen[0], lowest)
    env.close()
    return float(total), float(x), float(y)
