"""Tasks of gymnasium with short episodes, and their records."""

import numpy as np

from qdsweep.config import domain as config
from qdsweep.domains.gymnasium_task import GymnasiumTask

PENDULUM = {
    "env": "Pendulum-v1",
    "max_episode_steps": 12,
    "policy": {"type": "mlp", "hidden": [4]},
    "measures": [{"measure": "mean_action", "component": 0, "range": (-2.0, 2.0)}],
    "objective_range": (-2000.0, 0.0),
}
CARTPOLE = {
    **PENDULUM,
    "env": "CartPole-v1",
    "max_episode_steps": 100,
    "objective_range": (0.0, 100.0),
}


def make(settings=PENDULUM, **changes):
    return GymnasiumTask(config.Gymnasium(type="gymnasium", **{**settings, **changes}))


def same(records, others):
    """Returns whether records are equal, bit for bit."""
    return all(
        np.array_equal(array, other)
        for pair in zip(records, others, strict=True)
        for array, other in zip(*pair, strict=True)
    )
