"""Learners and what they do, the same for our TD3 and for torch's (td3_torch.py)."""

from pathlib import Path
from typing import Any

import numpy as np

from qdsweep.domains.base import CUT, GOES_ON, TERMINATED, Actor, Record
from qdsweep.features.learning.settings import TD3 as Settings
from qdsweep.features.learning.td3 import TD3

OUTPUTS = Path(__file__).resolve().parents[1] / "tests/fixtures/td3_torch.npz"
Arrays = dict[str, np.ndarray]


class Double(TD3):
    """In double precision, where rounding hides no mistake."""

    dtype = np.float64


def actor(hidden: list[int], observations: int, actions: int, **kind: Any) -> Actor:
    """An actor with bounds that differ."""
    sizes = [observations, *hidden, actions]
    shapes = tuple(zip(sizes[1:], sizes[:-1], strict=True))
    bounds = np.linspace(-2, 0, actions), np.linspace(1, 4, actions)
    return Actor(shapes, kind.get("bias", True), kind.get("activation", "tanh"), *bounds)


SMALL = Settings(critic_hidden=[8, 7], minibatch=16, actor_lr=2e-3, critic_lr=1e-3)
CASES: dict[str, tuple[type[TD3], Actor, Settings]] = {
    "tanh": (Double, actor([6, 5], 4, 2), SMALL),
    "relu": (Double, actor([6], 4, 2, activation="relu"), SMALL),
    "linear": (Double, actor([], 4, 3, bias=False), SMALL),
    "limit": (Double, actor([6], 4, 2), SMALL.model_copy(update={"limit_is_end": False})),
    "hopper": (TD3, actor([128, 128], 15, 3), Settings()),
}


def learner(case: str, transitions: int = 600) -> TD3:
    """The learner of a case before it has trained."""
    kind, network, settings = CASES[case]
    made = kind(network, settings, np.random.SeedSequence(1))
    made.add(record(network, transitions))
    return made


def record(network: Actor, steps: int) -> Record:
    """Three episodes of random numbers, of which the time limit cuts one."""
    rng = np.random.default_rng(2)
    ends = np.full(steps, GOES_ON, np.uint8)
    ends[[steps // 3, steps // 2, -1]] = TERMINATED, CUT, TERMINATED
    observations, actions = network.shapes[0][1], network.shapes[-1][0]
    return Record(
        rng.standard_normal((steps + 3, observations), np.float32),
        rng.uniform(network.low, network.high, (steps, actions)).astype(np.float32),
        rng.standard_normal(steps, np.float32),
        ends,
    )


def outputs(made: Any, solutions: np.ndarray) -> Arrays:
    """What a learner of either kind has after some training and variations.

    Of many parameters, some; `ascend` and `gradient` take more observations than a minibatch.
    """
    made.train(20)
    arrays = {
        name: np.asarray(getattr(made, name)).reshape(-1)
        for name in ("actor", "critics", "target_actor", "target_critics")
    }
    arrays["ascended"] = made.ascend(solutions, 5, 20, 1e-3).reshape(-1)
    arrays["gradient"] = made.gradient(solutions[0], 300)
    return {name: values[:: 1 + values.size // 500] for name, values in arrays.items()}


def solutions_of(made: TD3) -> np.ndarray:
    """Two actors other than the greedy one."""
    return made.greedy + np.random.default_rng(3).normal(0, 0.1, (2, made.greedy.size))
