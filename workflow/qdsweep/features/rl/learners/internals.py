"""All uses of stable-baselines3's private names, as in stable-baselines3 2.9.2.

If another version has other names, the import of this module fails and lists them.
"""

import inspect
from typing import Any

from gymnasium import spaces
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.buffers import NStepReplayBuffer

from qdsweep.versions import missing_names

_SEEN_IN = "2.9.2"


def _check() -> None:
    lost = []
    for kind in (A2C, PPO, DQN):
        if "_init_setup_model" not in inspect.signature(kind).parameters:
            lost.append(f"{kind.__name__}(_init_setup_model)")
            continue
        model = kind("MlpPolicy", None, device="cpu", _init_setup_model=False)
        names = ("_setup_model", "_update_learning_rate", "_current_progress_remaining")
        lost += [f"{kind.__name__}.{name}" for name in names if not hasattr(model, name)]
    if not hasattr(NStepReplayBuffer, "_get_samples"):
        lost.append("NStepReplayBuffer._get_samples")
    if lost:
        raise missing_names("stable-baselines3", _SEEN_IN, lost)


_check()


def build(
    kind: Any,
    policy: str,
    observations: spaces.Space[Any],
    actions: spaces.Space[Any],
    **given: Any,
) -> Any:
    """Returns an algorithm without an environment, as stable-baselines3's `load` makes it.

    It computes on the CPU if torch does not find the GPU that is asked for.

    Args:
        kind: Its class.
        policy: The name of the class of its policy.
        observations: The space of observations.
        actions: The space of actions.
        given: Further arguments, with the `device`.
    """
    model = kind(policy, None, _init_setup_model=False, **given)
    model.observation_space, model.action_space, model.n_envs = observations, actions, 1
    model._setup_model()
    return model


def set_remaining(model: Any, remaining: float) -> None:
    """Sets the part of the training that is left, which schedules depend on."""
    model._current_progress_remaining = remaining


def clip_ranges(model: Any) -> tuple[float, float | None]:
    """Returns PPO's present clip range, and that of its values; None for no limit."""
    remaining, of_values = model._current_progress_remaining, model.clip_range_vf
    return model.clip_range(remaining), None if of_values is None else of_values(remaining)


def update_learning_rate(model: Any) -> None:
    """Gives the optimiser the learning rate of its schedule."""
    model._update_learning_rate(model.policy.optimizer)


def transitions(buffer: NStepReplayBuffer, slots: Any) -> Any:
    """Returns the transitions in these slots ``(n,)`` of a replay buffer, as tensors."""
    return buffer._get_samples(slots)
